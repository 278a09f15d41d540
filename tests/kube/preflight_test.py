# SPDX-License-Identifier: Apache-2.0
"""The node gate: an accepted node loses its taint; a rejected, incomplete or silent one keeps it, however often its pod starts again."""
import glob
import json
import signal
import time
import unittest

import case
import tools

TAINT = "muster.dev/preflight"
NEVER = case.PATTERN + 'expect = [ { metric = "memory.pattern_bytes", min = "1 TiB", source = "test", remedy = "none" } ]\n'


class Preflight(case.Case):
    def setUp(self):
        super().setUp()
        for node in range(self.nodes):
            self.cluster.taint(f"n{node}", TAINT)
            self.cluster.taint(f"n{node}", "other/taint")

    def gate(self, node, plan, *words):
        """Installs the gate for one node, from the manifests that `muster k8s render` prints."""
        values = dict(case.SMALL, nodeSelector={"kubernetes.io/hostname": node}, preflight={"image": "registry.example/muster-kubectl:1"},
                      tolerations=[{"key": "other/taint", "operator": "Exists"}])
        text = self.muster("k8s", "render", self.file(f"{node}.toml", plan), "--kind", "preflight", "--image", case.IMAGE, "--namespace", "default", "--values",
                           self.file(f"{node}.yaml", values), *words)
        text = text.replace("muster-pattern", f"gate-{node}")  # one release for each node
        tools.run("kubectl", "create", "--filename", "-", input=text)

    def restarts(self, node):
        pod = self.cluster.pod_on(node)
        return pod["status"].get("containerStatuses", [{"restartCount": 0}])[0]["restartCount"] if pod else 0

    def test_only_an_accepted_node_is_released(self):
        self.gate("n0", case.PATTERN)
        self.gate("n1", NEVER)
        self.gate("n2", case.PATTERN.replace('backend = "host"', 'backend = "cuda"').replace('sku = "host"', 'sku = "h100-sxm5-80gb"'))
        self.cluster.wait(lambda: self.cluster.taints("n0") == ["other/taint"], "the release of n0")
        for node in ("n1", "n2"):  # a verdict stays, whatever Kubernetes starts again
            self.cluster.wait(lambda node=node: self.restarts(node) >= 3, f"restarts on {node}")
        self.assertEqual([self.cluster.taints(f"n{i}") for i in range(4)], [["other/taint"]] + 3 * [[TAINT, "other/taint"]])
        # Its record too: a container that starts again resumes a run that has ended.
        records = glob.glob(self.cluster.pod_folder(self.cluster.pod_on("n1")) + "/volumes/run/n1/*/record.json")
        with open(*records, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["run"]["resumed"], 0)
        self.assertNotIn("Running", [self.cluster.pod_on(node)["status"]["phase"] for node in ("n1", "n2")])
        # The plan's container has no token; only the other one has asked, and for nothing but the node.
        asked = {(verb, plural) for verb, plural, _ in self.cluster.store.seen if plural == "nodes"}
        self.assertEqual(asked, {("get", "nodes"), ("patch", "nodes")})

    def test_manifests_that_name_a_namespace_need_one(self):
        self.assertIn("set --namespace", self.muster("k8s", "render", self.file("plan.toml", case.PATTERN), "--kind", "preflight", "--image", case.IMAGE, code=2))

    def test_a_killed_pod_releases_nothing(self):
        self.cluster.doomed = {"n0"}
        self.gate("n0", case.PATTERN)
        self.cluster.wait(lambda: self.restarts("n0") >= 3, "restarts")
        self.assertIn(TAINT, self.cluster.taints("n0"))

    def test_release_refuses_what_is_no_measurement_of_this_node(self):
        plan = self.file("plan.toml", case.PATTERN)
        out = self.folder + "/record"
        self.muster("run", plan, "--node-name", "n0", "--out", out)
        self.assertIn("is of node n0, expected n1", self.muster("k8s", "release", out, "--node", "n1", "--apply", code=2))
        self.assertIn("would be removed", self.muster("k8s", "release", out, "--node", "n0", "--dry-run"))
        self.assertIn(TAINT, self.cluster.taints("n0"))
        self.muster("run", plan, "--node-name", "n0", "--only", "pattern", "--out", out + "-part", code=3)
        self.assertIn("keeps its taint", self.muster("k8s", "release", out + "-part", "--node", "n0", "--apply", code=2))
        two = self.file("two.toml", case.PATTERN + '[[stage]]\nname = "later"\ntest = "collective.sweep"\nscope = "node"\nranks = 2\n')
        self.muster("run", two, "--node-name", "n0", "--scope", "device", "--out", out + "-half")
        self.assertIn("left to another job", self.muster("k8s", "release", out + "-half", "--node", "n0", "--apply", code=2))
        relative = self.file("relative.toml", case.PATTERN + 'expect = [{ metric = "memory.pattern_errors", within = "10%", of = "fleet" }]\n')
        self.muster("run", relative, "--node-name", "n0", "--out", out + "-relative")
        self.assertIn("are relative to other nodes", self.muster("k8s", "release", out + "-relative", "--node", "n0", "--apply", code=2))
        scenario = tools.SOURCE + "/plans/scenarios/h100x8-healthy.toml"
        self.muster("run", tools.DIST + "/share/muster/plans/node-quick.toml", "--simulate", scenario, "--node-name", "n0", "--out", out + "-simulated")
        self.assertIn("SIMULATED", self.muster("k8s", "release", out + "-simulated", "--node", "n0", "--apply", code=2))
        with open(out + "/record.json", encoding="utf-8") as file:
            record = file.read()
        boot = json.loads(record)["run"]["boot_id"]
        with open(out + "/record.json", "w", encoding="utf-8") as file:
            file.write(record.replace(boot, "00000000-0000-0000-0000-000000000000"))
        self.assertIn("has booted since", self.muster("k8s", "release", out, "--node", "n0", "--apply", code=2))
        self.assertEqual(self.cluster.taints("n0"), [TAINT, "other/taint"])
        # A node that was released before it booted: its pod starts again, and has nothing to remove.
        self.assertIn("has no taint other/gate", self.muster("k8s", "release", out, "--node", "n0", "--taint", "other/gate", "--apply"))

    def test_release_ends_though_somebody_sets_the_taint_again(self):
        self.muster("run", self.file("plan.toml", case.PATTERN), "--node-name", "n0", "--out", self.folder + "/record")
        release = ("k8s", "release", self.folder + "/record", "--node", "n0", "--apply")
        self.cluster.taint("n0", TAINT)  # twice, as with another effect
        self.muster(*release)
        self.assertEqual(self.cluster.taints("n0"), ["other/taint"])
        put = self.cluster.store.put

        def controller(plural, space, thing):
            if plural == "nodes" and TAINT not in [taint["key"] for taint in thing["spec"]["taints"]]:
                thing["spec"]["taints"].append({"key": TAINT, "value": "pending", "effect": "NoSchedule"})
            return put(plural, space, thing)

        self.cluster.store.put = controller
        self.cluster.change_node("n0", lambda node: None)
        self.cluster.store.seen.clear()
        self.assertIn("was set again after it had been removed", self.muster(*release, code=2))
        self.assertEqual([verb for verb, plural, _ in self.cluster.store.seen if (verb, plural) == ("patch", "nodes")], ["patch"])


if __name__ == "__main__":
    case.main()

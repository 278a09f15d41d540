# SPDX-License-Identifier: Apache-2.0
"""Run directories on a volume: each pod measures anew, a container that starts again keeps its verdict, and only a node's newest run counts."""
import glob
import json
import os
import re
import unittest

import case
import tools

NEVER = case.PATTERN + 'expect = [ { metric = "memory.pattern_bytes", min = "1 TiB", source = "test", remedy = "none" } ]\n'


class Volume(case.Case):
    nodes = 1

    def setUp(self):
        super().setUp()
        self.values["runVolume"] = {"persistentVolumeClaim": {"claimName": "runs"}}

    def create(self, name, plan, edit=lambda text: text, **more):
        """Applies what `muster k8s render` prints, as a release of this name."""
        text = self.muster("k8s", "render", self.file(name + ".toml", plan), "--image", case.IMAGE, "--namespace", "default", "--nodes", "n0", "--kind",
                           more.get("kind", "node"), "--values", self.file(name + ".yaml", {**self.values, **more}))
        tools.run("kubectl", "create", "--filename", "-", input=edit(text.replace("muster-pattern", name)))

    def volume(self, where):
        return sorted(glob.glob(os.path.join(self.cluster.claim("runs"), "n0", where, "record.json")))

    def record(self, where="*"):
        """The one record there."""
        path, = self.volume(where)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def fleet_of_volume(self, code):
        out = os.path.join(self.folder, "fleet")
        self.muster("fleet", self.cluster.claim("runs"), "--expect", self.file("nodes.txt", "n0\n"), "--same-machine", "--out", out, code=code)
        with open(os.path.join(out, "fleet.json"), encoding="utf-8") as file:
            return [(node["node"], node["state"]) for node in json.load(file)["nodes"]]

    def test_every_night_is_measured_anew(self):
        self.create("nightly", case.PATTERN, kind="scheduled")
        runs = []
        for night in ("monday", "tuesday"):
            template = self.cluster.store.get("cronjobs", "default", "nightly")["spec"]["jobTemplate"]
            self.cluster.store.create("jobs", "default", {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": night}, "spec": template["spec"]})
            self.wait_for_end()
            runs.append(self.record()["run"])
        self.assertNotEqual(runs[0]["id"], runs[1]["id"])
        self.assertGreater(runs[1]["started"], runs[0]["finished"])
        self.assertEqual([run["resumed"] for run in runs], [0, 0])
        self.assertEqual(self.record("attempts/*")["run"], runs[0])

    def test_only_the_newest_run_of_a_node_counts(self):
        for count, (plan, code, state) in enumerate(((NEVER, 1, "rejected"), (case.PATTERN, 0, "accepted"), (NEVER, 1, "rejected"))):
            self.create(f"apply-{count}", plan)
            self.wait_for_end()
            self.assertEqual(self.fleet_of_volume(code), [("n0", state)])
            self.assertEqual(len(self.volume("attempts/*")), count)

    def test_a_container_that_starts_again_keeps_its_verdict_though_a_newer_pod_ran(self):
        self.cluster.taint("n0", "muster.dev/preflight")
        self.cluster.resting = {"gate-n0"}
        self.values["tolerations"] = [{"key": "muster.dev/preflight", "operator": "Exists"}]
        # The chart gives a gate no such volume; somebody's own manifest may.
        on_volume = lambda text: re.sub(r"(- name: run\n +)emptyDir: .*", r"\1persistentVolumeClaim: {claimName: runs}", text)
        self.create("gate", NEVER, on_volume, kind="preflight", preflight={"image": "registry.example/muster-kubectl:1"}, runVolume={})
        status = lambda: (self.cluster.store.get("pods", "default", "gate-n0") or {"status": {}})["status"].get("containerStatuses", [{"state": {}}])[0]
        self.cluster.wait(lambda: "terminated" in status()["state"], "the end of the gate's run")
        gate = self.record()
        self.create("apply", case.PATTERN)
        self.wait_for_end()
        self.cluster.resting = set()
        self.cluster.wait(lambda: status()["restartCount"] >= 2, "restarts")
        self.assertEqual(self.record("attempts/*"), gate)
        self.assertEqual(self.record()["acceptance"], "accepted")
        self.assertEqual(self.fleet_of_volume(0), [("n0", "accepted")])

    def test_a_resume_retests(self):
        self.submit(self.file("plan.toml", NEVER))
        self.wait_for_end()
        self.assertEqual(self.states(), {"n0": "rejected"})
        first = self.record()["run"]
        self.muster("k8s", "resume", "--rejected", self.run_folder)
        self.wait_for_end()
        self.assertEqual(self.states(), {"n0": "rejected"})
        self.assertNotEqual(self.record()["run"]["id"], first["id"])
        self.assertEqual(self.record("attempts/*")["run"], first)


if __name__ == "__main__":
    case.main()

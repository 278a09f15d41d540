# SPDX-License-Identifier: Apache-2.0
"""`muster k8s` with a plan that each node runs alone; the pods are processes of this machine."""
import base64
import gzip
import hashlib
import os
import shutil
import unittest

import case
import tools
import api_server

SCENARIO = os.path.join(tools.SOURCE, "plans/scenarios/h100x8-one-slow-gpu.toml")
QUICK = os.path.join(tools.DIST, "share/muster/plans/node-quick.toml")


class Node(case.Case):
    gpus = 8

    def simulate(self, *words, code=0):
        return self.submit(QUICK, "--simulate", SCENARIO, *words, code=code)

    def sign_and_verify(self):
        """The run's key is not handed over, and without it the fleet is derived from the records again."""
        key, handed = os.path.join(self.folder, "key"), os.path.join(self.folder, "handed")
        self.muster("sign", "--new-key", key)
        self.muster("sign", self.run_folder, "--key", key)
        shutil.copytree(self.run_folder, handed)
        os.remove(os.path.join(handed, "run.key"))
        secrets = [base64.b64decode(value) for secret in self.cluster.store.list("secrets") for value in secret["data"].values()]
        self.assertTrue(secrets)
        for folder, _, names in os.walk(handed):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    content = file.read()
                self.assertFalse([name for secret in secrets if secret in content], "a secret of the run is handed over")
        self.muster("redact", handed, "--out", os.path.join(self.folder, "redacted"), "--map", os.path.join(self.folder, "map"))
        said = self.muster("verify", handed, "--key", key + ".pub", code=1)
        self.assertIn("NOT VERIFIED: nothing contradicts the result (rejected", said)  # logs of pods hold no journals and artifacts
        self.assertIn("derived again from 4 records, byte for byte", said)
        self.assertEqual(said.count("2 reports rendered again, byte for byte"), 4, said)

    def test_every_node_is_accounted_for_and_a_resume_retests_only_those_without_a_verdict(self):
        self.cluster.doomed = {"n2"}
        self.cluster.change_node("n3", lambda node: node["spec"].update(unschedulable=True))
        said = self.simulate()
        self.assertIn("missing: n3 (cordoned)", said)
        self.assertIn("3 of 4 nodes submitted", said)
        self.wait_for_end()
        self.assertEqual(self.states(), {"n0": "rejected", "n1": "accepted", "n2": "lost", "n3": "missing"})
        said = self.muster("k8s", "collect", self.run_folder, code=1)
        self.assertIn("Evicted", said)
        self.assertIn(f"lost the results of 1 of 4 nodes (n2); retest them with: muster k8s resume {self.run_folder}", said)
        self.assertEqual(self.fleet(), {"n0": "rejected", "n1": "accepted", "n2": "missing", "n3": "down"})
        self.cluster.doomed = set()
        self.cluster.change_node("n3", lambda node: node["spec"].pop("unschedulable"))
        self.assertIn("retesting 2 nodes: n[2-3]", self.muster("k8s", "resume", self.run_folder))
        self.wait_for_end()
        self.assertEqual(self.states(), {"n0": "rejected", "n1": "accepted", "n2": "accepted", "n3": "accepted"})
        self.muster("k8s", "collect", self.run_folder, code=1)
        self.assertEqual(self.fleet(), {"n0": "rejected", "n1": "accepted", "n2": "accepted", "n3": "accepted"})
        self.assertIn("retesting 0 nodes", self.muster("k8s", "resume", self.run_folder))
        self.sign_and_verify()
        # What was collected stays, though Kubernetes has forgotten it.
        self.assertIn("objects would be removed", self.muster("k8s", "cleanup", "--older-than", "0s", "--dry-run"))
        self.assertTrue(self.cluster.store.list("jobs"))
        self.assertIn("is not old enough", self.muster("k8s", "cleanup", "--older-than", "1h", "--apply"))
        self.muster("k8s", "cleanup", "--older-than", "0s", "--apply")
        for plural in ("jobs", "pods", "secrets", "configmaps"):
            self.assertEqual(self.cluster.store.list(plural), [])
        self.muster("k8s", "collect", self.run_folder, code=1)
        self.assertEqual(self.fleet()["n1"], "accepted")

    def test_a_gpu_node_that_offers_none_is_missing_and_not_left_out(self):
        def change(node, labels=(), **amounts):
            self.cluster.change_node(node, lambda thing: (thing["metadata"]["labels"].update(labels), thing["status"].update(amounts)))
        change("n1", capacity={"cpu": "64"}, allocatable={"cpu": "64"})  # a node without GPUs is not of this fleet
        change("n2", {"nvidia.com/gpu.present": "true"}, capacity={"cpu": "64"}, allocatable={"cpu": "64"})
        change("n3", allocatable={"nvidia.com/gpu": "0"})
        why = "offers 0 nvidia.com/gpu, a pod requests 8"
        said = self.submit(QUICK)
        self.assertIn("1 of 3 nodes submitted", said)
        self.assertNotIn("n1", said)
        self.wait_for_end()
        self.assertEqual({**self.states(), "n0": "ended"}, {"n0": "ended", "n2": "missing", "n3": "missing"})
        self.assertIn(f"{why}\n", self.muster("k8s", "status", self.run_folder))
        self.muster("k8s", "collect", self.run_folder, code=3)
        with open(os.path.join(self.run_folder, "expect.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines()[1:], [f"n2 down {why}", f"n3 down {why}"])
        resumed = self.muster("k8s", "resume", self.run_folder)
        for node in ("n2", "n3"):
            for text in (said, resumed):
                self.assertIn(f"missing: {node} ({why})", text)
        change("n3", {"node-role.kubernetes.io/control-plane": ""})  # submit takes it as well
        self.assertIn("no nvidia.com/gpu: n[1-3]", self.muster("k8s", "verify", code=3))
        self.wait_for_end()
        for node, count in (("n1", "8"), ("n2", "8"), ("n3", "7")):
            change(node, allocatable={"nvidia.com/gpu": count})
        for command in (["k8s", "verify"], ["k8s", "submit", QUICK, "--out", self.run_folder + "-7", "--nodes", "all", "--image", "x:1"]):
            self.assertIn("7 on n3, 8 on n[0-2]", self.muster(*command, code=None))
        for node in ("n1", "n2", "n3"):
            change(node, allocatable={"nvidia.com/gpu": "0"})
        change("n0", allocatable={"nvidia.com/gpu": "0"})
        shutil.rmtree(self.run_folder)
        self.assertIn("none of these nodes offers nvidia.com/gpu", self.submit(QUICK, code=2))

    def test_a_silent_or_lying_pod_accepts_no_node(self):
        self.simulate()
        self.wait_for_end()
        logs = {node: self.cluster.store.logs[self.cluster.pod_on(node)["metadata"]["uid"], "muster"]() for node in ("n0", "n1", "n2", "n3")}
        forged = {"n0": logs["n0"].replace("#muster-record n0 1", "#muster-record n0 0"), "n1": "nothing\n", "n2": logs["n3"], "n3": logs["n3"].replace("#muster-record-end", "")}
        for node, text in forged.items():
            self.cluster.store.logs[self.cluster.pod_on(node)["metadata"]["uid"], "muster"] = lambda text=text: text
        self.cluster.store.change("pods", "default", self.cluster.pod_on("n0")["metadata"]["name"], lambda pod: pod["status"]["containerStatuses"][0].update(
            state={"terminated": {"exitCode": 0}}))
        said = self.muster("k8s", "collect", self.run_folder, code=3)
        for reason in ("the record says exit 1, Kubernetes says 0", "the pod's log holds no record", "the record is of n3, but the pod ran on n2", "the pod's log ends within its record"):
            self.assertIn(reason, said)
        self.assertNotIn("Repair the node", said)
        self.assertEqual(set(self.fleet().values()), {"missing"})

    def test_a_record_of_another_program_is_lost_and_its_node_retested(self):
        self.simulate()
        self.wait_for_end()
        uid = self.cluster.pod_on("n0")["metadata"]["uid"]
        text = self.cluster.store.logs[uid, "muster"]()
        begin, end = text.index("#muster-record n0"), text.index("#muster-record-end")
        head, body = text[begin:end].split("\n", 1)
        record = gzip.decompress(base64.b64decode(body))
        for change, reason in ((lambda of: of[:of.rindex(b",")] + b"\n}\n", "it has no MAC"), (lambda of: of.replace(b"\"schema\": 2", b"\"schema\": 3", 1), "its MAC is not by its node's key")):
            changed = change(record)
            self.assertNotEqual(changed, record)
            line = " ".join(head.split()[:3] + [hashlib.sha256(changed).hexdigest()])
            packed = text[:begin] + line + "\n" + base64.b64encode(gzip.compress(changed)).decode() + "\n" + text[end:]
            self.cluster.store.logs[uid, "muster"] = lambda packed=packed: packed
            self.assertIn(reason, self.muster("k8s", "status", self.run_folder))
            self.assertEqual(self.states()["n0"], "lost")
        self.assertIn("n0", self.muster("k8s", "resume", self.run_folder))

    def log_of(self, node):
        return self.cluster.pod_on(node)["metadata"]["uid"], "muster"

    def test_a_log_without_its_record_is_read_again(self):
        self.simulate()
        self.wait_for_end()
        logs = {node: self.cluster.store.logs[self.log_of(node)] for node in ("n0", "n1")}
        for bad in (logs["n0"]()[:-3000], "unable to retrieve container logs for containerd://0123\n", ""):
            for node in logs:
                self.cluster.store.logs[self.log_of(node)] = lambda: bad
            for _ in range(2):
                states = self.states()
                self.assertEqual((states["n0"], states["n1"]), ("lost", "lost"), bad[-100:])
        for node, text in logs.items():
            self.cluster.store.logs[self.log_of(node)] = text
        self.muster("k8s", "collect", self.run_folder, code=1)
        self.assertEqual(self.fleet(), {"n0": "rejected", "n1": "accepted", "n2": "accepted", "n3": "accepted"})

    def unreachable(self):
        raise api_server.Refused(500, "InternalError", "dial tcp 10.0.0.5:10250: i/o timeout")

    def test_a_pod_that_may_have_been_rejected_is_not_run_until_it_passes(self):
        self.simulate()
        self.wait_for_end()
        pod = self.cluster.pod_on("n0")
        # How the pod ended is seen, and known when Kubernetes has forgotten it.
        self.cluster.store.logs[self.log_of("n0")] = self.unreachable
        self.assertEqual(self.states()["n0"], "lost")
        self.cluster.store.delete("pods", "default", pod["metadata"]["name"])
        self.cluster.store.delete("jobs", "default", pod["metadata"]["labels"]["batch.kubernetes.io/job-name"])
        self.assertIn("n0: ", said := self.muster("k8s", "resume", self.run_folder))
        self.assertIn("only --rejected retests it", said)
        self.assertIn("retesting 0 nodes", said)
        self.assertIn("retesting 1 nodes: n0", self.muster("k8s", "resume", "--rejected", self.run_folder))

    def test_a_resume_that_cannot_create_its_round_takes_no_verdict_away(self):
        self.simulate()
        self.wait_for_end()
        before = self.states()
        self.cluster.store.refused = ("jobs", 4)
        self.assertIn("exceeded quota", self.muster("k8s", "resume", "--rejected", self.run_folder, code=2))
        self.assertEqual(self.states(), before)
        self.assertIn("retesting 0 nodes", self.muster("k8s", "resume", self.run_folder))
        self.assertEqual(os.listdir(os.path.join(self.run_folder, "attempts")), [])
        self.cluster.store.refused = ("", 0)
        self.assertIn("retesting 1 nodes: n0", self.muster("k8s", "resume", "--rejected", self.run_folder))
        self.assertEqual(sorted(os.listdir(os.path.join(self.run_folder, "attempts/n0.1"))), ["record.json", "result.json"])
        self.assertNotEqual(self.states()["n0"], "lost")

    def test_a_record_that_was_changed_does_not_count(self):
        self.simulate()
        self.wait_for_end()
        self.muster("k8s", "status", self.run_folder)
        path = os.path.join(self.run_folder, "records/n1/record.json")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("\"seed\": 42", "\"seed\": 43"))
        self.muster("k8s", "collect", self.run_folder, code=1)
        self.assertNotEqual(self.fleet()["n1"], "accepted")

    def test_a_second_pod_on_a_node_counts_only_if_it_is_worse(self):
        self.simulate()
        self.wait_for_end()
        pod = self.cluster.pod_on("n1")
        for index, code in enumerate((0, 3)):
            other = dict(pod, metadata=dict(pod["metadata"], name=f"other-{index}", uid=f"other-{index}"),
                         status={"phase": "Failed", "containerStatuses": [{"name": "muster", "state": {"terminated": {"exitCode": code}}}]})
            self.cluster.store.logs[f"other-{index}", "muster"] = lambda: "nothing\n"
            self.cluster.store.put("pods", "default", other)
        self.muster("k8s", "collect", self.run_folder, code=1)
        self.assertEqual(self.fleet(), {"n0": "rejected", "n1": "missing", "n2": "accepted", "n3": "accepted"})

    def test_a_pod_of_a_later_round_replaces_a_verdict_which_is_kept(self):
        self.simulate()
        self.wait_for_end()
        self.assertEqual(self.states()["n0"], "rejected")
        pod = self.cluster.pod_on("n0")
        meta = dict(pod["metadata"], name="later", uid="later", labels={**pod["metadata"]["labels"], "muster.dev/round": "2"})
        self.cluster.store.logs["later", "muster"] = lambda: "nothing\n"
        self.cluster.store.put("pods", "default", dict(pod, metadata=meta))
        self.assertEqual(self.states()["n0"], "rejected", "no round 2 was begun: anybody may give a pod its label")
        rounds = os.path.join(self.run_folder, "rounds")
        shutil.copy(os.path.join(rounds, "1.json"), os.path.join(rounds, "2.json"))
        self.assertEqual(self.states()["n0"], "lost")
        self.assertTrue(os.path.exists(os.path.join(self.run_folder, "attempts/n0.1/record.json")))

    def test_submit_creates_all_or_nothing(self):
        self.cluster.store.refused = ("jobs", 2)
        for text, change in (("latest may change", {"image": "muster:latest"}), ("Kubernetes has no node n9", {"nodes": "n9"}),
                             ("what had been created of this round was removed again", {})):
            self.assertIn(text, self.submit(QUICK, "--simulate", SCENARIO, code=2, **change))
            self.assertEqual([self.cluster.store.list(plural) for plural in ("jobs", "configmaps", "secrets")], [[], [], []])

    def test_verify_says_what_to_fix(self):
        self.assertIn("ready", self.muster("k8s", "verify"))
        self.cluster.change_node("n0", lambda node: node["spec"].update(unschedulable=True))
        self.cluster.change_node("n1", lambda node: node["status"]["allocatable"].pop("nvidia.com/gpu"))
        self.cluster.taint("n2", "dedicated")
        self.cluster.store.create("resourcequotas", "default", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {}},
                                  {"hard": {"pods": "3"}, "used": {"pods": "1"}})
        said = self.muster("k8s", "verify", "--rdma-resource", "rdma/hca", code=3)
        for text in ("not ready or cordoned: n0", "no nvidia.com/gpu: n1", "taints dedicated on n2", "no rdma/hca: n[0-3]", "quota small leaves 2 of pods",
                     "5 to fix"):
            self.assertIn(text, said)

    def test_without_an_api_nothing_is_lost(self):
        self.simulate()
        self.wait_for_end()
        kubeconfig, os.environ["KUBECONFIG"] = os.environ["KUBECONFIG"], "/nonexistent"
        try:
            self.muster("k8s", "collect", self.run_folder, code=2)
        finally:
            os.environ["KUBECONFIG"] = kubeconfig
        self.assertEqual(self.states()["n1"], "accepted")


if __name__ == "__main__":
    case.main()

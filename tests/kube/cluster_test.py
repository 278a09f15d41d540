# SPDX-License-Identifier: Apache-2.0
"""Four pods, each in the network namespace of its node, run stages of scope cluster together."""
import base64
import os

import case


class Together(case.Case):
    def start(self, timeout="90s", size="64 KiB", iterations=10, *words):
        return self.submit(self.file("ring.toml", case.RING % (timeout, size, iterations)), *words)

    def test_healthy_pods_accept_all_nodes(self):
        self.start()
        self.assertEqual(len([job for job in self.cluster.store.list("jobs") if job["spec"]["completionMode"] == "Indexed"]), 1)
        self.wait_for_end()
        self.muster("k8s", "collect", self.run_folder)
        self.assertEqual(set(self.fleet().values()), {"accepted"})

    def test_a_late_pod_is_waited_for(self):
        self.cluster.held = {"n0"}  # any pod may be the last: also the one at which the others meet
        self.start()
        self.cluster.wait(lambda: sum(pod["status"]["phase"] == "Running" for pod in self.cluster.pods()) == 3, "three pods")
        self.assertIn("n0", [node for node, state in self.states().items() if state == "waiting"])
        self.cluster.held = set()
        self.wait_for_end()
        self.muster("k8s", "collect", self.run_folder)
        self.assertEqual(set(self.fleet().values()), {"accepted"})

    def test_a_jobset_finds_its_pods_by_its_own_service(self):
        self.start("90s", "64 KiB", 10, "--controller", "JobSet")
        self.cluster.wait(lambda: self.cluster.store.list("jobs"), "the JobSet's job")
        self.wait_for_end()
        self.muster("k8s", "collect", self.run_folder)
        self.assertEqual(set(self.fleet().values()), {"accepted"})
        jobset, = self.cluster.store.list("jobsets")
        self.cluster.store.create("jobsets", "default", dict(jobset, metadata={"name": "other"}), {"started": True})
        self.cluster.store.change("jobs", "default", self.cluster.store.list("jobs")[0]["metadata"]["name"], lambda job: job["metadata"].update(
            ownerReferences=[{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "other", "uid": "any"}]))
        self.muster("k8s", "cleanup", "--older-than", "0s", "--apply")
        self.assertEqual(self.cluster.store.list("jobs"), [])
        self.assertEqual([one["metadata"]["name"] for one in self.cluster.store.list("jobsets")], ["other"], "who makes a Job names its owner freely")

    def container_within_the_stage(self, node):
        """One of four pods that are in a stage of a minute."""
        self.values["options"] = ["--lost-after", "3s"]
        self.start("60s", "64 KiB", 100000)
        self.cluster.wait(lambda: sum(pod["status"]["phase"] == "Running" for pod in self.cluster.pods()) == 4, "four pods")
        self.cluster.wait(lambda: all("ring" in self.cluster.store.logs[pod["metadata"]["uid"], "muster"]() for pod in self.cluster.pods()), "the stage")
        return self.cluster.container_on(node)

    def retest_all(self):
        """No node has a verdict: a resume starts all of them together."""
        self.assertIn("retesting 4 nodes: n[0-3]", self.muster("k8s", "resume", self.run_folder))
        self.assertEqual(len(self.cluster.store.list("jobs")), 2)

    def test_an_evicted_pod_rejects_nobody_and_a_resume_starts_all_again(self):
        self.cluster.evict(self.container_within_the_stage("n2"))
        self.wait_for_end()
        self.muster("k8s", "collect", self.run_folder, code=3)
        fleet = self.fleet()
        self.assertIn(fleet["n2"], ("down", "missing"))
        self.assertTrue(set(fleet.values()) <= {"down", "missing", "incomplete", "affected"}, fleet)
        self.retest_all()

    def test_a_restarted_pod_is_counted_once_and_gives_no_verdict(self):
        self.cluster.restart(self.container_within_the_stage("n2"))
        self.wait_for_end()
        self.muster("k8s", "collect", self.run_folder, code=3)
        self.assertEqual(self.cluster.pod_on("n2")["status"]["containerStatuses"][0]["restartCount"], 1)
        fleet = self.fleet()
        self.assertTrue(set(fleet.values()) <= {"incomplete", "affected"}, fleet)
        self.retest_all()

    def test_a_resume_keeps_a_rejection_where_another_node_has_no_verdict(self):
        self.start()
        self.wait_for_end()
        for node in ("n1", "n2"):
            self.cluster.store.logs[self.cluster.pod_on(node)["metadata"]["uid"], "muster"] = lambda: "rotated away\n"
        self.cluster.store.change("pods", "default", self.cluster.pod_on("n1")["metadata"]["name"], lambda pod: pod["status"]["containerStatuses"][0].update(
            state={"terminated": {"exitCode": 1}}))
        said = self.muster("k8s", "resume", self.run_folder)
        self.assertIn("something failed on n1; after a repair, use --rejected", said)
        self.assertIn("retesting 0 nodes", said)
        self.assertIn("retesting 4 nodes: n[0-3]", self.muster("k8s", "resume", "--rejected", self.run_folder))

    def test_results_of_one_round_are_not_mixed_with_those_of_another(self):
        """n1's log is lost; n3 is cordoned while the others run again, and comes back later."""
        def cordon(flag):
            self.cluster.change_node("n3", lambda node: node["spec"].update(unschedulable=flag))

        def collect(code):
            self.wait_for_end()
            self.muster("k8s", "collect", self.run_folder, code=code)
            return self.fleet()
        self.start()
        self.wait_for_end()
        self.cluster.store.logs[self.cluster.pod_on("n1")["metadata"]["uid"], "muster"] = lambda: "rotated away\n"
        self.assertEqual(collect(3)["n1"], "missing")
        cordon(True)
        said = self.muster("k8s", "resume", self.run_folder)
        self.assertIn("missing: n3 (cordoned)\nthe others run together without the missing ones", said)
        self.assertIn("retesting 3 nodes: n[0-2]", said)
        self.assertEqual(collect(3), {"n0": "accepted", "n1": "accepted", "n2": "accepted", "n3": "down"})
        self.assertTrue(os.path.exists(os.path.join(self.run_folder, "attempts/n3.1/record.json")))
        said = self.muster("k8s", "resume", self.run_folder, code=3)
        self.assertIn("missing: n3 (cordoned)", said)
        self.assertIn("retesting 0 nodes", said)
        cordon(False)
        self.assertIn("retesting 4 nodes: n[0-3]", self.muster("k8s", "resume", self.run_folder))
        self.assertEqual(set(collect(0).values()), {"accepted"})
        self.assertIn("retesting 0 nodes", self.muster("k8s", "resume", self.run_folder))

    def test_a_pod_with_another_token_is_not_let_in(self):
        self.cluster.held = {"n3"}
        self.start("15s")
        self.cluster.wait(lambda: sum(pod["status"]["phase"] == "Running" for pod in self.cluster.pods()) == 3, "three pods")
        secret, = self.cluster.store.list("secrets")
        self.cluster.store.change("secrets", "default", secret["metadata"]["name"],
                                  lambda thing: thing["data"].update(token=base64.b64encode(b"0" * 64).decode()))
        self.cluster.held = set()
        self.wait_for_end()
        self.muster("k8s", "collect", self.run_folder, code=3)
        self.assertNotIn("accepted", self.fleet().values())


if __name__ == "__main__":
    case.main()

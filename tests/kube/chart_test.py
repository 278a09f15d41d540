# SPDX-License-Identifier: Apache-2.0
"""The Helm chart over a matrix of values: it is accepted by helm, by the schemas of Kubernetes and by our own rules, and refuses mistakes."""
import glob
import json
import os
import tempfile
import unittest

import tools

tools.require()
import yaml

import api_server

EXAMPLES = sorted(glob.glob(os.path.join(tools.CHART, "examples/*.yaml")))
# Sets of values beside the examples.
MORE = [{}, {"scenario": "x", "waivers": "y", "options": ["--strict"]}, {"image": {"digest": "sha256:" + "0" * 64}}, {"gpus": 0, "labels": {"team": "ops"}},
        {"nodes": ["a"], "recordKeys": {"a": "k"}, "plan": {"text": "schema = 1", "name": "p.toml"}, "run": {"id": "r-1"}},
        {"kind": "cluster", "nodes": ["a", "b"], "token": {"value": "t" * 32}, "recordKeys": {"a": "k", "b": "l"}, "priorityClass": "high"},
        {"kind": "scheduled", "nodes": ["a", "b"], "runVolume": {"persistentVolumeClaim": {"claimName": "records"}}, "budget": ""},
        {"runVolume": {"persistentVolumeClaim": {"claimName": "records"}}, "ttlSeconds": 2592000, "affinity": {"nodeAffinity": {}}},
        {"kind": "preflight", "preflight": {"image": "r/m:1", "taint": "own/gate"}, "image": {"pullSecrets": ["s"]}}]
REFUSED = [({"image": {"tag": "latest"}}, "latest may change"), ({"gpu": 8}, "gpu"), ({"kind": "job"}, "kind"), ({"fabric": "myrinet"}, "fabric: myrinet is unknown"),
           ({"kind": "cluster"}, "token"), ({"kind": "preflight"}, "preflight.image"), ({"nodes": ["a", "a"]}, "nodes"), ({"nodeCount": 0}, "nodeCount"),
           ({"kind": "preflight", "preflight": {"image": "m:latest"}}, "latest may change"), ({"plan": {"name": "../p"}}, "name"),
           ({"kind": "preflight", "preflight": {"image": "m:1"}, "scenario": "s"}, "cannot release a node"),
           ({"kind": "preflight", "preflight": {"image": "m:1"}, "options": ["--only=gemm"]}, "cannot release a node"),
           ({"kind": "preflight", "preflight": {"image": "m:1"}, "runVolume": {"persistentVolumeClaim": {"claimName": "records"}}}, "releases a node"), ({"deadlineSeconds": 0}, "deadlineSeconds")]


# What checkov finds and we keep, with the reason.
ACCEPTED = {
    "CKV_K8S_21": "the namespace is chosen by who installs the chart",
    "CKV_K8S_43": "a version is a valid way to name an image; a digest is offered (image.digest)",
    "CKV_K8S_15": "a version does not change, and is not pulled again for each of many pods (image.pullPolicy)",
    "CKV_K8S_8": "a pod that runs once to its end has nothing to probe",
    "CKV_K8S_9": "the same",
    "CKV2_K8S_6": "nodes of a cluster run connect to each other on ports that the plan chooses; a policy belongs to the site",
}
# Those that only some values need.
PRIVILEGED = {"lockMemory": {"CKV_K8S_40": "root: a user without privileges gets no effective capability",
                             "CKV_K8S_23": "the same",
                             "CKV_K8S_25": "IPC_LOCK: RDMA registers memory that must be locked", "CKV_K8S_28": "the same", "CKV_K8S_37": "the same"},
              "kernelLog": {"CKV_K8S_16": "the kernel log can be read by a privileged container only", "CKV_K8S_20": "the same", "CKV_K8S_23": "the same",
                            "CKV_K8S_40": "the same", "CKV_K8S_37": "the same", "CKV_K8S_28": "the same"}}


def values_of(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def render(values, code=0):
    done = tools.run("helm", "template", "run", tools.CHART, "--namespace", "default", "--values", "-", input=json.dumps(values), code=code)
    return objects(done.stdout) if code == 0 else done.stderr


def objects(text):
    return [thing for thing in yaml.load_all(text, Loader=yaml.CSafeLoader) if thing]


def pod_specs(things):
    """(kind, spec of the job or daemon set, spec of its pod)."""
    for thing in things:
        kind, spec = thing["kind"], thing.get("spec", {})
        if kind == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if kind == "JobSet":
            spec = spec["replicatedJobs"][0]["template"]["spec"]
        if "template" in spec:
            yield kind, spec, spec["template"]["spec"]


class Chart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.matrix = [(values, render(values)) for values in [values_of(path) for path in EXAMPLES] + MORE]

    def each(self):
        for values, things in self.matrix:
            with self.subTest(values=values):
                yield values, things

    def test_every_object_is_valid(self):
        for _, things in self.each():
            for thing in things:
                api_server.validate(thing)

    def test_kubectl_creates_and_deletes_every_example(self):
        with tempfile.TemporaryDirectory() as folder:
            api = api_server.ApiServer(folder)
            self.addCleanup(api.close)
            for things in [things for values, things in self.matrix][:len(EXAMPLES)]:
                text = yaml.safe_dump_all(things)
                for verb in ("create", "delete"):
                    tools.run("kubectl", "--kubeconfig", api.kubeconfig, verb, "--filename", "-", *(["--wait=false"] if verb == "delete" else []), input=text)
                    kept = sum(len(api.store.list(kind[0])) for kind in api_server.KINDS) - 1  # the namespace
                    self.assertEqual(kept, len(things) if verb == "create" else 0)

    def test_lint_finds_nothing(self):
        tools.run("helm", "lint", "--strict", tools.CHART)
        for path in EXAMPLES:
            tools.run("helm", "lint", "--strict", tools.CHART, "--values", path)

    def test_mistakes_are_refused_and_named(self):
        for values, text in REFUSED:
            with self.subTest(values=values):
                self.assertIn(text, render(values, code=1))

    def test_privileges_are_only_those_that_the_values_ask_for(self):
        for values, things in self.each():
            for _, _, pod in pod_specs(things):
                root = bool(values.get("lockMemory") or values.get("kernelLog"))
                self.assertEqual(pod["securityContext"]["runAsNonRoot"], not root)
                self.assertEqual(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
                self.assertEqual(pod.get("hostNetwork", False), values.get("hostNetwork", False))
                self.assertFalse(pod["automountServiceAccountToken"])
                self.assertNotIn("hostPID", pod)
                self.assertNotIn("hostIPC", pod)
                self.assertEqual([v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v], ["/sys"] if values.get("hostSysfs") else [])
                for container in pod.get("initContainers", []) + pod["containers"]:
                    security = container["securityContext"]
                    self.assertTrue(security["readOnlyRootFilesystem"])
                    self.assertEqual(security["privileged"], values.get("kernelLog", False))
                    if not security["privileged"]:
                        self.assertFalse(security["allowPrivilegeEscalation"])
                        self.assertEqual(security["capabilities"], {"drop": ["ALL"], **({"add": ["IPC_LOCK"]} if values.get("lockMemory") else {})})

    def test_every_container_is_limited_and_every_image_has_a_version(self):
        for _, things in self.each():
            for _, _, pod in pod_specs(things):
                for container in pod.get("initContainers", []) + pod["containers"]:
                    self.assertEqual(container["resources"]["requests"], container["resources"]["limits"])
                    self.assertLessEqual({"cpu", "memory"}, set(container["resources"]["limits"]))
                    self.assertRegex(container["image"], r"(:[^:/@]+|@sha256:[0-9a-f]{64})$")
                    self.assertFalse(container["image"].endswith(":latest"))

    def test_every_job_ends_is_never_retried_and_is_removed(self):
        for _, things in self.each():
            for kind, spec, pod in pod_specs(things):
                if kind == "DaemonSet":
                    continue
                self.assertEqual(pod["restartPolicy"], "Never")
                self.assertEqual(spec.get("backoffLimit", spec.get("backoffLimitPerIndex")), 0)
                self.assertGreater(spec["activeDeadlineSeconds"], 0)
                if kind != "JobSet":  # the JobSet itself has one
                    self.assertGreater(spec["ttlSecondsAfterFinished"], 0)
            for thing in things:
                if thing["kind"] == "JobSet":
                    self.assertGreater(thing["spec"]["ttlSecondsAfterFinished"], 0)
                    self.assertEqual(thing["spec"]["failurePolicy"]["maxRestarts"], 0)

    def test_secrets_are_files_and_only_preflight_may_use_the_api(self):
        for values, things in self.each():
            kinds = {thing["kind"] for thing in things}
            roles = [thing for thing in things if thing["kind"] == "ClusterRole"]
            self.assertEqual("ServiceAccount" in kinds, values.get("kind") == "preflight")
            for role in roles:
                self.assertEqual(role["rules"], [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}])
            self.assertEqual(len(roles), int(values.get("kind") == "preflight"))
            for _, _, pod in pod_specs(things):
                self.assertNotIn("secretKeyRef", json.dumps(pod))
                for container in pod.get("initContainers", []):
                    self.assertNotIn("api", [mount["name"] for mount in container["volumeMounts"]])

    def test_named_nodes_have_a_job_each_that_only_they_can_run(self):
        things = render({"nodes": ["a", "b", "c"]})
        jobs = [thing for thing in things if thing["kind"] == "Job"]
        pinned = [job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
                  for job in jobs]
        self.assertEqual([[term["matchFields"][0]["values"] for term in terms] for terms in pinned], [[["a"]], [["b"]], [["c"]]])

    def test_checkov_finds_nothing_without_a_reason(self):
        try:
            folder = tools.packages("checkov", tools.CHECKOV)
        except tools.registry.Unavailable as error:
            if os.environ.get("CI"):
                raise
            self.skipTest(str(error))
        with tempfile.TemporaryDirectory() as rendered:
            used = {}
            for path in EXAMPLES:
                name = os.path.basename(path)
                used[name] = values_of(path)
                with open(os.path.join(rendered, name), "w", encoding="utf-8") as file:
                    yaml.safe_dump_all(next(things for values, things in self.matrix if values == used[name]), file)
            done = tools.run(os.sys.executable, os.path.join(folder, "bin/checkov"), "--directory", rendered, "--framework", "kubernetes", "--compact",
                             "--quiet", "--output", "json", code=None, env={**os.environ, "PYTHONPATH": folder, "LOG_LEVEL": "ERROR"})
        report = json.loads(done.stdout)
        self.assertGreater(report["summary"]["passed"], 100)
        self.assertEqual(report["summary"]["parsing_errors"], 0)
        unexplained, seen = set(), set()
        for failed in report["results"]["failed_checks"]:
            name = os.path.basename(failed["file_path"])
            allowed = set(ACCEPTED)
            for value, checks in PRIVILEGED.items():
                allowed |= set(checks) if used[name].get(value) else set()
            seen.add(failed["check_id"])
            if failed["check_id"] not in allowed:
                unexplained.add((name, failed["check_id"], failed["check_name"], failed["resource"]))
        self.assertEqual(unexplained, set())
        explained = set(ACCEPTED) | {check for checks in PRIVILEGED.values() for check in checks}
        self.assertEqual(explained - seen, set(), "exceptions that nothing needs any more")


if __name__ == "__main__":
    unittest.main()

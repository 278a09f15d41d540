# SPDX-License-Identifier: Apache-2.0
"""A small cluster behind the stand-in: scheduler, controllers of Job and DaemonSet, and kubelets that run containers as processes.

Each node is a network namespace. A container has its own root (pod.sh), read-only, with the volumes that its pod has, and runs as the pod's
user without capabilities. SIMULATED is only what is around it: the program, its signals and its exit code are real.
"""
import base64
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import api_server
import tools

HERE = os.path.dirname(os.path.abspath(__file__))
RESTART_DELAY = 0.3  # seconds before a container starts again; kubelet: 10 s and more


def why_not():
    """Why no pods can be run here; empty when they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    return "" if shutil.which("ip") and shutil.which("setpriv") and shutil.which("openssl") else "ip, setpriv or openssl is not installed"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Container:
    """One start of a container."""

    def __init__(self, cluster, pod, spec):
        self.cluster, self.pod, self.spec = cluster, pod, spec
        self.name = spec["name"]
        self.folder = cluster.pod_folder(pod)
        self.log = os.path.join(self.folder, self.name + ".log")
        self.process = None
        self.killed = self.evicted = self.again = False

    def printed(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def environment(self):
        meta, api = self.pod["metadata"], self.cluster.address(0)
        fields = {"spec.nodeName": self.pod["spec"]["nodeName"], "metadata.name": meta["name"], "metadata.uid": meta["uid"],
                  "metadata.namespace": meta["namespace"]}
        variables = {"PATH": "/entry:/opt/muster/bin:/usr/local/bin:/usr/bin:/bin:/kubectl", "HOSTNAME": self.cluster.host_name(self.pod),
                     "KUBERNETES_SERVICE_HOST": api, "KUBERNETES_SERVICE_PORT": "6443", "OMP_NUM_THREADS": "1"}
        index = meta.get("annotations", {}).get("batch.kubernetes.io/job-completion-index")
        if index is not None:
            variables["JOB_COMPLETION_INDEX"] = index
        for one in self.spec.get("env", []):
            variables[one["name"]] = one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
        return [f"{name}={value}" for name, value in variables.items()]

    def start(self):
        security = self.pod["spec"]["securityContext"]
        root = tempfile.mkdtemp(dir=self.folder)
        volumes = self.cluster.volumes(self.pod)
        binds = [f"{tools.DIST}:/opt/muster:ro", f"{self.cluster.entry}:/entry:ro", f"{self.cluster.hosts}:/etc/hosts", f"{tools.programs()}:/kubectl:ro"]
        for mount in self.spec["volumeMounts"]:
            binds.append(f"{volumes[mount['name']]}:{mount['mountPath']}" + (":ro" if mount.get("readOnly") else ""))
        command = ["env", "-i", *self.environment(), *self.spec["command"], *self.spec.get("args", [])]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["nsenter", "--net=/run/netns/" + self.cluster.space(self.pod["spec"]["nodeName"]), "unshare", "--mount", "--uts", "--pid", "--fork",
                 "--kill-child", "sh", os.path.join(HERE, "pod.sh"), root, self.cluster.host_name(self.pod), str(security["runAsUser"]),
                 str(security["fsGroup"]), self.spec.get("workingDir", "/"), *binds, "--", *command],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)

    def child(self):
        """The first process inside; None before it runs or after its end."""
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                return int(file.read().split()[0])
        except (OSError, IndexError):
            return None

    def kill(self):
        """Its first process, and with it all that it started. Not the program around it: it would leave them behind."""
        self.killed = True
        while self.process.poll() is None:
            child = self.child()
            if child:
                os.kill(child, signal.SIGKILL)
                self.process.wait()
            time.sleep(0.01)

    def code(self):
        """Its exit code as Kubernetes shows it; None while it runs."""
        code = self.process.poll()
        if code is not None and self.killed:
            return 137  # unshare fails then, with a code of its own
        return code if code is None or code >= 0 else 128 - code


class Cluster:
    """Nodes n0, n1 ... ; all of it goes with close()."""

    def __init__(self, count, gpus=0):
        self.folder = tempfile.mkdtemp(prefix="muster-kube-")
        os.chmod(self.folder, 0o755)
        self.prefix = f"mk-{os.getpid()}-{os.path.basename(self.folder)[-4:]}"
        self.hosts = os.path.join(self.folder, "hosts")
        self.entry = os.path.join(self.folder, "entry")
        os.mkdir(self.entry)
        shutil.copy(os.path.join(tools.SOURCE, "docker/entrypoint.sh"), os.path.join(self.entry, "muster-entrypoint"))
        os.chmod(os.path.join(self.entry, "muster-entrypoint"), 0o755)
        open(self.hosts, "w", encoding="ascii").close()
        os.chmod(self.hosts, 0o644)
        ip("netns", "add", self.prefix)
        ip("-n", self.prefix, "link", "add", "br0", "type", "bridge")
        ip("-n", self.prefix, "addr", "add", self.address(0) + "/24", "dev", "br0")
        for name in ("lo", "br0"):
            ip("-n", self.prefix, "link", "set", name, "up")
        self.api = api_server.ApiServer(self.folder, self.prefix, self.address(0))
        self.store = self.api.store
        os.environ["KUBECONFIG"] = self.api.kubeconfig
        self.held = set()    # nodes on which pods do not start yet
        self.doomed = set()  # nodes that evict a pod as soon as it runs
        self.resting = set()  # pods whose containers do not start again yet
        self.containers = {}  # pod's uid: its running container
        self.ending = threading.Event()
        self.failures = []
        for index in range(count):
            self.add_node(index, gpus)
        self.threads = []
        self.begin(self.control)

    # Nodes

    @staticmethod
    def address(index):
        return f"10.78.0.{index + 1}"

    def space(self, node):
        return f"{self.prefix}-{node}"

    def add_node(self, index, gpus):
        name, port = f"n{index}", f"p{index}"
        ip("netns", "add", self.space(name))
        ip("-n", self.prefix, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", self.space(name))
        ip("-n", self.prefix, "link", "set", port, "master", "br0", "up")
        ip("-n", self.space(name), "addr", "add", self.address(index + 1) + "/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", self.space(name), "link", "set", device, "up")
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
        if gpus:
            amounts["nvidia.com/gpu"] = str(gpus)
        self.store.create("nodes", "", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {}},
                          {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": amounts, "capacity": amounts,
                           "addresses": [{"type": "InternalIP", "address": self.address(index + 1)}]})

    def change_node(self, name, function):
        self.store.change("nodes", "", name, function)

    def taint(self, name, key):
        self.change_node(name, lambda node: node["spec"].setdefault("taints", []).append({"key": key, "value": "pending", "effect": "NoSchedule"}))

    def taints(self, name):
        return [taint["key"] for taint in self.store.get("nodes", "", name)["spec"].get("taints", [])]

    # Pods

    def pod_folder(self, pod):
        folder = os.path.join(self.folder, "pods", pod["metadata"]["uid"])
        os.makedirs(folder, exist_ok=True)
        return folder

    @staticmethod
    def host_name(pod):
        spec = pod["spec"]
        return spec["nodeName"] if spec.get("hostNetwork") else spec.get("hostname", pod["metadata"]["name"])

    def claim(self, name):
        return os.path.join(self.folder, "claims", name)

    def volumes(self, pod):
        """Folders with the contents of the pod's volumes, made at its first start; those of a claim are every pod's."""
        paths = {}
        for volume in pod["spec"]["volumes"]:
            claim = volume.get("persistentVolumeClaim")
            path = paths[volume["name"]] = self.claim(claim["claimName"]) if claim else os.path.join(self.pod_folder(pod), "volumes", volume["name"])
            if os.path.exists(path):
                continue
            os.makedirs(path)
            group = pod["spec"]["securityContext"]["fsGroup"]
            if claim or "emptyDir" in volume:
                os.chown(path, 0, group)
                os.chmod(path, 0o2777)
            elif "configMap" in volume:
                self.fill(path, pod, {"configMap": volume["configMap"]}, 0o644, group)
            elif "projected" in volume:
                for source in volume["projected"]["sources"]:
                    self.fill(path, pod, source, volume["projected"]["defaultMode"], group)
            else:
                raise ValueError(f"volume {volume} is not served")
        return paths

    def fill(self, path, pod, source, mode, group):
        space = pod["metadata"]["namespace"]
        (kind, what), = source.items()
        if kind == "serviceAccountToken":
            token = f"token-{pod['metadata']['uid']}"
            self.store.tokens[token] = (space, pod["spec"]["serviceAccountName"])
            files = {what["path"]: token.encode()}
        elif kind == "downwardAPI":
            files = {item["path"]: space.encode() for item in what["items"]}
        elif kind == "configMap" and what["name"] == "kube-root-ca.crt":
            with open(self.api.ca, "rb") as file:
                files = {"ca.crt": file.read()}
        else:
            thing = self.store.get(kind.lower() + "s", space, what["name"])
            data = {key: (base64.b64decode(value) if kind == "secret" else value.encode()) for key, value in thing["data"].items()}
            files = {item["path"]: data[item["key"]] for item in what["items"]} if "items" in what else data
        for name, content in files.items():
            target = os.path.join(path, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(content)
            os.chown(target, 0, group)
            os.chmod(target, mode)

    def begin(self, function, *arguments):
        def guarded():
            try:
                function(*arguments)
            except Exception as error:  # a test must see it
                self.failures.append(error)
                raise
        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        self.threads.append(thread)

    def pods(self, **labels):
        return [pod for pod in self.store.list("pods") if all(pod["metadata"]["labels"].get(key) == value for key, value in labels.items())]

    def pod_on(self, node):
        """The newest pod on a node."""
        found = [pod for pod in self.pods() if pod["spec"].get("nodeName") == node]
        return max(found, key=lambda pod: int(pod["metadata"]["resourceVersion"]), default=None)

    def set_status(self, pod, **status):
        meta = pod["metadata"]
        self.store.change("pods", meta["namespace"], meta["name"], lambda thing: thing["status"].update(status))

    def exists(self, pod):
        return ("pods", pod["metadata"]["namespace"], pod["metadata"]["name"]) in self.store.objects

    def run_pod(self, pod):
        """A kubelet's work on one pod."""
        init, main = pod["spec"].get("initContainers", []), pod["spec"]["containers"]
        for spec in init + main:
            restarts = 0
            while True:
                container = Container(self, pod, spec)
                self.store.logs[pod["metadata"]["uid"], spec["name"]] = container.printed
                container.start()
                self.containers[pod["metadata"]["uid"]] = container
                if pod["spec"]["nodeName"] in self.doomed:
                    self.evict(container)
                self.set_status(pod, phase="Pending" if spec in init else "Running",
                                containerStatuses=[{"name": spec["name"], "restartCount": restarts, "state": {"running": {}}}])
                while container.code() is None and not self.ending.is_set():
                    time.sleep(0.05)
                    if not self.exists(pod):
                        container.kill()
                code = container.code()
                done = [{"name": spec["name"], "restartCount": restarts,
                         "state": {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}}]
                if self.ending.is_set() or not self.exists(pod):
                    return
                if code == 0 and spec in init:
                    break
                if pod["spec"]["restartPolicy"] == "Never" and not container.again:
                    more = {"reason": "Evicted", "message": "The node was low on resource: memory."} if container.evicted else {}
                    return self.set_status(pod, phase="Succeeded" if code == 0 else "Failed", containerStatuses=done, **more)
                self.set_status(pod, containerStatuses=done)
                restarts += 1
                time.sleep(RESTART_DELAY)
                while pod["metadata"]["name"] in self.resting and not self.ending.is_set():
                    time.sleep(0.05)

    def container_on(self, node):
        return self.containers[self.pod_on(node)["metadata"]["uid"]]

    @staticmethod
    def evict(container):
        """What kubelet does when its node runs out of memory."""
        container.evicted = True
        container.kill()

    @staticmethod
    def restart(container):
        """The container starts again in its pod, with the volumes of before: its policy does not ask for it, but a runtime that lost its state may do it."""
        container.again = True
        container.kill()

    # Control loops

    def control(self):
        seen = None
        while not self.ending.wait(0.1):
            state = (self.store.version, len(self.held))
            if state == seen:
                continue
            seen = state
            for job in self.store.list("jobs"):
                self.control_job(job)
            for daemons in self.store.list("daemonsets"):
                self.control_daemons(daemons)
            for jobset in self.store.list("jobsets"):
                self.control_jobset(jobset)
            for pod in self.store.list("pods"):
                if not pod["spec"].get("nodeName"):
                    self.schedule(pod)

    def make_pod(self, owner, name, template, labels, annotations, extra):
        spec = {**template["spec"], **extra}
        meta = template.get("metadata", {})
        self.store.create("pods", owner["metadata"]["namespace"],
                          {"apiVersion": "v1", "kind": "Pod",
                           "metadata": {"name": name, "labels": {**meta.get("labels", {}), **labels},
                                        "annotations": {**meta.get("annotations", {}), **annotations},
                                        "ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                                                             "uid": owner["metadata"]["uid"], "controller": True}]},
                           "spec": spec}, {"phase": "Pending"})

    def control_job(self, job):
        meta, spec = job["metadata"], job["spec"]
        if job["status"].get("conditions"):
            return
        indexed = spec.get("completionMode") == "Indexed"
        if not job["status"].get("started"):
            for index in range(spec.get("completions", 1)):
                name = f"{meta['name']}-{index}" if indexed else meta["name"]
                marks = {"batch.kubernetes.io/job-completion-index": str(index)} if indexed else {}
                self.make_pod(job, f"{name}-{os.urandom(3).hex()[:5]}", spec["template"], {"batch.kubernetes.io/job-name": meta["name"]}, marks,
                              {"hostname": name})
            return self.store.change("jobs", meta["namespace"], meta["name"], lambda thing: thing["status"].update(started=True))
        pods = [pod for pod in self.pods() if pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") == meta["name"]]
        if any(pod["status"]["phase"] not in ("Succeeded", "Failed") for pod in pods):
            return
        good = len(pods) == spec.get("completions", 1) and all(pod["status"]["phase"] == "Succeeded" for pod in pods)
        end = {"type": "Complete" if good else "Failed", "status": "True", "lastTransitionTime": api_server.now()}
        if not good:
            end.update(reason="FailedIndexes" if indexed else "BackoffLimitExceeded", message="Job has failed")
        self.store.change("jobs", meta["namespace"], meta["name"], lambda thing: thing["status"].update(conditions=[end]))

    def control_jobset(self, jobset):
        meta = jobset["metadata"]
        for replicated in jobset["spec"]["replicatedJobs"]:
            name, template = f"{meta['name']}-{replicated['name']}-0", replicated["template"]
            if self.store.get("jobs", meta["namespace"], name) is None and not jobset["status"].get("started"):
                template["spec"]["template"]["spec"]["subdomain"] = jobset["spec"]["network"]["subdomain"]
                labels = {**template.get("metadata", {}).get("labels", {}), "jobset.sigs.k8s.io/jobset-name": meta["name"]}
                self.store.create("jobs", meta["namespace"],
                                  {"apiVersion": "batch/v1", "kind": "Job",
                                   "metadata": {"name": name, "labels": labels, "ownerReferences": [
                                       {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "name": meta["name"], "uid": meta["uid"]}]},
                                   "spec": template["spec"]})
                self.store.change("jobsets", meta["namespace"], meta["name"], lambda thing: thing["status"].update(started=True))

    def control_daemons(self, daemons):
        for node in self.store.list("nodes"):
            name = f"{daemons['metadata']['name']}-{node['metadata']['name']}"
            if self.store.get("pods", daemons["metadata"]["namespace"], name) is None and self.fits(daemons["spec"]["template"], node, []):
                self.make_pod(daemons, name, daemons["spec"]["template"], {}, {}, {"nodeName": node["metadata"]["name"]})
                self.begin(self.run_pod, self.store.get("pods", daemons["metadata"]["namespace"], name))

    def fits(self, pod, node, others):
        """Why a pod cannot run on a node counts for nothing here: only whether it can."""
        spec, name = pod["spec"], node["metadata"]["name"]
        if node["spec"].get("unschedulable") or name in self.held:
            return False
        tolerated = {toleration.get("key") for toleration in spec.get("tolerations", [])}
        if any(taint["key"] not in tolerated for taint in node["spec"].get("taints", [])):
            return False
        if any(node["metadata"]["labels"].get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
            return False
        affinity = spec.get("affinity", {})
        terms = affinity.get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
        if terms and not any(all(name in field["values"] for field in term["matchFields"]) for term in terms):
            return False
        for term in affinity.get("podAntiAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", []):
            wanted = term["labelSelector"]["matchLabels"].items()
            if any(all(other["metadata"]["labels"].get(key) == value for key, value in wanted) for other in others):
                return False
        wants = sum(int(c["resources"]["limits"].get("nvidia.com/gpu", 0)) for c in spec["containers"])
        return wants <= int(node["status"]["allocatable"].get("nvidia.com/gpu", 0))

    def schedule(self, pod):
        for node in self.store.list("nodes"):
            name = node["metadata"]["name"]
            others = [other for other in self.pods() if other["spec"].get("nodeName") == name and other["status"]["phase"] in ("Pending", "Running")]
            if not self.fits(pod, node, others):
                continue
            meta = pod["metadata"]
            self.store.change("pods", meta["namespace"], meta["name"], lambda thing: thing["spec"].update(nodeName=name))
            pod = self.store.get("pods", meta["namespace"], meta["name"])
            with open(self.hosts, "a", encoding="ascii") as file:  # the cluster's DNS
                stem = f"{self.host_name(pod)}.{pod['spec'].get('subdomain', 'none')}"
                address = node["status"]["addresses"][0]["address"]
                file.write(f"{address} {stem}.{meta['namespace']}.svc.cluster.local {stem} {self.host_name(pod)}\n")
            return self.begin(self.run_pod, pod)
        if not pod["status"].get("conditions"):
            self.set_status(pod, conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0 nodes are available"}])
        return None

    # Tests

    def wait(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if self.failures:
                raise self.failures[0]
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {seconds} s\n{self.describe()}")
            time.sleep(0.05)

    def describe(self):
        lines = []
        for pod in self.pods():
            lines.append(f"{pod['metadata']['name']} on {pod['spec'].get('nodeName')}: {pod['status']}")
            for name in [c["name"] for c in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]]:
                log = self.store.logs.get((pod["metadata"]["uid"], name))
                if log:
                    lines.append(log().split("#muster-record")[0][:2000])
        return "\n".join(lines)

    def close(self):
        self.ending.set()
        for thread in self.threads:
            thread.join(10)
        for container in self.containers.values():
            container.kill()
        self.api.close()
        for node in self.store.list("nodes"):
            subprocess.run(["ip", "netns", "del", self.space(node["metadata"]["name"])], check=False)
        subprocess.run(["ip", "netns", "del", self.prefix], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

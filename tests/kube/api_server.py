# SPDX-License-Identifier: Apache-2.0
"""A stateful stand-in for kube-apiserver: speaks the API over HTTPS to the real kubectl and helm.

No kube-apiserver is in the registries that this project uses. This one keeps objects, serves discovery, get, list, create, patch and
delete, refuses every object that the OpenAPI schema of its kind refuses (unknown fields too), and decides over service accounts by the
roles that were created. What it has no schema for, it refuses.
"""
import base64
import copy
import ctypes
import datetime
import http.server
import json
import os
import re
import socket
import socketserver
import ssl
import subprocess
import threading
import uuid
from urllib.parse import parse_qs, urlsplit

import jobset_schema

VERSION = "v1.37.0"
# plural, kind, group/version, namespaced
KINDS = [("nodes", "Node", "v1", False), ("namespaces", "Namespace", "v1", False), ("pods", "Pod", "v1", True), ("services", "Service", "v1", True),
         ("configmaps", "ConfigMap", "v1", True), ("secrets", "Secret", "v1", True), ("serviceaccounts", "ServiceAccount", "v1", True),
         ("resourcequotas", "ResourceQuota", "v1", True), ("jobs", "Job", "batch/v1", True), ("cronjobs", "CronJob", "batch/v1", True),
         ("daemonsets", "DaemonSet", "apps/v1", True), ("clusterroles", "ClusterRole", "rbac.authorization.k8s.io/v1", False),
         ("clusterrolebindings", "ClusterRoleBinding", "rbac.authorization.k8s.io/v1", False),
         ("priorityclasses", "PriorityClass", "scheduling.k8s.io/v1", False), ("jobsets", "JobSet", "jobset.x-k8s.io/v1alpha2", True)]
CLONE_NEWNET = 0x40000000


class Refused(Exception):
    """An answer other than success."""

    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.reason = code, reason


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def validate(thing):
    """Refuses an object that its kind's schema refuses."""
    import jsonschema
    import kubernetes_validate
    try:
        if thing.get("kind") == "JobSet":
            jobset_schema.validate(thing)
        else:
            kubernetes_validate.validate(thing, "1.37", strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
        path = ".".join(str(part) for part in error.absolute_path)
        raise Refused(422, "Invalid", f"{thing.get('kind')}: {path}: {error.message[:300]}") from error
    except kubernetes_validate.SchemaNotFoundError as error:
        raise Refused(400, "BadRequest", error.message) from error


def patched(thing, operations):
    """RFC 6902 as far as kubectl patch --type=json is used here: test, add, replace, remove."""
    thing = copy.deepcopy(thing)
    for operation in operations:
        keys = [key.replace("~1", "/").replace("~0", "~") for key in operation["path"].split("/")[1:]]
        parent = thing
        try:
            for key in keys[:-1]:
                parent = parent[int(key)] if isinstance(parent, list) else parent[key]
            last = int(keys[-1]) if isinstance(parent, list) and keys[-1] != "-" else keys[-1]
            if operation["op"] == "test":
                if parent[last] != operation["value"]:
                    raise KeyError("test failed")
            elif operation["op"] == "remove":
                del parent[last]
            elif isinstance(parent, list):
                parent.insert(len(parent) if last == "-" else last, operation["value"])
            else:
                parent[last] = operation["value"]
        except (KeyError, IndexError, TypeError) as error:
            raise Refused(422, "Invalid", f"the server rejected our request due to an error in our request: {error}") from error
    return thing


class Store:
    """All objects, by kind, namespace and name."""

    def __init__(self):
        self.lock = threading.RLock()
        self.objects = {}
        self.version = 1
        self.tokens = {}   # token of a service account: (namespace, name)
        self.logs = {}     # (pod's uid, container): function that gives the text
        self.seen = []     # (verb, plural, name) of every request, for tests
        self.refused = ("", 0)  # no more than so many of these are taken

    def list(self, plural, space=None):
        with self.lock:
            return [copy.deepcopy(thing) for (kind, where, _), thing in sorted(self.objects.items())
                    if kind == plural and space in (None, where)]

    def get(self, plural, space, name):
        with self.lock:
            thing = self.objects.get((plural, space, name))
            return copy.deepcopy(thing) if thing else None

    def put(self, plural, space, thing):
        with self.lock:
            self.version += 1
            thing["metadata"]["resourceVersion"] = str(self.version)
            self.objects[plural, space, thing["metadata"]["name"]] = thing
            return copy.deepcopy(thing)

    def create(self, plural, space, thing, status=None):
        thing = copy.deepcopy(thing)
        with self.lock:
            if plural != "pods":  # controllers make them of templates that were checked
                validate(thing)
            name = thing["metadata"]["name"]
            if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name) or (plural in ("jobs", "services", "pods") and len(name) > 63):
                raise Refused(422, "Invalid", f"metadata.name: {name} is no DNS name of at most 63 characters")
            for label, value in thing["metadata"].get("labels", {}).items():
                if not re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", value):
                    raise Refused(422, "Invalid", f"metadata.labels: {label}: {value}")
            if (plural, space, name) in self.objects:
                raise Refused(409, "AlreadyExists", f"{plural} \"{name}\" already exists")
            if plural == self.refused[0] and len(self.list(plural)) >= self.refused[1]:
                raise Refused(403, "Forbidden", f"{plural} \"{name}\" is forbidden: exceeded quota")
            thing["metadata"].update(uid=str(uuid.uuid4()), creationTimestamp=now())
            if space:
                thing["metadata"]["namespace"] = space
            for key, value in thing.pop("stringData", {}).items():
                thing.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
            thing["status"] = status or {}
            return self.put(plural, space, thing)

    def change(self, plural, space, name, function):
        """Changes an object as one step; nothing if it is gone."""
        with self.lock:
            thing = self.get(plural, space, name)
            if thing is not None:
                function(thing)
                self.put(plural, space, thing)

    def delete(self, plural, space, name):
        with self.lock:
            gone = self.objects.pop((plural, space, name), None)
            for (kind, where, other), thing in list(self.objects.items()):
                if gone and any(owner["uid"] == gone["metadata"]["uid"] for owner in thing["metadata"].get("ownerReferences", [])):
                    self.delete(kind, where, other)
            return gone

    def allows(self, account, verb, plural):
        """Whether cluster roles bound to a service account allow this."""
        space, name = account
        for binding in self.list("clusterrolebindings"):
            if not any(s["kind"] == "ServiceAccount" and (s["namespace"], s["name"]) == account for s in binding.get("subjects", [])):
                continue
            role = self.get("clusterroles", "", binding["roleRef"]["name"])
            if role and any(plural in rule["resources"] and verb in rule["verbs"] for rule in role["rules"]):
                return True
        return False


def openapi(version):
    """Says that fields are validated here, so that kubectl leaves it to the server; the schemas themselves are not served."""
    def operation(kind):
        group, _, number = version.rpartition("/")
        return {"x-kubernetes-group-version-kind": {"group": group, "version": number, "kind": kind},
                "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}], "responses": {}}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": VERSION},
            "paths": {"/" + plural: {"patch": operation(kind)} for plural, kind, where, _ in KINDS if where == version}}


def discovery(path):
    """What lists groups, versions and kinds; None for another path."""
    groups = sorted({version.split("/")[0] for _, _, version, _ in KINDS if "/" in version})
    if path == "/version":
        return {"major": "1", "minor": "37", "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "clean", "buildDate": now(), "goVersion": "",
                "compiler": "", "platform": "linux/amd64"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if path == "/apis":
        entry = lambda group: {"groupVersion": versions[group], "version": versions[group].split("/")[1]}
        versions = {version.split("/")[0]: version for _, _, version, _ in KINDS if "/" in version}
        return {"kind": "APIGroupList", "apiVersion": "v1",
                "groups": [{"name": group, "versions": [entry(group)], "preferredVersion": entry(group)} for group in groups]}
    if path == "/openapi/v3":
        return {"paths": {root: {"serverRelativeURL": "/openapi/v3/" + root} for root in
                          {("apis/" if "/" in version else "api/") + version for _, _, version, _ in KINDS}}}
    if path.startswith("/openapi/v3/"):
        return openapi(path.split("/", 4)[-1])
    version = path.split("/", 2)[-1]
    found = [kind for kind in KINDS if kind[2] == version]
    if path not in ("/api/" + version, "/apis/" + version) or not found:
        return None
    verbs = ["create", "delete", "get", "list", "patch"]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
            "resources": [{"name": plural, "singularName": kind.lower(), "namespaced": spaced, "kind": kind, "verbs": verbs}
                          for plural, kind, _, spaced in found]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None
    admin = ""

    def log_message(self, *_):
        pass

    def answer(self, code, content, kind="application/json"):
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_verb(self, verb):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        url = urlsplit(self.path)
        try:
            account = self.account()
            found = discovery(url.path)
            if found is not None:
                return self.answer(200, found)
            code, content = self.on_object(verb, url, body, account)
            return self.answer(code, content, "text/plain" if isinstance(content, str) else "application/json")
        except Refused as error:
            return self.answer(error.code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": str(error), "reason": error.reason,
                                            "code": error.code})

    def account(self):
        """None for the administrator, else a service account."""
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if given == self.admin:
            return None
        if given in self.store.tokens:
            return self.store.tokens[given]
        raise Refused(401, "Unauthorized", "Unauthorized")

    def on_object(self, verb, url, body, account):
        match = re.fullmatch(r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+/[^/]+))(?:/namespaces/(?P<space>[^/]+)(?=/))?/(?P<plural>[a-z]+)"
                             r"(?:/(?P<name>[^/]+))?(?:/(?P<sub>log))?", url.path)
        kind = match and next((k for k in KINDS if k[0] == match["plural"] and k[2] == (match["core"] or match["group"])), None)
        if not kind:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        space, name, query = match["space"] or "", match["name"], parse_qs(url.query)
        verb = "list" if verb == "get" and not name else verb
        if account and not self.store.allows(account, verb, kind[0]):
            raise Refused(403, "Forbidden", f"{kind[0]} is forbidden: {account} cannot {verb}")
        self.store.seen.append((verb, kind[0], name))
        if verb == "create":
            thing = json.loads(body)
            return 201, self.store.create(kind[0], space, thing)
        if verb == "list":
            things = [thing for thing in self.store.list(kind[0], space or None) if selected(thing, query.get("labelSelector", [""])[0])]
            return 200, {"kind": kind[1] + "List", "apiVersion": kind[2], "metadata": {"resourceVersion": str(self.store.version)}, "items": things}
        thing = self.store.get(kind[0], space, name)
        if thing is None:
            raise Refused(404, "NotFound", f"{kind[0]} \"{name}\" not found")
        if match["sub"]:
            return 200, self.store.logs[thing["metadata"]["uid"], query["container"][0]]()
        if verb == "delete":
            self.store.delete(kind[0], space, name)
            return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        if verb == "patch":
            if self.headers["Content-Type"] != "application/json-patch+json":
                raise Refused(415, "UnsupportedMediaType", "only JSON patches are served")
            with self.store.lock:
                changed = patched(self.store.get(kind[0], space, name), json.loads(body))
                return 200, self.store.put(kind[0], space, changed)
        return 200, thing

    def do_GET(self):
        self.handle_verb("get")

    def do_POST(self):
        self.handle_verb("create")

    def do_PATCH(self):
        self.handle_verb("patch")

    def do_DELETE(self):
        self.handle_verb("delete")


def selected(thing, selector):
    labels = thing["metadata"].get("labels", {})
    for part in filter(None, selector.split(",")):
        key, _, value = part.replace("==", "=").partition("=")
        if key not in labels or ("=" in part and labels[key] != value):
            return False
    return True


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


def listen_in(space, server):
    """A socket of a network namespace, whose pods reach the server by it."""
    with open(f"/run/netns/{space}", encoding="utf-8") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    server.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


class ApiServer:
    """Serves a store on 127.0.0.1, and on an address in a network namespace if one is given."""

    def __init__(self, folder, space=None, address=None):
        self.folder, self.store = folder, Store()
        self.ca = os.path.join(folder, "ca.crt")
        self.key = os.path.join(folder, "ca.key")
        names = "IP:127.0.0.1" + (f",IP:{address}" if address else "")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=kubernetes", "-addext", f"subjectAltName={names}", "-keyout", self.key, "-out", self.ca], check=True, capture_output=True)
        self.admin = str(uuid.uuid4())
        handler = type("Bound", (Handler,), {"store": self.store, "admin": self.admin})
        self.servers = [self.start(("127.0.0.1", 0), handler, None)]
        if space:
            self.servers.append(self.start((address, 6443), handler, space))
        self.kubeconfig = os.path.join(folder, "kubeconfig")
        with open(self.kubeconfig, "w", encoding="utf-8") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "test",
                       "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin", "namespace": "default"}}],
                       "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.servers[0].server_port}",
                                                                 "certificate-authority": self.ca}}],
                       "users": [{"name": "admin", "user": {"token": self.admin}}]}, file)
        self.store.create("namespaces", "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})

    def start(self, address, handler, space):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, self.key)
        ready = threading.Event()
        made = []

        def serve():
            server = Server(address, handler, bind_and_activate=False)
            if space:
                server.socket.close()
                listen_in(space, server)
            server.server_bind()
            server.server_activate()
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            made.append(server)
            ready.set()
            server.serve_forever(poll_interval=0.2)

        threading.Thread(target=serve, daemon=True).start()
        ready.wait(10)
        return made[0]

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

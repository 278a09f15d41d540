# SPDX-License-Identifier: Apache-2.0
"""What the tests of `muster k8s` share: a cluster of pods, plans, and how every node is accounted for."""
import json
import os
import shutil
import sys
import tempfile
import unittest

import tools

tools.require()
import cluster as stand_in

IMAGE = "muster:0.1.0"
# Small enough for any machine: the pods of these tests run what the values of a real node would allow.
SMALL = {"resources": {"cpu": "1", "memory": "1Gi"}, "shm": "64Mi"}
PATTERN = """schema = 1
name = "pattern"
sku = "host"
backend = "host"
[[stage]]
name = "pattern"
test = "memory.pattern"
ranks = 1
timeout = "60s"
params = { bytes = "1 MiB" }
"""
RING = """schema = 1
name = "ring"
sku = "host"
backend = "host"
[[stage]]
name = "ring"
test = "collective.sweep"
scope = "cluster"
ranks = 1
timeout = "%s"
params = { from = "8 B", to = "%s", factor = 8, iterations = %d, call_timeout = "20s" }
"""


class Case(unittest.TestCase):
    """One cluster for each test."""

    nodes, gpus = 4, 0

    def setUp(self):
        reason = stand_in.why_not()
        if reason and os.environ.get("CI"):
            self.fail(reason)
        if reason:
            self.skipTest(reason)
        self.folder = tempfile.mkdtemp(prefix="muster-k8s-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cluster = stand_in.Cluster(self.nodes, self.gpus)
        self.addCleanup(self.cluster.close)
        self.values = dict(SMALL)
        self.run_folder = os.path.join(self.folder, "run")

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def muster(self, *words, code=0):
        done = tools.run(tools.MUSTER, *words, code=None, timeout=300, cwd=self.folder)
        if code is not None and done.returncode != code:
            self.fail(f"muster {' '.join(map(str, words))}: exit {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}\n{self.cluster.describe()}")
        return done.stdout + done.stderr

    def submit(self, plan, *words, code=0, nodes="all", image=IMAGE):
        return self.muster("k8s", "submit", plan, "--nodes", nodes, "--image", image, "--values", self.file("values.yaml", self.values), "--out",
                           self.run_folder, "--same-machine", *words, code=code)

    def wait_for_end(self):
        self.cluster.wait(lambda: all(job["status"].get("conditions") for job in self.cluster.store.list("jobs")), "the end of all jobs", 120)

    def states(self):
        """The state of every node that `status` prints."""
        lines = self.muster("k8s", "status", self.run_folder).splitlines()
        return {line.split()[0]: line.split()[1] for line in lines[:-1]}

    def fleet(self):
        """Every node's state in the fleet's report; each must be there exactly once."""
        with open(os.path.join(self.run_folder, "fleet/fleet.json"), encoding="utf-8") as file:
            nodes = [(node["node"], node["state"]) for node in json.load(file)["nodes"]]
        self.assertEqual(len(nodes), len(dict(nodes)))
        self.assertEqual({name for name, _ in nodes}, {f"n{i}" for i in range(self.nodes)})
        return dict(nodes)


def main():
    sys.exit(0 if unittest.main(exit=False).result.wasSuccessful() else 1)

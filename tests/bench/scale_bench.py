# SPDX-License-Identifier: Apache-2.0
"""Times runs over many nodes, all of them processes of this machine: what a node more costs node 0.

Each node is a real `muster run` with real ranks; they meet at 127.0.0.1. The plan is made of cluster stages in which ranks
do next to nothing but meet. Every other node has a PID namespace of its own where that is allowed (root), as its telemetry
reads all of /proc: hundreds of nodes that each see the processes of all would do little else. Of node 0's runner: CPU time, memory and descriptors. The last line has the exponents with which
each value grows with the number of nodes (1: in proportion).
Usage: scale_bench.py BUILD [--nodes 8,16,32,64] [--ranks 8] [--stages 4]. Ends 1 when a run was not accepted.
"""
import argparse
import json
import math
import os
import pathlib
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

STAGE = """
[[stage]]
name = "walk{number}"
plugin = "fake-lockstep"
test = "run"
scope = "cluster"
ranks = {ranks}
timeout = "300s"
[stage.params]
steps = 3
work = 0.001
"""
COLUMNS = ("join s", "stage s", "node 0 CPU s", "CPU ms/stage", "MB", "descriptors", "connections")


def plan_text(ranks, stages):
    head = 'schema = 1\nname = "scale"\nsku = "auto"\nbackend = "host"\n'
    return head + "".join(STAGE.format(number=number, ranks=ranks) for number in range(stages))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Watched:
    """What /proc says of one process: its own CPU time, peak memory and the most descriptors and TCP sockets it had."""

    def __init__(self, pid):
        self.proc = pathlib.Path("/proc", str(pid))
        self.cpu = self.memory = self.descriptors = self.sockets = 0

    def look(self):
        try:
            fields = (self.proc / "stat").read_text().rsplit(")", 1)[1].split()
            self.cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            status = (self.proc / "status").read_text()
            self.memory = int(status.split("VmHWM:")[1].split()[0]) / 1024
            links = [os.readlink(entry) for entry in (self.proc / "fd").iterdir()]
            self.descriptors = max(self.descriptors, len(links))
            self.sockets = max(self.sockets, sum(link.startswith("socket:") for link in links))
        except (OSError, IndexError):
            pass  # it has ended, or a descriptor was closed meanwhile


def run_once(build, nodes, ranks, stages):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-scale-"))
    plugins = folder / "plugins"
    plugins.mkdir()
    shutil.copy(build / "tests/fakes/fake-lockstep.so", plugins)
    plan = folder / "plan.toml"
    plan.write_text(plan_text(ranks, stages))
    environment = dict(os.environ, MUSTER_TOKEN=secrets.token_hex(16), OMP_NUM_THREADS="1")
    place = f"127.0.0.1:{free_port()}"
    begin = time.time()
    runs = []
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        alone = []
    for node in range(nodes):
        command = [*(alone if node > 0 else []), str(build / "dist/bin/muster"), "run", str(plan), "--plugins", str(plugins), "--out", str(folder / "out"),
                   "--plain", "--lost-after", "120s", "--nnodes", str(nodes), "--node-rank", str(node), "--rendezvous", place]
        with open(folder / f"log{node}", "w", encoding="utf-8") as log:
            runs.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    leader = Watched(runs[0].pid)
    while runs[0].poll() is None:
        leader.look()
        time.sleep(0.05)
    codes = [run.wait() for run in runs]
    bad = [node for node, code in enumerate(codes) if code != 0]
    if bad:
        log = (folder / f"log{bad[0]}").read_text()
        print(f"{nodes} x {ranks}: {len(bad)} nodes were not accepted; node {bad[0]} ended with {codes[bad[0]]}:\n{log[-3000:]}")
        return None
    record = json.loads((folder / "out/node-0000/record.json").read_text())
    walks = [stage for stage in record["stages"] if stage["name"].startswith("walk")]
    shutil.rmtree(folder)
    # The first stage begins when node 0 comes to it; it ends after all have joined.
    later = statistics.median(stage["duration"] for stage in walks[1:])
    join = walks[0]["started"] + walks[0]["duration"] - later - begin
    return (join, later, leader.cpu, 1000 * leader.cpu / len(walks), leader.memory, leader.descriptors, leader.sockets)


def exponent(sizes, values):
    """The slope of the line through the logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(max(value, 1e-9)) for value in values]
    mean_x, mean_y = statistics.mean(xs), statistics.mean(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--nodes", default="8,16,32,64")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--stages", type=int, default=4)
    options = parser.parse_args()
    sizes, rows = [], []
    print(f"{'nodes x ranks':14}" + "".join(f"{column:>14}" for column in COLUMNS), flush=True)
    for nodes in (int(size) for size in options.nodes.split(",")):
        values = run_once(options.build.resolve(), nodes, options.ranks, options.stages)
        if values is None:
            return 1
        sizes.append(nodes)
        rows.append(values)
        print(f"{f'{nodes} x {options.ranks}':14}" + "".join(f"{value:14.4g}" for value in values), flush=True)
    if len(sizes) > 1:
        print(f"{'exponent':14}" + "".join(f"{exponent(sizes, column):14.2f}" for column in zip(*rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

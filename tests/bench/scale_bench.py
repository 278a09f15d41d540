# SPDX-License-Identifier: Apache-2.0
"""Times runs over many nodes, all of them processes of this machine: what a node more costs node 0.

Each node is a real `muster run` with real ranks. The plan is made of cluster stages in which ranks do next to nothing but meet.
As root, every node has a network namespace of its own, routed to the others, as Gloo listens on one port for each pair of ranks:
one host has 28,000. And every other node has a PID namespace of its own, as its telemetry reads all of /proc: hundreds of nodes
that each see the processes of all would do little else. Otherwise they meet at 127.0.0.1. Of node 0's runner: CPU time, memory and descriptors. The last line has the exponents with which
each value grows with the number of nodes (1: in proportion).
Usage: scale_bench.py BUILD [--nodes 8,16,32,64] [--ranks 8] [--stages 4] [--kinds [LIST]]. Ends 1 when a run was not accepted.
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
# One stage of each plugin that has scope cluster on CPUs, as small as it goes.
KINDS = {
    "sweep": ("collective", "sweep", 'op = "all_reduce"\nfrom = "8 B"\nto = "64 B"\nfactor = 8\niterations = 2\nwarmup = 1\nlocal_compute_probes = 1\ncall_timeout = "1h"'),
    "ring": ("ring", "ring", 'bytes = "4 KiB"\nsamples = 3\nrails = "alone"\nconfirm = "0s"\nnoise_floor = "25%"\nlatency_noise_floor = 10\ntimeout = "1h"'),
    "sustained": ("compute", "sustained", 'size = 64\nduration = "2s"\nwindow = "500ms"\nstart_timeout = "1h"'),
    "training": ("train", "training", 'width = 4\nbatch_size = 1\nnum_classes = 4\nimage_size = 32\nwarmup_iterations = 1\nactive_iterations = 3\nsolo_iterations = 1\nloader_workers = 1\ngroup_timeout = "1h"'),
    "determinism": ("train", "determinism", 'width = 4\nbatch_size = 1\nnum_classes = 4\nimage_size = 32\niterations = 2\ngroup_timeout = "1h"'),
}
COLUMNS = ("join s", "stage s", "node 0 CPU s", "CPU ms/stage", "MB", "descriptors", "connections")


HEAD = 'schema = 1\nname = "scale"\nsku = "auto"\nbackend = "host"\n'


def kinds_text(names, ranks):
    return HEAD + "".join(
        f'\n[[stage]]\nname = "{name}"\nplugin = "{plugin}"\ntest = "{test}"\nscope = "cluster"\nranks = {ranks}\ntimeout = "90m"\n'
        f"[stage.params]\n{params}\n" for name in names for plugin, test, params in [KINDS[name]])


def plan_text(ranks, stages):
    return HEAD + "".join(STAGE.format(number=number, ranks=ranks) for number in range(stages))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Hosts:
    """Network namespaces of that many hosts, each with one route: to a router that knows them all. Without root: none."""

    def __init__(self, count):
        self.prefix = f"muster-scale-{os.getpid()}"
        self.names = [f"{self.prefix}-n{host}" for host in range(count)] if os.geteuid() == 0 else []

    def __enter__(self):
        if not self.names:
            return self
        self.run(f"netns add {name}" for name in [self.prefix, *self.names])
        in_router = ["-n", self.prefix]
        self.run((f"link add p{host} type veth peer name eth0 netns {name}" for host, name in enumerate(self.names)), in_router)
        for host, name in enumerate(self.names):
            self.run(["link set lo up", f"addr add {self.address(host)}/32 dev eth0", "link set eth0 up", "route add 10.76.0.1 dev eth0",
                      "route add default via 10.76.0.1"], ["-n", name])
        self.run((line for host in range(len(self.names)) for line in (
            f"addr add 10.76.0.1/32 dev p{host}", f"link set p{host} up", f"route add {self.address(host)} dev p{host}")), in_router)
        subprocess.run(["nsenter", f"--net=/run/netns/{self.prefix}", "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
        return self

    def __exit__(self, *_):
        for name in [*self.names, self.prefix] if self.names else []:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)

    @staticmethod
    def run(lines, options=()):
        subprocess.run(["ip", *options, "-batch", "-"], input="\n".join(lines), text=True, check=True)

    def address(self, host):
        return f"10.77.{host // 250}.{host % 250 + 1}" if self.names else "127.0.0.1"

    def enter(self, host):
        """The command line's beginning that runs the rest on this host: /sys shows its network, and still the control groups."""
        if not self.names:
            return []
        see = 'mount --rbind /sys/fs/cgroup /mnt && mount -t sysfs sysfs /sys && mount --rbind /mnt /sys/fs/cgroup && umount -l /mnt && exec "$@"'
        return ["nsenter", f"--net=/run/netns/{self.names[host]}", "unshare", "--mount", "sh", "-c", see, "host"]


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


def launch(build, folder, text, nodes):
    """Runs the plan on so many nodes: their exit codes, and what node 0's runner used."""
    plugins = folder / "plugins"
    plugins.mkdir()
    shutil.copy(build / "tests/fakes/fake-lockstep.so", plugins)
    plan = folder / "plan.toml"
    plan.write_text(text)
    environment = dict(os.environ, MUSTER_TOKEN=secrets.token_hex(16), OMP_NUM_THREADS="1")
    runs = []
    alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        alone = []
    with Hosts(nodes) as hosts:
        place = f"{hosts.address(0)}:{free_port()}"
        for node in range(nodes):
            command = [*hosts.enter(node), *(alone if node > 0 else []), str(build / "dist/bin/muster"), "run", str(plan), "--plugins", str(plugins),
                       "--out", str(folder / "out"), "--plain", "--lost-after", "120s", "--nnodes", str(nodes), "--node-rank", str(node), "--rendezvous", place]
            with open(folder / f"log{node}", "w", encoding="utf-8") as log:
                runs.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        leader = Watched(runs[0].pid)
        while runs[0].poll() is None:
            leader.look()
            time.sleep(0.05)
        return [run.wait() for run in runs], leader


def run_kinds(build, names, nodes, ranks):
    """Prints on how many nodes each kind of stage ran to its end; whether it did on all, and measured. On so full a machine limits of
    rates may be missed, and the ring refuses to judge: outcomes and errors are only shown."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-scale-"))
    codes, _ = launch(build, folder, kinds_text(names, ranks), nodes)
    records = [json.loads(path.read_text()) for path in folder.glob("out/node-*/record.json")]
    if len(records) < nodes:
        print(f"{nodes} x {ranks}: {nodes - len(records)} nodes left no record; node 0 ended with {codes[0]}:\n{(folder / 'log0').read_text()[-3000:]}")
    shutil.rmtree(folder)
    good = len(records) == nodes
    for name in names:
        stages = [next(stage for stage in record["stages"] if stage["name"] == name) for record in records]
        ran = [stage for stage in stages if stage["state"] == "ran" and all(rank["state"] == "ok" for rank in stage["ranks"])]
        measured = any(m["case"] == name for stage in stages for m in stage["measurements"])
        outcomes = {outcome: sum(stage["outcome"] == outcome for stage in stages) for outcome in {stage["outcome"] for stage in stages}}
        print(f"{nodes} x {ranks} {name:12} ran to its end on {len(ran)} nodes{'' if measured else ' and measured nothing'}, "
              f"{max((s['duration'] for s in stages), default=0):.1f} s {outcomes}", flush=True)
        errors = {end["message"] for stage in stages for end in stage["evidence"]["ends"] if end["state"] == "error"}
        for message in sorted(errors)[:3]:
            print(f"  {message}", flush=True)
        good = good and measured and len(ran) == nodes
    return good


def run_once(build, nodes, ranks, stages):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-scale-"))
    begin = time.time()
    codes, leader = launch(build, folder, plan_text(ranks, stages), nodes)
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
    parser.add_argument("--kinds", nargs="?", const=",".join(KINDS), help="instead: one stage of each of these kinds (all); whether all nodes end it")
    options = parser.parse_args()
    sizes, rows = [], []
    print(f"{'nodes x ranks':14}" + "".join(f"{column:>14}" for column in COLUMNS), flush=True)
    if options.kinds:
        return 0 if all([run_kinds(options.build.resolve(), options.kinds.split(","), int(size), options.ranks) for size in options.nodes.split(",")]) else 1
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

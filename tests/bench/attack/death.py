# SPDX-License-Identifier: Apache-2.0
"""A rank, a runner or a host dies at a random moment of a stage of three hosts: nobody may accept that stage.

Hosts are network namespaces joined by a bridge, as in tests/cluster/hosts.cpp, so this needs root. Every kind of cluster
stage runs on real processes (host backend, tiny sizes). What dies is killed, stopped or cut off, or killed and started
again at once; a part of the trials aims at the last second of the stage and at its shutdown. Counted are:
  - survivors and fleets that accept a stage in which somebody died (never allowed);
  - trials in which the survivors name who died (at least 99%), name nobody, or name somebody else (never allowed);
  - fleets that flag another node (never allowed).
A death after all nodes have left the stage is counted apart: then the record that the dead node does not have must keep
the fleet from accepting. With --results FILE, trials that it already holds are counted and not run again.
"""
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import _attack

HOSTS = 3
LOST_AFTER = 4  # seconds
# A survivor that accepts ends its run within this after the last acknowledged leave; one that waited in vain for a
# dead node takes LOST_AFTER at least.
PROMPT = 3
PASSING = ("pass", "warn", "unjudged", "deferred", "waived", "flaky")

# A host's /sys shows its own interfaces, as proof of what carried bytes; and the control groups, as before.
ENTER = ('hostname "$0" && mount --rbind /sys/fs/cgroup /mnt && umount -l /sys && mount -t sysfs sysfs /sys && '
         'mount --rbind /mnt /sys/fs/cgroup && umount -l /mnt && exec "$@"')
SMALL_MODEL = 'width = 8\nbatch_size = 4\nnum_classes = 10\nimage_size = 32\nbucket_bytes = "64 KiB"\n'
# name: (plugin, test, parameters, matrix, rough seconds). Each lasts one to four seconds on an idle core.
KINDS = {
    "stress": ("compute", "sustained", 'size = 128\nduration = "2s"\nwindow = "500ms"\n', "", 3),
    "ring": ("ring", "ring", 'bytes = "512 KiB"\nsamples = 3\nnoise_floor = "25%"\nlatency_noise_floor = "1000%"\n', "", 2),
    "sweep": ("collective", "sweep", 'to = "4 KiB"\nfactor = 64\nwarmup = 1\niterations = 3\nlocal_compute_probes = 3\n',
              'op = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv"]\n', 3),
    "all-reduce": ("collective", "sweep", 'op = "all_reduce"\nfrom = "1 KiB"\nto = "256 KiB"\nfactor = 16\niterations = 50\n', "", 2),
    "training": ("train", "training", SMALL_MODEL + "warmup_iterations = 1\nactive_iterations = 5\nsolo_iterations = 1\n"
                 "loader_workers = 1\n", "", 3),
    "determinism": ("train", "determinism", SMALL_MODEL + "iterations = 3\n", "", 2),
}
WHAT = [("rank", "kill"), ("rank", "stop"), ("runner", "kill"), ("runner", "stop"), ("runner", "restart"),
        ("host", "kill"), ("host", "stop"), ("host", "cut")]


def plan_text(kind: str, draw: random.Random, slow_end: bool) -> str:
    plugin, test, params, matrix, _ = KINDS[kind]
    text = ('schema = 1\nname = "death"\nsku = "auto"\nbackend = "host"\n\n[[stage]]\nname = "victims"\n'
            f'plugin = "{plugin}"\ntest = "{test}"\nscope = "cluster"\nranks = 1\n'
            f'timeout = "{20 if slow_end else 120}s"\nrepeat = {draw.choice([1, 1, 2])}\nattempts = {draw.choice([1, 2])}\n'
            "allow_flaky = true\n")
    text += "[stage.params]\n" + params
    return text + ("[stage.matrix]\n" + matrix if matrix else "")


def run_quietly(*command, check=True):
    subprocess.run(command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL if not check else None)


def ip(*words, check=True):
    run_quietly("ip", *words, check=check)


def file_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class Hosts:
    """Three namespaces on one bridge; used for one trial after the other."""

    def __init__(self, slot: int):
        self.prefix = f"mdeath-{os.getpid()}-{slot}"
        self.hub = self.prefix + "-hub"
        ip("netns", "add", self.hub)
        ip("-n", self.hub, "link", "add", "br0", "type", "bridge")
        ip("-n", self.hub, "link", "set", "br0", "up")
        for host in range(HOSTS):
            space = self.space(host)
            ip("netns", "add", space)
            ip("-n", self.hub, "link", "add", f"p{host}", "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("-n", self.hub, "link", "set", f"p{host}", "master", "br0", "up")
            ip("-n", space, "addr", "add", f"10.77.0.{host + 1}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", "eth0", "up")
            # So slow that the processor's load does not make one link look slower than the others.
            for where, device in ((space, "eth0"), (self.hub, f"p{host}")):
                run_quietly("tc", "-n", where, "qdisc", "add", "dev", device, "root", "handle", "1:",
                            "htb", "default", "1")
                run_quietly("tc", "-n", where, "class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb",
                            "rate", "100mbit", "burst", "128kb", "cburst", "128kb", "quantum", "60000")

    def space(self, host: int) -> str:
        return f"{self.prefix}-n{host}"

    def processes(self, host: int):
        _, listed = _attack.run("ip", "netns", "pids", self.space(host))
        return [int(pid) for pid in listed.split() if pid.isdigit()]

    def link(self, host: int, up: bool) -> None:
        ip("-n", self.hub, "link", "set", f"p{host}", "up" if up else "down")

    def clean(self) -> None:
        for host in range(HOSTS):
            for pid in self.processes(host):
                signal_to(pid, signal.SIGKILL)
            self.link(host, True)

    def remove(self) -> None:
        self.clean()
        for host in range(HOSTS):
            ip("netns", "del", self.space(host), check=False)
        ip("netns", "del", self.hub, check=False)


def signal_to(pid: int, what: int) -> bool:
    try:
        os.kill(pid, what)
        return True
    except ProcessLookupError:
        return False


def descendants(pid: int):
    found = []
    for child in file_text(f"/proc/{pid}/task/{pid}/children").split():
        found += [int(child)] + descendants(int(child))
    return found


def alive(pid: int) -> bool:
    stat = file_text(f"/proc/{pid}/stat")
    return stat != "" and stat.rsplit(")", 1)[1].split()[0] not in "ZX"


class Trial:
    """One run over three hosts, and what is done to one of them."""

    def __init__(self, chosen, hosts: Hosts, folder: str, seed: str, healthy=""):
        self.chosen, self.hosts, self.folder = chosen, hosts, folder
        self.draw = random.Random(seed)
        self.kind = healthy or self.draw.choice(sorted(KINDS))
        self.victim = self.draw.randrange(HOSTS)
        self.what, self.how = ("", "") if healthy else self.draw.choice(WHAT)
        self.phase = self.draw.choice(["any" if self.what == "rank" else "join", "any", "any", "any", "late", "late",
                                       "any" if self.what == "rank" else "shutdown", "shutdown"])
        self.died = 0.0
        self.runs = {}
        fate = f"{self.what} of node {self.victim}: {self.how}, {self.phase}" if self.what else "healthy"
        self.name = f"seed {seed}: {self.kind}, {fate}"

    def start(self, node: int, more) -> None:
        command = ["nsenter", "--net=/run/netns/" + self.hosts.space(node), "unshare", "--uts", "--mount",
                   "sh", "-c", ENTER, f"n{node}",
                   _attack.muster(self.chosen.build), "run", *more, "--lost-after", f"{LOST_AFTER}s", "--arrival", "20s",
                   "--nnodes", str(HOSTS), "--node-rank", str(node), "--rendezvous", "10.77.0.1:29400"]
        environment = {**os.environ, "MUSTER_TOKEN": "a-secret-of-this-bench", "OMP_NUM_THREADS": "1"}
        with open(os.path.join(self.folder, f"output{node}.txt"), "a", encoding="utf-8") as output:
            # The process is the runner itself: each of these commands becomes the next.
            self.runs[node] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                               env=environment)

    def node_folder(self, node: int) -> str:
        return os.path.join(self.folder, "out", f"node-{node:04}")

    def rank_process(self, node: int) -> int:
        """The process of the stage's rank on this node, or 0."""
        for pid in descendants(self.runs[node].pid):
            if (file_text(f"/proc/{pid}/comm") == "muster-rank\n"
                    and "requests/victims.rank" in file_text(f"/proc/{pid}/cmdline")):
                return pid if alive(pid) else 0
        return 0

    def wait_for(self, condition, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.runs[self.victim].poll() is None:
            if condition():
                return True
            time.sleep(0.02)
        return False

    def await_moment(self) -> None:
        rough = self.chosen.rough[self.kind]
        if self.phase == "join":
            time.sleep(self.draw.uniform(0, 1.5))
            return
        self.wait_for(lambda: self.rank_process(self.victim) != 0, 60)
        if self.phase == "any":
            time.sleep(self.draw.uniform(0, rough))
        elif self.phase == "late":
            time.sleep(self.draw.uniform(max(0, rough - 1), rough + 0.3))
        else:
            self.wait_for(lambda: self.rank_process(self.victim) == 0, 60)
            time.sleep(self.draw.uniform(0, 0.5))

    def strike(self) -> bool:
        """False when there was nothing left to strike."""
        run = self.runs[self.victim]
        if run.poll() is not None:
            return False
        number = signal.SIGSTOP if self.how == "stop" else signal.SIGKILL
        self.died = time.time()
        if self.what == "rank":
            pid = self.rank_process(self.victim)
            return pid != 0 and signal_to(pid, number)
        if self.what == "runner":
            run.send_signal(number)
            if self.how == "restart":
                run.wait()
                self.start(self.victim, ["--resume", os.path.join(self.folder, "out")])
            return True
        if self.how in ("kill", "cut"):
            self.hosts.link(self.victim, False)
        if self.how in ("kill", "stop"):
            for pid in [run.pid, *descendants(run.pid)]:
                signal_to(pid, number)
        return True

    def hold(self) -> str:
        """Runs the trial; returns "" or what was wrong with its course."""
        os.makedirs(self.folder)
        plan = os.path.join(self.folder, "plan.toml")
        with open(plan, "w", encoding="utf-8") as file:
            file.write(plan_text(self.kind, self.draw, (self.what, self.how) == ("rank", "stop")))
        for node in range(HOSTS):
            self.start(node, [plan, "--out", os.path.join(self.folder, "out")])
        self.struck = False
        if self.what:
            self.await_moment()
            self.struck = self.strike()
        stuck = ""
        gone = self.what in ("runner", "host") and self.how in ("kill", "stop")
        end = time.monotonic() + 240  # the longest stage takes 120 s, and a busy machine its time
        for node, run in sorted(self.runs.items()):
            if node == self.victim and gone and self.struck:
                continue
            try:
                run.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                stuck += f"node {node} did not end; "
        self.hosts.clean()
        for run in self.runs.values():
            run.wait()
        return stuck

    def record(self, node: int):
        text = file_text(os.path.join(self.node_folder(node), "record.json"))
        return json.loads(text) if text else None

    def fleet(self):
        expected = os.path.join(self.folder, "nodes.txt")
        with open(expected, "w", encoding="utf-8") as file:
            file.write("".join(f"n{node}\n" for node in range(HOSTS)))
        out = os.path.join(self.folder, "fleet")
        code, said = _attack.run(_attack.muster(self.chosen.build), "fleet", os.path.join(self.folder, "out"),
                                 "--expect", expected, "--out", out, *self.chosen.fleet_options)
        text = file_text(os.path.join(out, "fleet.json"))
        return code, said, json.loads(text) if text else {}


def named_in(text: str):
    """The nodes that a line of the survivors' puts the blame on."""
    lost = re.match(r"node (\d+)(?: \([^)]*\))? lost (node (\d+)|every other node)", text)
    if lost:
        return {int(lost.group(3) or lost.group(1))}
    if re.match(r"nobody can be blamed|the group's ranks did not all end", text):
        return set()
    missing = re.search(r"did not arrive: ([^;]*)", text)
    at_fault = missing.group(1) if missing else text.split(";")[0].split(": ")[0]
    ranks = re.findall(r"rank \d+ \((?:[^()]* of )?node (\d+)", at_fault)
    return {int(node) for node in ranks or re.findall(r"node (\d+)", at_fault)}


def stage_of(record):
    for stage in record["stages"] if record else []:
        if stage["name"] == "victims":
            return stage
    return None


def verdict_details(stage):
    """The texts of the stage's errors."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == "detail" and isinstance(inner, str):
                    found.append(inner)
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(stage["verdicts"])
    return found


def judge(trial: Trial, tally: dict) -> str:
    """Counts what the trial came to; returns what was wrong with it, or ""."""
    code, said, fleet = trial.fleet()
    records = {node: trial.record(node) for node in range(HOSTS)}
    passed = [node for node, record in records.items() if stage_of(record) and stage_of(record)["outcome"] in PASSING]
    accepted = [node for node, record in records.items() if record and record["acceptance"] == "accepted"]
    if not trial.what:
        tally["controls"] += 1
        healthy = code == 0 and len(accepted) == HOSTS
        if healthy:
            trial.chosen.rough[trial.kind] = max(stage_of(record)["duration"] for record in records.values())
        return "" if healthy else f"a healthy run was not accepted: {accepted}, fleet {code}: {said[-300:]}"
    if not trial.struck or (code == 0 and len(accepted) == HOSTS and not died_in_stage(trial, records)):
        tally["nobody died: it came too late"] += 1
        return ""
    stages = [stage_of(record) for record in records.values()]
    if trial.how == "restart" and all(stage and stage["started"] > trial.died for stage in stages):
        tally["it came back before the stage began"] += 1
        return "" if len(passed) in (0, HOSTS) else f"only nodes {passed} passed"
    tally["trials"] += 1
    tally[f"{trial.what} {trial.how}"] += 1
    if code == 0:
        return "the fleet accepted"
    survivors = [node for node in range(HOSTS) if trial.what == "rank" or node != trial.victim]
    if any(node in survivors for node in passed + accepted):
        if died_in_stage(trial, records):
            return f"nodes {passed} passed the stage, nodes {accepted} accepted"
        tally["after the end"] += 1
        print(f"after the end: {trial.name}: nodes {passed} passed, {lag(trial, records):.1f} s after it", flush=True)
        return fleet_names_innocent(trial, fleet, tally)
    return who_is_named(trial, records, survivors, tally) or fleet_names_innocent(trial, fleet, tally)


def died_in_stage(trial: Trial, records) -> bool:
    """Whether somebody waited in vain for who died: the run of a node that passed ended long after it."""
    rank_died = trial.what == "rank" and any(
        rank["state"] != "ok" for record in records.values() if stage_of(record) for rank in stage_of(record)["ranks"])
    return rank_died or lag(trial, records) > PROMPT


def lag(trial: Trial, records) -> float:
    """How long after the death the last run of another node that passed ended."""
    return max([record["run"]["finished"] - trial.died for node, record in records.items()
                if node != trial.victim and stage_of(record) and stage_of(record)["outcome"] in PASSING], default=0)


def who_is_named(trial: Trial, records, survivors, tally) -> str:
    named = []
    for node in survivors:
        stage = stage_of(records[node])
        if stage is None:
            return f"node {node} has no record of the stage"
        group = stage.get("group") or {}
        texts = [group.get("culprit") or stage.get("reason") or ""] + verdict_details(stage)
        found = [named_in(text) for text in texts if text]
        named.append(set().union(*found[:1]))
        innocent = set().union(*found) - {trial.victim}
        if innocent:
            tally["an innocent node was named"] += 1
            return f"node {node} names {sorted(innocent)}: {texts[:3]}"
    if all(trial.victim in one for one in named):
        tally["named"] += 1
    else:
        tally["not named"] += 1
        trial.unnamed = f"not named by all: {[stage_of(records[node]).get('group') for node in survivors]}"
    return ""


def fleet_names_innocent(trial: Trial, fleet: dict, tally: dict) -> str:
    blamed = set()
    for suspect in fleet.get("suspects", []):
        blamed |= {int(node) for node in re.findall(r"\bn(\d)\b", suspect["node"] + " " + suspect["what"])}
    if blamed - {trial.victim}:
        tally["the fleet flags an innocent node"] += 1
        return f"the fleet flags {sorted(blamed - {trial.victim})}: {fleet['suspects'][0]}"
    return ""


def main() -> None:
    chosen = _attack.options(__doc__.split("\n", maxsplit=1)[0], 300, jobs=3, controls=len(KINDS), results="")
    if os.geteuid() != 0 or shutil.which("ip") is None:
        print("SKIP: network namespaces need root and iproute2")
        sys.exit(77)
    _, help_text = _attack.run(_attack.muster(chosen.build), "fleet", "--help")
    same = re.search(r"--(?:allow-)?same-(?:machine|host)\S*", help_text)
    chosen.rough = {kind: parts[4] for kind, parts in KINDS.items()}
    chosen.fleet_options = [same.group(0)] if same else []
    folder = _attack.folder(chosen)
    tally = dict.fromkeys(["controls", "trials", "after the end", "named", "not named", "an innocent node was named",
                           "the fleet flags an innocent node", "nobody died: it came too late",
                           "it came back before the stage began",
                           *(" ".join(one) for one in WHAT)], 0)
    wrong, lock, number = [], threading.Lock(), [0]
    queue = [f"control-{kind}" for kind in list(KINDS)[:chosen.controls]]
    done_before = {}
    if chosen.results and os.path.exists(chosen.results):
        with open(chosen.results, encoding="utf-8") as file:
            done_before = {one["seed"]: one for one in map(json.loads, file)}

    def count(result: dict) -> None:
        for what, times in result["tally"].items():
            tally[what] += times
        for title, text in (("WRONG", result["problem"]), ("UNNAMED", result["unnamed"])):
            if text:
                print(f"{title}: {result['name']}: {text}", flush=True)
        if result["problem"]:
            wrong.append(f"{result['name']}: {result['problem']}")
        if result["tally"].get("trials") and tally["trials"] % 25 == 0:
            print(f"... {tally['trials']} trials, {len(wrong)} wrong verdicts, {tally['not named']} not named", flush=True)

    def work(slot: int) -> None:
        hosts = Hosts(slot)
        try:
            while True:
                with lock:
                    if tally["trials"] + busy[0] >= chosen.count and not queue:
                        return
                    seed = queue.pop(0) if queue else f"{chosen.seed}-{number[0]}"
                    control = seed.startswith("control-")
                    number[0] += 0 if control else 1
                    if number[0] > 20 * chosen.count + 20:
                        return  # nothing can be struck: said by the number of trials
                    if seed in done_before:
                        count(done_before[seed])
                        continue
                    busy[0] += 0 if control else 1
                healthy = seed.removeprefix("control-") if control else ""
                trial = Trial(chosen, hosts, os.path.join(folder, seed), seed, healthy)
                trial.unnamed = ""
                problem, own = trial.hold(), dict.fromkeys(tally, 0)
                problem = problem or judge(trial, own)
                with lock:
                    busy[0] -= 0 if control else 1
                    result = {"seed": seed, "name": trial.name, "problem": problem, "unnamed": trial.unnamed,
                              "tally": {what: times for what, times in own.items() if times > 0}}
                    count(result)
                    if chosen.results and not control:
                        with open(chosen.results, "a", encoding="utf-8") as file:
                            file.write(json.dumps(result) + "\n")
                if not problem and not chosen.keep:
                    shutil.rmtree(trial.folder)
        finally:
            hosts.remove()

    busy = [0]
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for done in [pool.submit(work, slot) for slot in range(chosen.jobs)]:
            done.result()
    for what, count in tally.items():
        print(f"{count:6} {what}")
    if tally["not named"] * 100 > tally["trials"]:
        wrong.append(f"{tally['not named']} of {tally['trials']} trials name nobody; at most 1% may")
    _attack.finish(tally["trials"], wrong)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Late faults: each fault that the simulator knows, begun at 5, 50, 90 and 97% of each stage of four shipped plans.

A fault is caught where the run is not accepted and the faulty component is named, and no other one. What is not caught
must be explained by a line of REASONS, by its size and time, and must be in late.golden; nothing that is caught may be: `--list` prints that list, `--write` makes it anew from all
trials of --plans, and a run of --count of them compares each with it. --results FILE keeps what each trial came to: a
bench that was ended goes on from there.

A fault either stays, or is gone when the stage ends that it began in. What ran before that stage was healthy and is left
out; so is what runs after it, where the fault is gone. Of the plans in WHOLE, all that runs after it is judged where the
fault stays; of the others, which take longer, only if the stage itself did not catch it. Times are virtual and come from a
healthy run of the same stages.
"""
import concurrent.futures
import json
import os
import re
import shutil
import sys
import threading
import xml.etree.ElementTree as ElementTree

import _attack

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
HEALTH = "common/health.toml"  # the stage that the GPU plans include
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "late.golden")
SHARES = "5,50,90,97"  # % of a stage
HEAD = """\
# What the shipped plans do not catch of the simulator's faults, or do not name, by the stage that a fault begins in, the share
# of it at which it begins and the seconds that are left of it then. All other faults are caught and named. Written by
# tests/bench/attack/late.py --write; times are those of eight simulated H100.
# plan | fault | how long | what becomes of it: why | from when on; ...
"""
NODE, PEER_NODE, DEVICE, PEER, RAIL = 2, 3, 3, 5, 3
NODES = {"node-quick": 1, "node-full": 1, "cluster": 4, "burn-in": 1}
WHOLE = ("node-quick",)
# 22 hours would take a minute each. The list is the stricter for it: what is left of a stage at 97% is a tenth as long.
SHORTER = {"burn-in": ["--set", "sustained.duration=2h"]}
NO_TIME = "the stage takes no virtual time"
WARNED, WITHIN, UNSEEN, UNNAMED = MISSES = ("only a warning", "within the limits", "nothing measures it then",
                                            "rejected, not named")
RDMA = """
[rdma]
count = 8
line_rate = "50 GB/s"
bandwidth = "48.9 GB/s"
"""


class Fault:
    """One kind of fault at one size. `ends`: it can be gone again. `names`: any of these texts names the component."""

    def __init__(self, name, lines, names, ends=True, table="fault", fabric=False):
        self.name, self.lines, self.names, self.ends, self.table, self.fabric = name, lines, names, ends, table, fabric

    def toml(self, node, begin, end):
        lines = dict(self.lines)
        if node is not None and "leaf" not in lines:
            lines["node"] = node
        lines["from" if self.ends else "at"] = f"{begin!r}s"
        if end is not None:
            lines["until"] = f"{end!r}s"
        return f"\n[[{self.table}]]\n" + "".join(
            f"{key} = {json.dumps(value)}\n" for key, value in lines.items())


def of_device(kind, **lines):
    return {"kind": kind, "device": DEVICE, **lines}


GPU = (f"gpu{DEVICE}",)
PORT = (f"mlx5_{RAIL}/1", f"sim-node-{NODE:04}")
FAULTS = [
    Fault("slow to 50%", of_device("slow", factor=0.5), GPU),
    Fault("slow to 80%", of_device("slow", factor=0.8), GPU),
    Fault("slow to 5%", of_device("slow", factor=0.05), GPU),
    Fault("thermal throttle to 80%", of_device("throttle", factor=0.8, reason="thermal"), GPU),
    Fault("power brake to 80%", of_device("throttle", factor=0.8, reason="power_brake"), GPU),
    Fault("power cap to 80%", of_device("throttle", factor=0.8, reason="power_cap"), GPU),
    Fault("uncorrected ECC error", of_device("ecc", uncorrected=1), GPU, ends=False),
    Fault("20000 corrected ECC errors", of_device("ecc", corrected=20000), GPU, ends=False),
    Fault("row remap pending", of_device("ecc", remap_pending=True), GPU, ends=False),
    Fault("row remap failed", of_device("ecc", remap_failed=True), GPU, ends=False),
    Fault("corruption of each result", of_device("corruption"), GPU),
    Fault("corruption of each 100th result", of_device("corruption", every=100), GPU),
    Fault("corruption of sums", of_device("corruption", ops=["collective"]), GPU, fabric=True),
    Fault("hang", of_device("hang"), GPU, ends=False),
    Fault("crash", of_device("crash"), GPU, ends=False),
    Fault("device lost", of_device("missing"), GPU, ends=False),
    Fault("XID 79", of_device("xid", xid=79), GPU, ends=False),
    Fault("XID 31", of_device("xid", xid=31), GPU, ends=False),
    Fault("degraded fabric", of_device("fabric", mask=425), GPU, ends=False),
    Fault("SXid 20034", {"kind": "sxid", "sxid": 20034}, ("SXid 20034",), ends=False),
    Fault("link of two GPUs at 50%", {"kind": "slow_link", "device": DEVICE, "peer_device": PEER, "factor": 0.5},
          (f"gpu{DEVICE}", f"gpu{PEER}")),
    Fault("link of two nodes at 50%", {"kind": "slow_link", "peer_node": PEER_NODE, "factor": 0.5},
          (f"sim-node-{PEER_NODE:04}", f"sim-node-{NODE:04}"), fabric=True),
    Fault("NIC at 50%", {"kind": "slow_nic", "rail": RAIL, "factor": 0.5}, PORT, fabric=True),
    Fault("NIC down for 5 ms of each second", {"kind": "flapping_nic", "rail": RAIL, "period": "1s", "down": "5ms"}, PORT,
          fabric=True),
    Fault("uplink at 50%", {"kind": "slow_uplink", "leaf": 1, "factor": 0.5}, ("leaf 1", "uplink"), fabric=True),
    Fault("HCA at 50%", {"kind": "slow", "hca": RAIL, "factor": 0.5}, PORT, table="rdma.fault", fabric=True),
    Fault("link of an HCA down", {"kind": "link_down", "hca": RAIL}, PORT, table="rdma.fault"),
    Fault("symbol errors of an HCA", {"kind": "errors", "hca": RAIL, "symbol_errors": 100}, PORT, ends=False,
          table="rdma.fault"),
]


SPEED = "slow to|power cap|throttle|power brake"
BETWEEN = "link of two nodes|NIC at|uplink"
# Why a fault is not caught, or not named: fault, test, result, and for how many seconds at most (None: however long it takes;
# a text: share of the stage). What no line explains is a wrong verdict.
REASONS = [
    ("XID 31", "", WARNED, None, "it is an XID of applications, which no fault of the GPU need have caused"),
    ("link of two GPUs", "memory.peer", None, None, "each pair is measured once, and this one was before"),
    ("link of two GPUs", "", None, None, "pairs of GPUs are measured by the stage peer of node-quick and node-full alone"),
    (f"HCA at|{BETWEEN}", "rdma", None, "51%", "each rail of each pair of nodes is measured in turn, and this one was before"),
    ("HCA at", "", UNSEEN, None, "only the stage rails moves data between HCAs without GPUs"),
    (f"{BETWEEN}|sums", "memory|compute|train", None, None, "it does not use the network between nodes"),
    (BETWEEN, "", UNNAMED, None, "the ring tells which link is slow, and is over; collectives only tell that one is"),
    ("NIC down", "", None, None, "shorter than until it is down again"),
    (BETWEEN, "ring", None, 0.2, "shorter than half of a pair's transfers, of which the median counts"),
    (BETWEEN, "collective", None, 0.11, "shorter than half of the runs of the largest size, which alone is judged"),
    ("sums", "ring|rdma", UNSEEN, None, "it times transfers; all-reduce and alltoall check every byte"),
    ("sums", "collective", UNSEEN, 0.1, "after the last result that is checked"),
    ("corruption", "latency", UNSEEN, None, "it only reads"),
    ("corruption", "ring|rdma|collective", UNSEEN, None, "a GPU's own results are not used; see corruption of sums"),
    ("corruption of each 100th", "bandwidth", UNSEEN, 0.5, "one write or triad of 7 is compared, and few are left"),
    ("corruption of each 100th", "host_copy", UNSEEN, 0.8, "one copy of 4 is compared, and few are left"),
    ("corruption of each 100th", "peer", UNSEEN, 0.3, "one copy of 28 is compared, and few are left"),
    ("corruption of each 100th", "gemm", UNSEEN, 0.6, "one result of 14 or more is compared, and few are left"),
    ("corruption of each 100th", "best", UNSEEN, None, "few results of each shape are compared; the stages gemm and sustained do more"),
    ("corruption of each result", "pattern", UNSEEN, "5%", "what is left is only read"),
    ("corruption", "pattern", UNSEEN, None, "fewer than 100 parts of the memory are left to write"),
    ("corruption", "training", None, None, "the loss falls in spite of it; gemm and sustained compare results bit by bit"),
    ("80%", "best", None, None, "each GPU chooses its own algorithm, so 25% are allowed; the stage gemm finds 10%"),
    (SPEED, "best", None, 0.5, "shorter than a measurement"),
    ("slow to 5%", "training", WITHIN, None, "fewer than the 50 steps of the warm-up pass while it lasts"),
    ("80%", "collective", WITHIN, None, "25% more of a rank's own time are allowed, and 40% less bandwidth"),
    (SPEED, "collective", WITHIN, 1.1, "shorter than half of the runs of the largest size, which alone is judged"),
    (SPEED, "collective", UNNAMED, 1.1, "over before each rank's own time is taken, which tells the GPU"),
    (SPEED, "rdma", None, None, "no GPU works then"),
    (SPEED, "host_copy", None, 0.2, "shorter than half of a measurement, of which the median counts"),
    (SPEED, "peer", None, 0.1, "shorter than half of a measurement, of which the median counts"),
    (SPEED, "gemm", None, 0.8, "shorter than a twentieth of a measurement, repeats included"),
    (SPEED, "pattern", None, 0.2, "shorter than the warm-up of the rates"),
    (SPEED, "pattern", None, "5%", "shorter than a twentieth of a measurement"),
    (SPEED, "latency", None, 0.2, "shorter than half of a measurement, of which the median counts"),
    (SPEED, "ring", None, 0.2, "shorter than half of a pair's transfers, of which the median counts"),
]


class Trial:
    def __init__(self, plan, stage, share, fault, stays):
        self.plan, self.stage, self.share, self.fault, self.stays = plan, stage, share, fault, stays

    @property
    def key(self):
        return (self.plan, self.fault.name, "stays" if self.stays else "ends with the stage", self.stage)

    def __str__(self):
        return f"{self.plan}: {self.fault.name}, from {self.share}% of {self.stage}, {self.key[2]}"


class Bench:
    def __init__(self, chosen):
        self.chosen = chosen
        self.shares = [int(share) for share in chosen.shares.split(",")]
        self.folder = _attack.folder(chosen)
        with open(os.path.join(SOURCE, "plans/scenarios/h100x8-cluster-healthy.toml"), encoding="utf-8") as file:
            self.healthy = file.read().replace("nodes_per_leaf = 4", "nodes_per_leaf = 2") + RDMA
        self.plans = {plan: self.read_plan(plan) for plan in chosen.plans.split(",")}
        self.healthy_runs = {}  # (plan, stage, stays) -> how long the stage takes, and what is measured
        self.locks = {}         # for each of them, and for each trial: whoever needs it first makes it
        self.known = {}      # results of an earlier run
        if chosen.results and os.path.exists(chosen.results):
            with open(chosen.results, encoding="utf-8") as file:
                self.known = dict(json.loads(line) for line in file)

    @staticmethod
    def read_plan(plan):
        """What stands before the first stage, and the text of each stage by its name; an included stage is the plan's own."""
        def parts_of(name):
            with open(os.path.join(SOURCE, "plans", name), encoding="utf-8") as file:
                return re.split(r"^(?=\[\[stage\]\]$)", file.read(), flags=re.M)
        head, *stages = parts_of(plan + ".toml")
        if f'"{HEALTH}"' in head:
            head = head.replace(f', "{HEALTH}"', "").replace(f'"{HEALTH}"', "")
            stages = parts_of(HEALTH)[1:] + stages
        return head, {re.search(r'^name += "(.*)"', stage, re.M).group(1): stage for stage in stages}

    def plan_text(self, plan, stage, stays):
        """The plan from this stage on, or the stage alone; needs of stages that are left out are met."""
        head, stages = self.plans[plan]
        names = list(stages)
        kept = names[names.index(stage):] if stays else [stage]
        text = head
        for name in kept:
            needs = re.search(r"^needs = (\[.*\])$", stages[name], re.M)
            met = [need for need in json.loads(needs.group(1)) if need in kept] if needs else []
            text += re.sub(r"^needs = .*\n", f"needs = {json.dumps(met)}\n" if met else "", stages[name], flags=re.M)
        return text

    def simulate(self, plan, text, scenario, name):
        """Exit code, output, and the folder of the run."""
        out = os.path.join(self.folder, name)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(os.path.join(SOURCE, "plans", "common"), os.path.join(out, "common"))
        shutil.copy(os.path.join(SOURCE, "plans/scenarios/h100x8-healthy.toml"), out)  # what the scenario includes
        for file_name, content in (("plan.toml", text), ("scenario.toml", scenario)):
            with open(os.path.join(out, file_name), "w", encoding="utf-8") as file:
                file.write(content)
        where = os.path.join(out, "run")
        code, said = _attack.run(_attack.muster(self.chosen.build), "run", os.path.join(out, "plan.toml"), "--simulate",
                                 os.path.join(out, "scenario.toml"), "--nodes", str(NODES[plan]), "--plain", "--out", where,
                                 *(SHORTER.get(plan, []) if "sustained" in text else []))
        return code, said, where

    def node_folders(self, plan, where):
        return [where] if NODES[plan] == 1 else [os.path.join(where, f"sim-node-{n:04}") for n in range(NODES[plan])]

    def untouched(self, plan, stage, stays):
        """Virtual seconds that the stage takes without a fault, and what is measured then."""
        key = (plan, stage, stays)
        with self.locks.setdefault(key, threading.Lock()):
            if key not in self.healthy_runs:
                code, said, where = self.simulate(plan, self.plan_text(*key), self.healthy, "-".join(map(str, key)))
                if code != 0:
                    sys.exit(f"{plan} from {stage}: the healthy run ended with {code}:\n{said}")
                suites = ElementTree.parse(os.path.join(self.node_folders(plan, where)[0], "junit.xml")).getroot()
                seconds = [float(suite.get("time")) for suite in suites.iter("testsuite")
                           if suite.get("name") == "SIMULATED " + stage]
                self.healthy_runs[key] = seconds[0], self.measured(plan, where)
                self.remove(where)
        return self.healthy_runs[key]

    def measured(self, plan, where):
        values = []
        for folder in self.node_folders(plan, where):
            with open(os.path.join(folder, "record.json"), encoding="utf-8") as file:
                values += [(stage["name"], stage.get("measurements")) for stage in json.load(file)["stages"]]
        return values

    def trials(self):
        for plan, (_, stages) in self.plans.items():
            for stage in stages:
                for fault in FAULTS:
                    if fault.fabric and NODES[plan] == 1:
                        continue
                    for share in self.shares:
                        for stays in ((False, True) if fault.ends else (True,)):
                            yield Trial(plan, stage, share, fault, stays)

    def remove(self, where):
        if not self.chosen.keep:
            shutil.rmtree(os.path.dirname(where), ignore_errors=True)

    def result(self, trial):
        """What the trial came to: "caught", or why it was not. Kept in --results, so that a long bench can go on."""
        name = str(trial)
        with self.locks.setdefault(name, threading.Lock()):
            if name not in self.known:
                self.known[name] = self.judge(trial)
                if self.chosen.results:
                    with open(self.chosen.results, "a", encoding="utf-8") as file:
                        file.write(json.dumps([name, self.known[name]]) + "\n")
            return self.known[name]

    def reason(self, trial, result):
        """In words: why the plan cannot detect it; empty where nothing excuses the miss."""
        whole, _ = self.untouched(trial.plan, trial.stage, False)
        stage = self.plans[trial.plan][1][trial.stage]
        test = re.search(r'^test = "(.*)"', stage, re.M).group(1)
        for faults, tests, expected, most, words in REASONS:
            most_seconds = whole * float(most[:-1]) / 100 if isinstance(most, str) else most
            if (re.search(faults, trial.fault.name) and re.search(tests, test) and expected in (None, result)
                    and result in MISSES and (most is None or self.left(trial) <= most_seconds)):
                return words
        return ""

    def left(self, trial):
        """Seconds of the stage that are left when the fault begins."""
        return self.untouched(trial.plan, trial.stage, False)[0] * (1 - trial.share / 100)

    def judge(self, trial):
        end, _ = self.untouched(trial.plan, trial.stage, False)
        if end == 0:
            return NO_TIME
        if not trial.stays or trial.plan in WHOLE:
            return self.attempt(trial, end, trial.stays)
        # Until the stage's end, the fault that stays is the one that ends then.
        ending = Trial(trial.plan, trial.stage, trial.share, trial.fault, False)
        result = self.result(ending) if trial.fault.ends else self.attempt(trial, end, False)
        return self.attempt(trial, end, True) if result in MISSES else result

    def attempt(self, trial, end, further):
        """One run of the trial's stage, and of those behind it if `further`."""
        node = NODE if NODES[trial.plan] > 1 else None
        fault = trial.fault.toml(node, end * trial.share / 100, None if trial.stays else end)
        name = re.sub(r"[^a-z0-9]+", "-", str(trial).lower())
        plan = self.plan_text(trial.plan, trial.stage, further)
        code, text, where = self.simulate(trial.plan, plan, self.healthy + fault, name)
        if code not in (0, 1, 3):
            return f"ended with {code}: {text[-400:]}"
        said, others, warned = self.findings(trial, where)
        if code == 0 and warned:
            result = WARNED
        elif code == 0:
            _, healthy = self.untouched(trial.plan, trial.stage, further)
            result = UNSEEN if self.measured(trial.plan, where) == healthy else WITHIN
        elif not said:
            result = UNNAMED
        elif others:
            result = "others are named: " + ", ".join(sorted(others))
        else:
            result = "caught"
        if result == "caught":
            self.remove(where)
        return result

    def findings(self, trial, where):
        """Whether findings name the component, which other devices they name, and whether a warning names it.

        A stage that measures the network between nodes sees a slow GPU as a slow rail of its node, or as a link with that
        node at one end: there, naming the node is right, and every device of it may be said to be slow.
        """
        said, warned, others = False, False, set()
        for number, folder in enumerate(self.node_folders(trial.plan, where)):
            own = number == (NODE if NODES[trial.plan] > 1 else 0)
            for suite in ElementTree.parse(os.path.join(folder, "junit.xml")).getroot().iter("testsuite"):
                fabric = trial.fault.fabric or self.is_of_network(trial.plan, suite.get("name"))
                names = trial.fault.names + ((f"sim-node-{NODE:04}",) if fabric else ())
                for case in suite.iter("testcase"):
                    for result in case:
                        words = f"{case.get('name')} {result.get('message') or ''} {result.text or ''}"
                        named = any(name in words for name in names) and (own or fabric)
                        if result.tag in ("failure", "error"):
                            said = said or named
                            device = re.search(r"^device: (gpu\d+)$", result.text or "", re.M)
                            if device and not named and not fabric:
                                others.add(device.group(1))
                        elif result.tag == "system-out" and "outcome: warn" in (result.text or ""):
                            warned = warned or named
        return said, others, warned

    def is_of_network(self, plan, suite):
        stage = self.plans[plan][1].get(suite.removeprefix("SIMULATED "), "")
        return 'scope = "cluster"' in stage and 'plugin = "compute"' not in stage


def read_list():
    """The golden list: (plan, fault, how long, stage, share) -> (seconds left of the stage, why it is not caught)."""
    missed = {}
    if not os.path.exists(GOLDEN):
        return missed
    with open(GOLDEN, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            plan, fault, lasts, why, places = [part.strip() for part in line.split("|")]
            for place in places.split(";"):
                stage, share, left = re.fullmatch(r"(\S+) from (\d+)% \((\S+) s\)", place.strip()).groups()
                missed[(plan, fault, lasts, stage, int(share))] = left, why
    return missed


def write_list(plans, missed):
    """Replaces what is listed of these plans by `missed`, as read_list() returns it."""
    rows = {}
    kept = {key: value for key, value in read_list().items() if key[0] not in plans}
    for (plan, fault, lasts, stage, share), (left, why) in (kept | missed).items():
        rows.setdefault((plan, fault, lasts, why), []).append((stage, share, left))
    with open(GOLDEN, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for (plan, fault, lasts, why), places in sorted(rows.items()):
            listed = "; ".join(f"{stage} from {share}% ({left} s)" for stage, share, left in places)
            file.write(f"{plan} | {fault} | {lasts} | {why} | {listed}\n")


def main():
    chosen = _attack.options("Late faults: caught, or listed as not detectable", count=10**9, plans=",".join(NODES), jobs=2, shares=SHARES,
                             only="", results="", list=False, write=False)
    if chosen.list:
        if not os.path.exists(GOLDEN):
            sys.exit("there is no list: run all trials once with --write (hours), then read each line that it writes")
        with open(GOLDEN, encoding="utf-8") as file:
            sys.stdout.write(file.read())
        return
    bench = Bench(chosen)
    trials = [trial for trial in bench.trials() if re.search(chosen.only, str(trial))]
    if chosen.count < len(trials):
        trials = chosen.random.sample(trials, chosen.count)
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        results = [(trial, why) for trial, why in zip(trials, pool.map(bench.result, trials)) if why != NO_TIME]
    missed, wrong = {}, []
    for trial, result in results:
        if result == "caught":
            continue
        reason = bench.reason(trial, result)
        left = bench.left(trial)
        missed[(*trial.key, trial.share)] = f"{left:.0f}" if left >= 10 else f"{left:.2g}", f"{result}: {reason}"
        if not reason:
            wrong.append(f"{trial}: {result}, and nothing explains it; {left:.2g} s of the stage are left")
    if chosen.write and not wrong:
        write_list(chosen.plans.split(","), missed)
    listed = read_list()
    for trial, result in results:
        key = (*trial.key, trial.share)
        now, expected = (where[key][1] if key in where else "caught" for where in (missed, listed))
        if now != expected:
            wrong.append(f"{trial}: {now}; expected: {expected}")
    print(f"{len(results)} late faults: {len(results) - len(missed)} caught and named, {len(missed)} not caught")
    _attack.finish(len(results), wrong)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""How often the ring is right, by the confidence that it reports.

Simulated runs: tests/bench/ring_calibration.cpp draws clusters, faults, noise and loads. Real runs (--real N): hosts that
are network namespaces of this machine, with and without a fault by tc, with and without other processes at work; they
need root. A run with nothing injected that names anything is wrong, as is one that names anything else than was injected.
"""
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

import _attack

BINS = [(0, 0.5), (0.5, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 0.98), (0.98, 0.99), (0.99, 1.01)]
SURE = 0.99
SLACK = 0.01  # one point
HOSTS = 4
HEALTHY = "100mbit"

PLAN = """schema = 1
name = "ring"
sku = "auto"
backend = "host"
[[stage]]
name = "ring"
plugin = "ring"
test = "ring"
scope = "cluster"
ranks = 1
timeout = "5m"
[stage.params]
bytes = "512 KiB"
samples = 3
noise_floor = "{floor}"
latency_noise_floor = "500%"
"""


def table(title: str, findings: list) -> list:
    """Prints a reliability table of (confidence, right, how to repeat); returns what is over-confident."""
    print(f"\n{title}\n{'confidence':>14}{'n':>7}{'right':>9}")
    for low, high in BINS:
        right = [finding[1] for finding in findings if low <= finding[0] < high]
        if right:
            print(f"{low:>8.2f} to {min(high, 1):.2f}{len(right):>7}{sum(right) / len(right):>9.3f}")
    sure = [finding for finding in findings if finding[0] >= SURE]
    wrong = [finding for finding in sure if not finding[1]]
    # With few findings a single wrong one is more than a point: what counts is more than chance explains.
    allowed = (1 - SURE + SLACK) * len(sure)
    if len(wrong) <= max(1, allowed):
        return []
    return [f"{len(wrong)} of {len(sure)} findings of confidence {SURE} and more are wrong, first {wrong[0][2]}"]


def simulated(chosen, count: int):
    program = os.path.join(chosen.build, "tests", "bench", "ring-calibration")
    code, text = _attack.run(program, str(count), str(chosen.seed))
    lines = [line.split() for line in text.splitlines()]
    runs = [line for line in lines if line[0] == "run"]
    if code != 0 or len(runs) != count:
        sys.exit(f"{program} ended with {code} after {len(runs)} of {count} runs: {text[-500:]}")
    findings = [(float(line[1]), line[2] == "1", f"seed {line[3]}") for line in lines if line[0] == "finding"]
    planted = sum(int(line[2]) for line in runs)
    print(f"{count} simulated runs: {planted} faults of 5% to 90%, {len(findings)} findings with a name, "
          f"{sum(int(line[5]) for line in runs)} not located")
    return count, table("simulated runs: of what was named with this confidence, how much is right", findings)


def must(line: str) -> None:
    subprocess.run(line.split(), check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Hosts:
    """Namespaces on a bridge of their own, as tests/cluster/hosts.cpp makes them."""

    def __init__(self, name: str):
        self.hub = f"{name}-hub"
        self.spaces = [f"{name}-n{host}" for host in range(HOSTS)]
        must(f"ip netns add {self.hub}")
        must(f"ip -n {self.hub} link add br0 type bridge")
        must(f"ip -n {self.hub} link set br0 up")
        for host, space in enumerate(self.spaces):
            must(f"ip netns add {space}")
            must(f"ip -n {self.hub} link add p{host} type veth peer name eth0 netns {space}")
            must(f"ip -n {self.hub} link set p{host} master br0 up")
            must(f"ip -n {space} addr add 10.77.0.{host + 1}/24 dev eth0")
            must(f"ip -n {space} link set lo up")
            must(f"ip -n {space} link set eth0 up")
            for where, device in ((space, "eth0"), (self.hub, f"p{host}")):
                must(f"tc -n {where} qdisc replace dev {device} root handle 1: htb default 1")
            self.limit(host, HEALTHY)

    def shape(self, space: str, device: str, kind: int, rate: str) -> None:
        must(f"tc -n {space} class replace dev {device} parent 1: classid 1:{kind:x} htb rate {rate} burst 128kb "
             "cburst 128kb quantum 60000")

    def limit(self, host: int, rate: str) -> None:
        for where, device in ((self.spaces[host], "eth0"), (self.hub, f"p{host}")):
            self.shape(where, device, 1, rate)

    def limit_link(self, one: int, other: int, rate: str) -> None:
        for source, target in ((one, other), (other, one)):
            self.shape(self.spaces[source], "eth0", 16 + target, rate)
            must(f"tc -n {self.spaces[source]} filter replace dev eth0 parent 1: protocol ip prio 1 u32 match ip dst "
                 f"10.77.0.{target + 1}/32 flowid 1:{16 + target:x}")

    def close(self) -> None:
        for space in [*self.spaces, self.hub]:
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL, check=False)


def one_real_run(build: str, number: int, seed: int):
    """(what was injected, number of busy processes, [(confidence, right, how to repeat)], not located, how it ended)"""
    rng = random.Random(seed * 1000003 + number)
    fault, share = rng.choice(["none", "none", "node", "link"]), rng.choice([10, 25, 50])
    first = rng.randrange(HOSTS)
    ends = sorted((first, (first + 1) % HOSTS))
    load = rng.choice([0, 0, 2, 4])
    hosts = Hosts(f"mcal{os.getpid() % 10000}-{number}")
    burners, runs = [], []
    try:
        planted = "none"
        if fault == "node":
            hosts.limit(first, f"{share}mbit")
            planted = f"node n{first}"
        elif fault == "link":
            hosts.limit_link(ends[0], ends[1], f"{share}mbit")
            planted = f"link n{ends[0]} - n{ends[1]}"
        with tempfile.TemporaryDirectory(prefix="muster-calibration-") as folder:
            plan = os.path.join(folder, "ring.toml")
            with open(plan, "w", encoding="utf-8") as file:
                file.write(PLAN.format(floor=rng.choice(["2%", "5%"])))
            for _ in range(load):  # at work for a while and idle for a while, as other jobs are
                burners.append(subprocess.Popen([sys.executable, "-c", f"""
import random, time
r = random.Random({rng.random()})
while True:
    end = time.monotonic() + r.expovariate(1 / 5)
    while time.monotonic() < end: pass
    time.sleep(r.expovariate(1 / 5))
"""]))
            for host, space in enumerate(hosts.spaces):
                command = ["nsenter", f"--net=/run/netns/{space}", "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"',
                           f"n{host}", _attack.muster(build), "run", plan, "--plain", "--nnodes", str(HOSTS), "--node-rank",
                           str(host), "--rendezvous", "10.77.0.1:29400", "--out", os.path.join(folder, "out"),
                           "--lost-after", "60s"]
                runs.append(subprocess.Popen(command, env={**os.environ, "MUSTER_TOKEN": "a-secret-of-this-bench"}, text=True,
                                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True))
            outputs = [run.communicate(timeout=600)[0] for run in runs]
            try:
                with open(os.path.join(folder, "out", "node-0000", "record.json"), encoding="utf-8") as file:
                    record = json.load(file)
            except OSError:
                return planted, load, [], 0, "no record: " + outputs[0][-300:]
        measurements = [m for stage in record["stages"] if stage["name"] == "ring" for m in stage["measurements"]]
        named = [m["labels"] for m in measurements if m["metric"] == "ring.culprits" and m["labels"]["culprit"] != "none"]
        sure = {m["labels"]["culprit"]: m["samples"][0] for m in measurements if m["metric"] == "ring.culprit_confidence"}
        findings = [(sure[labels["culprit"]], labels["culprit"] == planted, f"real run {number}: {labels['culprit']}, injected "
                     f"{planted} at {share} of {HEALTHY}, {load} busy processes")
                    for labels in named if labels["kind"] != "unattributable"]
        found = len(named) - len(findings)
        return planted, load, findings, found, record["verdict"] if "verdict" in record else str(runs[0].returncode)
    finally:
        for process in burners + runs:
            if process.poll() is None:
                process.kill()
        hosts.close()


def real(chosen, count: int):
    if os.geteuid() != 0:
        sys.exit("real runs need network namespaces, and so root")
    findings, open_ones, failed, planted = [], 0, [], 0
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for result in pool.map(lambda number: one_real_run(chosen.build, number, chosen.seed), range(count)):
            print("real run:", *result, flush=True)
            planted += result[0] != "none"
            findings += result[2]
            open_ones += result[3]
            if str(result[4]).startswith("no record"):
                failed.append(result[4])
    print(f"{count} real runs: {planted} with a fault, {len(findings)} findings with a name, {open_ones} not located, "
          f"{len(failed)} without a record")
    return count, table("real runs: of what was named with this confidence, how much is right", findings) + failed


def main() -> None:
    chosen = _attack.options(__doc__.splitlines()[0], 5000, real=0, jobs=2)
    trials, wrong = 0, []
    for kind, count in ((simulated, chosen.count), (real, chosen.real)):
        if count > 0:
            done, over = kind(chosen, count)
            trials += done
            wrong += over
    _attack.finish(trials, wrong)


main()

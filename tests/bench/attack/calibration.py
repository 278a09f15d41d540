# SPDX-License-Identifier: Apache-2.0
"""How often the ring is right, by the confidence that it reports.

Simulated runs: tests/bench/ring_calibration.cpp draws clusters, faults, noise and loads. Real runs (--real N): hosts that
are network namespaces of this machine, with and without a fault by tc, with and without other processes at work; they
need root. A finding is wrong if it names anything else than was injected. A verdict is wrong if it accepts a group with a
fault that the run says it can detect, or rejects a healthy one.
"""
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import threading

import _attack

BINS = [(0, 0.5), (0.5, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 0.98), (0.98, 0.99), (0.99, 1.01)]
SURE = 0.99
SLACK = 0.01  # one point
VERDICTS = ("accepted", "rejected", "incomplete")
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
    allowed = (1 - SURE + SLACK) * len(sure)
    if len(wrong) <= allowed:
        return []
    said = f"{len(wrong)} of {len(sure)} findings of confidence {SURE} and more are wrong, first {wrong[0][2]}"
    if len(wrong) == 1 and allowed < 1:
        print(f"{said}; one in so few is no proof of over-confidence")
        return []
    return [said]


def verdicts(what: str, runs: list, rare: float) -> list:
    """Counts of (faults, smallest loss of these, smallest detectable loss, verdict, how to repeat); what is wrong of them.

    The verdict is "accepted", "rejected" or "incomplete". An injected fault may be accepted only where the run itself
    reports that it cannot tell a loss of that size from noise; a healthy group may be incomplete, but not rejected. Both
    may happen in the share `rare` of the runs.
    """
    missed = [run for run in runs if run[0] and run[3] == "accepted"]
    wrong = [run for run in missed if run[1] >= run[2]]
    blamed = [run for run in runs if not run[0] and run[3] == "rejected"]
    for title, some in (("with a fault", [run for run in runs if run[0]]), ("healthy", [run for run in runs if not run[0]])):
        counts = ", ".join(f"{sum(run[3] == verdict for run in some)} {verdict}" for verdict in VERDICTS)
        print(f"{what} runs, {title}: {len(some)}: {counts}")
    if missed:
        print(f"{what} runs: {len(missed) - len(wrong)} faults accepted that are smaller than the run says it can detect")
    print(f"{what} runs: {len(wrong)} larger faults accepted, {len(blamed)} healthy groups rejected")
    faulty = sum(run[0] > 0 for run in runs)
    texts = []
    if len(wrong) > rare * faulty:
        texts += [f"{what} run accepted with a loss of {run[1]:.1%}, and it detects {run[2]:.1%}: {run[4]}" for run in wrong]
    if len(blamed) > rare * (len(runs) - faulty):
        texts += [f"{what} run without a fault rejected: {run[4]}" for run in blamed]
    return texts


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
    # A run says what it detects 99 times of 100; and some of the loads last for minutes and are told to nobody, so that
    # nothing sets them apart from a fault.
    wrong = verdicts("simulated", [(int(line[2]), float(line[8]), float(line[7]), line[6], " ".join(line)) for line in runs],
                     0.01)
    return count, table("simulated runs: of what was named with this confidence, how much is right", findings) + wrong


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


def draw_run(number: int, seed: int) -> dict:
    """What run `number` is: a fault or none, and how many other processes are at work."""
    rng = random.Random(seed * 1000003 + number)
    fault, share = rng.choice(["none", "none", "node", "link"]), rng.choice([10, 25, 50])
    first = rng.randrange(HOSTS)
    ends = sorted((first, (first + 1) % HOSTS))
    load = rng.choice([0, 0, 2, 4])
    planted = {"none": "none", "node": f"node n{first}", "link": f"link n{ends[0]} - n{ends[1]}"}[fault]
    return {"number": number, "planted": planted, "share": share if fault != "none" else 100, "load": load,
            "node": first, "ends": ends, "floor": rng.choice(["2%", "5%"]), "burn": rng.random()}


def record_of(folder: str, node: int):
    try:
        with open(os.path.join(folder, "out", f"node-{node:04}", "record.json"), encoding="utf-8") as file:
            return json.load(file)
    except OSError:
        return None


def result_of(drawn: dict, folder: str, codes: list) -> dict:
    """What the records of a run say. The verdict is the group's: rejected by one node, accepted by all."""
    verdict = "accepted" if set(codes) == {0} else "rejected" if 1 in codes else "incomplete"
    result = {**drawn, "codes": codes, "verdict": verdict, "findings": [], "open": 0, "smallest": 0.0}
    record = record_of(folder, 0)
    if record is None:
        return {**result, "failed": "no record of node 0"}
    measurements = [m for stage in record["stages"] if stage["name"] == "ring" for m in stage["measurements"]]
    sure = {m["labels"]["culprit"]: m["samples"][0] for m in measurements if m["metric"] == "ring.culprit_confidence"}
    for m in measurements:
        if m["metric"] == "ring.smallest_detectable_loss":
            result["smallest"] = max(m["samples"])
        if m["metric"] not in ("ring.culprits", "ring.undecided") or m["labels"]["culprit"] == "none":
            continue
        if m["labels"]["kind"] == "unattributable":
            result["open"] += 1
        else:
            result["findings"].append((sure[m["labels"]["culprit"]], m["labels"]["culprit"]))
    return result


def one_real_run(build: str, drawn: dict, folder: str) -> dict:
    """Runs the ring on four hosts with the fault and the load that were drawn."""
    hosts = Hosts(f"mcal{os.getpid() % 10000}-{drawn['number']}")
    burners, runs = [], []
    try:
        if drawn["planted"].startswith("node"):
            hosts.limit(drawn["node"], f"{drawn['share']}mbit")
        elif drawn["planted"].startswith("link"):
            hosts.limit_link(*drawn["ends"], f"{drawn['share']}mbit")
        plan = os.path.join(folder, "ring.toml")
        with open(plan, "w", encoding="utf-8") as file:
            file.write(PLAN.format(floor=drawn["floor"]))
        for burner in range(drawn["load"]):  # at work for a while and idle for a while, as other jobs are
            burners.append(subprocess.Popen([sys.executable, "-c", f"""
import random, time
r = random.Random({drawn["burn"] + burner})
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
            with open(os.path.join(folder, f"output{host}.txt"), "w", encoding="utf-8") as output:
                runs.append(subprocess.Popen(command, env={**os.environ, "MUSTER_TOKEN": "a-secret-of-this-bench"},
                                             stdout=output, stderr=output, start_new_session=True))
        codes = [run.wait(timeout=600) for run in runs]
        return result_of(drawn, folder, codes)
    finally:
        for process in burners + runs:
            if process.poll() is None:
                process.kill()
            process.wait()
        hosts.close()


def text_of(result: dict) -> str:
    named = ", ".join(f"{name} ({sure:.3f})" for sure, name in result["findings"]) or "nothing"
    return (f"run {result['number']}: {result['planted']} at {result['share']} of {HEALTHY}, {result['load']} busy processes: "
            f"{result['verdict']} {result['codes']}, names {named}, {result['open']} not located, detects "
            f"{result['smallest']:.1%}{', ' + result['failed'] if 'failed' in result else ''}")


def real(chosen, count: int):
    """Runs 0 to count - 1 of the seed; those that --results already holds are not run again."""
    if os.geteuid() != 0:
        sys.exit("real runs need network namespaces, and so root")
    folder = _attack.folder(chosen)
    results, lock = {}, threading.Lock()
    if chosen.results and os.path.exists(chosen.results):
        with open(chosen.results, encoding="utf-8") as file:
            results = {one["number"]: one for one in map(json.loads, file) if one["number"] < count}

    def work(number: int) -> None:
        own = os.path.join(folder, f"run-{number}")
        shutil.rmtree(own, ignore_errors=True)
        os.makedirs(own)
        result = one_real_run(chosen.build, draw_run(number, chosen.seed), own)
        with lock:
            results[number] = result
            print("real", text_of(result), flush=True)
            if chosen.results:
                with open(chosen.results, "a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")
        if not chosen.keep:
            shutil.rmtree(own)

    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for done in [pool.submit(work, number) for number in range(count) if number not in results]:
            done.result()
    every = [results[number] for number in range(count)]
    findings = [(sure, name == one["planted"], text_of(one)) for one in every for sure, name in one["findings"]]
    planted = [one for one in every if one["planted"] != "none"]
    print(f"{count} real runs: {len(planted)} with a fault, {sum(one['load'] > 0 for one in every)} with load, "
          f"{len(findings)} findings with a name, {sum(one['open'] for one in every)} not located")
    wrong = verdicts("real", [(one["planted"] != "none", 1 - one["share"] / 100, one["smallest"], one["verdict"], text_of(one))
                              for one in every], 0)
    failed = [text_of(one) for one in every if "failed" in one]
    return count, table("real runs: of what was named with this confidence, how much is right", findings) + wrong + failed


def main() -> None:
    chosen = _attack.options(__doc__.splitlines()[0], 5000, real=0, jobs=2, results="")
    trials, wrong = 0, []
    for kind, count in ((simulated, chosen.count), (real, chosen.real)):
        if count > 0:
            done, over = kind(chosen, count)
            trials += done
            wrong += over
    _attack.finish(trials, wrong)


main()

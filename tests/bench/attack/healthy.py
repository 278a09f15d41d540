# SPDX-License-Identifier: Apache-2.0
"""Healthy machines must be accepted.

Simulated: every shipped plan on every shipped GPU profile, 1, 2, 8 and 64 nodes, many seeds: each run is accepted, no
check fails or ends in error, the fleet is accepted, and it names an outlier no more often than it promises (chance names
about one healthy fleet in a hundred: reports/README.md, "Multiplicity"). Host: the shipped plans for the CPU on this machine while
other processes load it: accepted, or incomplete (exit 3) because the load explains a miss; never rejected.

Trials are ordered so that each combination has its first seed before any has its second, small ones first. With
--budget the bench stops after so many seconds; what was covered is printed either way.
"""
import glob
import json
import math
import os
import shutil
import subprocess
import sys
import time

import _attack
import _scenarios

PROMISED = 0.01  # of healthy fleets whose most unusual device or node is named as an outlier
HOST_PLANS = ("environment", "quickstart", "collective-host", "train-host")


def plans(share):
    return sorted(glob.glob(os.path.join(share, "plans", "*.toml")) + glob.glob(os.path.join(share, "plans", "*.lua")))


def findings(path):
    """What a record holds against its node."""
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    counts = record["accounting"]["counts"]
    bad = {name: counts[name] for name in ("fail", "error", "flaky") if counts.get(name)}
    if record["acceptance"] == "accepted" and not bad:
        return []
    details = [text for stage in record["stages"] for group in stage["verdicts"] if group["outcome"] in bad
               for text in [group.get("detail", "")] + group.get("rows", {}).get("detail", [])][:4]
    return [f"{record['run']['node']} is {record['acceptance']}: {bad} {'; '.join(record['reasons'] + details)}"]


def more_than_chance(named, fleets):
    """Whether chance, at the promised rate, names so many of these healthy fleets in fewer than one bench of a thousand."""
    mean = PROMISED * fleets
    fewer = sum(math.exp(-mean) * mean**count / math.factorial(count) for count in range(named))
    return 1 - fewer < 0.001


def simulate(chosen, plan, scenario, nodes, seed, out):
    """The wrong verdicts of one simulated run, as texts; adds to `chosen.fleets` and `chosen.named`."""
    muster = _attack.muster(chosen.build)
    command = [muster, "run", plan, "--simulate", scenario, "--nodes", str(nodes), "--seed", str(seed), "--out", out, "--plain"]
    command += _scenarios.options(os.path.join(chosen.build, "dist", "share", "muster"), scenario)
    code, text = _attack.run(*command)
    wrong = [] if code == 0 else [f"exit {code}: {text.strip()[-300:]}"]
    for record in sorted(glob.glob(os.path.join(out, "**", "record.json"), recursive=True)):
        wrong += findings(record)
    if nodes > 1 and not wrong:
        expected = os.path.join(out, "expected.txt")
        with open(expected, "w", encoding="utf-8") as file:
            file.writelines(f"sim-node-{node:04d}\n" for node in range(nodes))
        code, text = _attack.run(muster, "fleet", out, "--expect", expected)
        with open(os.path.join(out, "fleet.json"), encoding="utf-8") as file:
            fleet = json.load(file)
        chosen.fleets += 1
        suspects = [suspect for suspect in fleet["suspects"] if suspect["by"] == "peers"]
        if suspects:
            chosen.named.append(f"{' '.join(command)}: {'; '.join(line for suspect in suspects for line in suspect['evidence'])}")
        if code != 0 or len(suspects) != len(fleet["suspects"]):
            wrong.append(f"fleet: exit {code}, suspects {[s['what'] for s in fleet['suspects']]}: {text.strip()[-300:]}")
    return [f"{' '.join(command)}: {text}" for text in wrong]


def load(chosen):
    """Other processes that keep the CPUs busy, a random number of them: some steadily, some off and on."""
    spin = "while True: pass"
    pulse = "import time\nwhile True:\n end = time.time() + 0.7\n while time.time() < end: pass\n time.sleep(0.7)"
    count = chosen.random.randint(0, 4 * os.cpu_count())
    # pylint: disable-next=consider-using-with
    return [subprocess.Popen([sys.executable, "-c", chosen.random.choice((spin, pulse))]) for _ in range(count)]


def on_host(chosen, plan, out):
    """The wrong verdicts of one run on this machine while others load it."""
    others = load(chosen)
    try:
        command = [_attack.muster(chosen.build), "run", plan, "--out", out, "--plain"]
        code, text = _attack.run(*command)
    finally:
        for process in others:
            process.kill()
            process.wait()
    return [] if code in (0, 3) else [f"{' '.join(command)} beside {len(others)} busy processes: exit {code}: {text.strip()[-600:]}"]


def trials(chosen, share, folder):
    """(what, nodes, seed, function of the output folder): each combination once, then once more, ..."""
    sizes = [int(size) for size in chosen.nodes.split(",") if size]
    models = _scenarios.connected(share, folder)
    named = [p for p in plans(share) if (not chosen.plan or _scenarios.name_of(p) == chosen.plan) and _scenarios.name_of(p) not in chosen.skip.split(",")]
    named.sort(key=lambda path: (_scenarios.name_of(path) == "burn-in", path))  # 24 hours, which cost minutes though simulated
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        for nodes in sizes:
            for plan in named:
                for scenario in (model for model in models if _scenarios.suits(_scenarios.name_of(plan), model)):
                    scenario += _scenarios.SOCKET if _scenarios.name_of(plan) in HOST_PLANS else ""
                    what = f"{_scenarios.name_of(plan)} on {_scenarios.name_of(scenario)}"
                    yield what, nodes, lambda out, a=(plan, scenario, nodes, seed): simulate(chosen, *a, out)
        if chosen.host == "yes":
            for plan in named:
                if _scenarios.name_of(plan) in HOST_PLANS:
                    yield f"{_scenarios.name_of(plan)} under load", "host", lambda out, p=plan: on_host(chosen, p, out)


def main():
    chosen = _attack.options(__doc__.splitlines()[0], 50, nodes="1,2,8,64", budget=0.0, host="yes", plan="", skip="", verbose="no", sample=0)
    chosen.fleets, chosen.named = 0, []
    share = os.path.join(chosen.build, "dist", "share", "muster")
    folder = _attack.folder(chosen)
    everything = list(trials(chosen, share, folder))
    picked = sorted(chosen.random.sample(range(len(everything)), chosen.sample)) if chosen.sample else range(len(everything))
    begin, wrong, covered = time.monotonic(), [], {}
    for i in picked:
        if chosen.budget and time.monotonic() - begin > chosen.budget:
            break
        what, nodes, trial = everything[i]
        out = os.path.join(folder, str(i))
        found = trial(out)
        if chosen.verbose == "yes":
            print(f"{what}, {nodes}: {'wrong' if found else 'right'}", flush=True)
        wrong += found
        covered.setdefault(nodes, {}).setdefault(what, 0)
        covered[nodes][what] += 1
        if not chosen.keep:
            shutil.rmtree(out, ignore_errors=True)
    for nodes, runs in covered.items():
        of = len({what for what, n, _ in everything if n == nodes})
        print(f"{nodes} node{'' if nodes == 1 else 's'}: {len(runs)} of {of} combinations, "
              f"{min(runs.values())} to {max(runs.values())} of {chosen.count} seeds")
    done = sum(sum(runs.values()) for runs in covered.values())
    if done < len(everything):
        print(f"{len(everything) - done} of {len(everything)} trials were not run")
    print(f"{len(chosen.named)} of {chosen.fleets} healthy fleets name an outlier; chance at the promised rate: {PROMISED * chosen.fleets:.1f}")
    for text in chosen.named:
        print(f"  {text}")
    if more_than_chance(len(chosen.named), chosen.fleets):
        wrong.append("healthy fleets name an outlier more often than promised")
    _attack.finish(done, wrong)


if __name__ == "__main__":
    main()

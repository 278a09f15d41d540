# SPDX-License-Identifier: Apache-2.0
"""A limit on any metric of any test holds on every node, though one of them measures it for all.

Each trial is one test of one plugin on some healthy simulated nodes, with a limit that healthy nodes meet on each of its
metrics. A metric that some node measured must leave no node incomplete; one that nobody measured must leave one incomplete.
"""
import glob
import json
import os

import _attack
import _scenarios

PLAN = """schema = 1
name = "limits"
sku = "auto"
[[stage]]
name = "all"
plugin = "{plugin}"
test = "{test}"
scope = "{scope}"
timeout = "5m"
"""
LIMIT = """[[stage.expect]]
metric = "{metric}"
{limit}
source = "this bench"
remedy = "none"
"""


def tests_of(chosen):
    """(plugin, test, scope) of all that a simulation can run on several nodes, with the metrics by name."""
    tree = os.path.join(chosen.build, "dist", "lib", "muster")
    for library in sorted(glob.glob(os.path.join(tree, "plugins", "*.so"))):
        _, text = _attack.run(os.path.join(tree, "host", "muster-host"), "--describe", library)
        plugin = next(frame for frame in map(json.loads, text.splitlines()) if frame["type"] == "describe")
        for test in plugin["description"]["tests"]:
            metrics = {f"{plugin['name']}.{m['name']}": m for m in test["metrics"]
                       if m["unit"] != "text" and "sim" in m.get("backends", ["sim"])}
            for scope in test["scopes"]:
                if "sim" in test["backends"] and metrics and test["name"] != "telemetry":
                    yield plugin["name"], test["name"], scope, metrics


def trial(chosen, scenario, case, nodes, seed, out):
    """The wrong verdicts of one run, as texts."""
    plugin, test, scope, metrics = case
    os.makedirs(out, exist_ok=True)
    plan = os.path.join(out, "plan.toml")
    with open(plan, "w", encoding="utf-8") as file:
        file.write(PLAN.format(plugin=plugin, test=test, scope=scope))
        for name, metric in metrics.items():
            flag = "equals = false" if metric.get("direction") == "lower" else "equals = true"
            file.write(LIMIT.format(metric=name, limit=flag if metric["unit"] == "bool" else "max = 1e30"))
    command = [_attack.muster(chosen.build), "run", plan, "--simulate", scenario, "--nodes", str(nodes), "--seed", str(seed),
               "--out", os.path.join(out, "run"), "--plain"]
    code, text = _attack.run(*command)
    records = []
    for path in sorted(glob.glob(os.path.join(out, "run", "**", "record.json"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            records.append(json.load(file))
    where = f"{plugin}.{test} in scope {scope} on {nodes} nodes, seed {seed}"
    if code not in (0, 3) or len(records) != nodes:
        return [f"{where}: exit {code}: {text.strip()[-300:]}"]
    measured, missed = set(), {}
    for record in records:
        stage = next(s for s in record["stages"] if s["name"] == "all")
        if stage["state"] != "ran":
            return []  # this machine lacks what the test needs, and the run says so
        if any(group["outcome"] == "skipped" and "metric" not in group for group in stage["verdicts"]):
            return []
        measured |= {group["metric"] for group in stage["measurements"]}
        for group in stage["verdicts"]:
            if group["outcome"] == "error" and group.get("metric") in metrics:
                missed.setdefault(group["metric"], set()).add(record["run"]["node"])
    wrong = [f"{where}: {name} was measured, and yet missing on {sorted(missed[name])}" for name in measured & set(missed)]
    wrong += [f"{where}: nobody measured {name}, and no node says so" for name in set(metrics) - measured - set(missed)]
    return wrong


def main():
    chosen = _attack.options(__doc__.splitlines()[0], 100, nodes="1,2,3")
    folder = _attack.folder(chosen)
    cases = [(case, int(nodes)) for case in tests_of(chosen) for nodes in chosen.nodes.split(",")]
    scenario = chosen.random.choice(_scenarios.connected(os.path.join(chosen.build, "dist", "share", "muster"), folder))
    wrong = []
    for i in range(chosen.count):
        if i % len(cases) == 0:
            chosen.random.shuffle(cases)
        case, nodes = cases[i % len(cases)]
        wrong += trial(chosen, scenario, case, nodes, chosen.seed + i, os.path.join(folder, str(i)))
    _attack.finish(chosen.count, wrong)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forged fleets are never accepted and always named; honest ones are never blamed.

--count fleets with one forged, copied, renamed, re-judged, looser-judged, stale, foreign or wrong-SKU record each, and a
tenth as many honest ones, are judged in process; --cli of the former and a tenth as many of the latter by `muster fleet`.
A forger who makes up new serials and valid digests for everything is out of reach there: these records have no MAC.
--runs run folders of Slurm are forged by a job of the run's own user, who can read every key: nobody is drained, accepted or
spared by it, and each forgery is named.
"""
import json
import os
import sys

import _attack


def told(fleet, output):
    """Everything that fleet.json says against nodes and records."""
    texts = [finding["text"] for finding in fleet["findings"]]
    names = [name for finding in fleet["findings"] for name in finding["nodes"] + finding["records"]]
    names += [node["node"] for node in fleet["nodes"] if node["state"] != "accepted" and node.get("reason")]
    names += [out["path"] for key in ("quarantined", "stale") for out in fleet[key]]
    return names, texts or output.splitlines()[:3]


def judge(chosen, folder):
    """What is wrong with the verdict of `muster fleet` on one fleet; None: it is right."""
    with open(os.path.join(folder, "made.json"), encoding="utf-8") as file:
        made = json.load(file)
    code, output = _attack.run(_attack.muster(chosen.build), "fleet", os.path.join(folder, "run"), "--expect",
                               os.path.join(folder, "expect.txt"), "--out", os.path.join(folder, "fleet"), *made["arguments"])
    where = f"{os.path.basename(folder)} ({made['kind']})"
    if code not in (0, 1, 3):
        return f"{where}: exit {code}: {output}"
    with open(os.path.join(folder, "fleet", "fleet.json"), encoding="utf-8") as file:
        fleet = json.load(file)
    names, texts = told(fleet, output)
    if made["forged"] and code == 0:
        return f"{where}: accepted"
    if made["forged"] and not set(names) & set(made["to_name"]):
        return f"{where}: not named: {made['to_name']}"
    if not made["forged"] and (code != 0 or fleet["findings"]):
        return f"{where}: blamed: {texts}"
    return None


def main():
    chosen = _attack.options(__doc__.splitlines()[0], 10000, cli=200, runs=1000)
    program = os.path.join(chosen.build, "tests", "bench", "forgery-fleets")
    wrong = []
    forged, honest = chosen.count, max(1, chosen.count // 10)
    if chosen.count > 0:
        code, output = _attack.run(program, "judge", str(forged), str(honest), str(chosen.seed))
        print(output, end="")
        wrong += [line for line in output.splitlines() if line.startswith("WRONG")]
        if code != 0 and not wrong:
            wrong.append(f"forgery-fleets ended with {code}")
    if chosen.runs > 0:
        code, output = _attack.run(program, "runs", str(chosen.runs), str(chosen.seed))
        print(output, end="")
        wrong += [line for line in output.splitlines() if line.startswith("WRONG")]
        if code != 0 and not wrong:
            wrong.append(f"forgery-fleets runs ended with {code}")
    folder = _attack.folder(chosen)
    cli_honest = max(1, chosen.cli // 10)
    code, output = _attack.run(program, "write", folder, str(chosen.cli), str(cli_honest), str(chosen.seed))
    if code != 0:
        wrong.append(f"forgery-fleets write ended with {code}: {output}")
    fleets = sorted(name for name in os.listdir(folder) if name.startswith(("forged-", "honest-")))
    by_command = [problem for problem in (judge(chosen, os.path.join(folder, name)) for name in fleets) if problem]
    print(f"by `muster fleet`: {chosen.cli} forged, {cli_honest} honest: {len(by_command)} wrong")
    if len(fleets) != chosen.cli + cli_honest:
        wrong.append(f"{len(fleets)} fleets were written, {chosen.cli + cli_honest} expected")
    _attack.finish(forged + honest + chosen.runs + len(fleets), wrong + by_command)


if __name__ == "__main__":
    sys.exit(main())

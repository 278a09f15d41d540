# SPDX-License-Identifier: Apache-2.0
"""Counts the single test cases of a `meson test` run from its testlog.json and prints the run's last lines.

A GoogleTest binary counts as its cases, any other test as one. Skipped cases are listed with their reasons. Ends 1
when anything failed, when no test ran, or when Meson itself did not end with 0.
"""
import argparse
import json
import re
import sys

GOOD = {"OK", "EXPECTEDFAIL"}
CASE = re.compile(r"\[\s*(OK|FAILED|SKIPPED)\s*\] (\S+?)(?:, where .*)? \(\d+ ms\)$", re.M)
STARTED = re.compile(r"^\[ RUN      \] (\S+)$", re.M)
SKIP_REASON = re.compile(r"^.*: Skipped\n(.*)$", re.M)


def reason_of(output, name):
    """The text that GTEST_SKIP() << printed between a case's start and its end."""
    begin = output.find(f"[ RUN      ] {name}\n")
    found = SKIP_REASON.search(output, begin if begin >= 0 else 0)
    return found.group(1).strip() if found and found.group(1).strip() else "no reason given"


def cases_of(test):
    """One test of Meson's as a list of (name, state, reason); state is passed, failed or skipped."""
    output = test.get("stdout") or ""
    cases = []
    for state, name in CASE.findall(output):
        label = f"{test['name']}: {name}"
        if state == "SKIPPED":
            cases.append((label, "skipped", reason_of(output, name)))
        else:
            cases.append((label, "passed" if state == "OK" else "failed", ""))
    ended = {name for _, name in CASE.findall(output)}
    for name in STARTED.findall(output):
        if name not in ended:
            cases.append((f"{test['name']}: {name}", "failed", f"did not end ({test['result']})"))
    if test["result"] == "SKIP" and not cases:
        last = output.strip().splitlines()
        return [(test["name"], "skipped", last[-1] if last else "no reason given")]
    healthy = test["result"] in GOOD or test["result"] == "SKIP"
    if not cases:
        return [(test["name"], "passed" if healthy else "failed", test["result"])]
    if not healthy and not any(state == "failed" for _, state, _ in cases):
        cases.append((test["name"], "failed", f"{test['result']}, exit code {test.get('returncode')}"))
    return cases


def read_log(path):
    with open(path, encoding="utf-8") as log:
        return [json.loads(line) for line in log if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log")
    parser.add_argument("--exit-code", type=int, required=True, help="how `meson test` itself ended")
    options = parser.parse_args()
    try:
        cases = [case for test in read_log(options.log) for case in cases_of(test)]
    except (OSError, ValueError, KeyError) as error:
        print(f"summary: cannot read {options.log}: {error}; so nothing is known to have passed", file=sys.stderr)
        return 1
    count = {state: sum(1 for case in cases if case[1] == state) for state in ("passed", "failed", "skipped")}
    for state in ("skipped", "failed"):
        for name, _, reason in (case for case in cases if case[1] == state):
            print(f"{state}: {name}" + (f" ({reason})" if reason else ""))
    if not cases:
        print("summary: no test ran", file=sys.stderr)
    if options.exit_code != 0 and count["failed"] == 0:
        print(f"summary: meson test ended with {options.exit_code}", file=sys.stderr)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if options.exit_code != 0 or count["failed"] > 0 or count["passed"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

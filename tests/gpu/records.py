# SPDX-License-Identifier: Apache-2.0
"""Measurements and verdicts of a record of schema 2: rows and packed samples as plain values (reports/README.md has the rules)."""

import json


def rows(group):
    """The objects that a group stands for."""
    if "rows" not in group:
        return [group]
    shared = {key: value for key, value in group.items() if key != "rows"}
    columns = group["rows"]
    count = len(next(iter(columns.values())))
    return [{**shared, **{key: column[i] for key, column in columns.items() if column[i] is not None}} for i in range(count)]


def samples(measurement):
    """All samples in the base unit; empty for a text."""
    packed = measurement.get("samples", [])
    values = [packed["value"]] * packed["n"] if isinstance(packed, dict) else packed
    exponent = measurement.get("exponent", 0)
    return [float(value) * 10**exponent if exponent >= 0 else float(value) / 10**-exponent for value in values]


def labels(measurement):
    """The labels, with the device where it is one of them."""
    own = dict(measurement.get("labels", {}))
    if "device" in measurement and measurement.get("device_label", True):
        own.setdefault("device", measurement["device"])
    return own


def read(path):
    record = json.loads(path.read_text())
    if record.get("schema") != 2:
        raise ValueError(f"{path}: a record of schema {record.get('schema')}; expected 2")
    return record


def measurements(record):
    """(stage, metric, unit, labels, samples) of every measurement."""
    for stage in record["stages"]:
        for group in stage["measurements"]:
            for one in rows(group):
                yield stage["name"], one["metric"], one["unit"], labels(one), samples(one)


# The worst first; what a reader must see decides what is said of a requirement.
ORDER = ["fail", "flaky", "waived", "missed", "error", "skipped", "deferred", "elsewhere", "pass"]


def requirements(record):
    """One object for each expectation of each stage: what it asks for, whose word that is, and how its verdicts ended.

    `outcomes` counts the verdicts; a warning counts as pass where the limit was met, as "missed" where it was not.
    The other texts are those of the worst verdict. `trouble` is the stage's: what a rank did not measure has no verdict.
    """
    for stage in record["stages"]:
        # A test that this machine does not support leaves its telemetry judged.
        problems = [] if unsupported(stage) else troubles(stage)
        expectations = stage["evidence"].get("expectations", [])
        found = {}
        for group in stage["verdicts"]:
            for verdict in rows(group):
                expectation = verdict.get("expectation")
                if isinstance(expectation, int):
                    expectation = expectations[expectation]
                if expectation:
                    key = json.dumps(expectation, sort_keys=True)
                    found.setdefault(key, (expectation, []))[1].append((*order(verdict), verdict))
        for expectation, verdicts in found.values():
            yield {**requirement(stage["name"], expectation, verdicts), "trouble": "; ".join(problems[:1])}


def unsupported(stage):
    """Whether every rank of a stage said that this machine does not support its test."""
    said = [one for group in stage["verdicts"] for one in rows(group) if "expectation" not in one and one["outcome"] == "skipped"]
    return stage.get("outcome") == "skipped" and len(said) == len(stage.get("ranks", [])) > 0


def troubles(stage):
    """Why a stage, a case or a rank of it has no result, one line each."""
    found = [stage["reason"] or stage["state"]] if stage["state"] != "ran" else []
    for verdict in [one for group in stage["verdicts"] for one in rows(group)]:
        if "expectation" not in verdict and verdict["outcome"] not in ("pass", "warn", "unjudged"):
            # The command that reruns it names a folder that is gone by then.
            found.append((verdict.get("detail") or verdict["outcome"]).split("; rerun it alone: ")[0])
    return found


def order(verdict):
    """(outcome, margin) of a verdict, in words of ORDER."""
    known = isinstance(verdict.get("margin"), (int, float))
    margin = verdict["margin"] if known else 0
    outcome = verdict["outcome"]
    if outcome == "warn":
        outcome = "pass" if known and margin >= 0 else "missed"
    return outcome, margin


def requirement(stage, expectation, verdicts):
    worst = min(verdicts, key=lambda one: (ORDER.index(one[0]) if one[0] in ORDER else 0, one[1]))[2]
    outcomes = {}
    for outcome, _, _ in verdicts:
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return {"stage": stage, "metric": expectation["metric"], "where": expectation.get("where", {}), "kind": expectation["kind"],
            "origin": expectation.get("origin", ""), "source": expectation.get("source", ""), "unit": expectation.get("unit", ""),
            "requires": worst.get("limit_text", ""), "outcomes": outcomes, "observed": worst.get("observed"),
            "detail": worst.get("detail", "") or worst.get("observed_text", "")}

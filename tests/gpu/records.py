# SPDX-License-Identifier: Apache-2.0
"""Measurements of a record of schema 2: rows and packed samples as plain values (reports/README.md has the rules)."""

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


def measurements(path):
    """(stage, metric, unit, labels, samples) of every measurement of the record at `path`."""
    record = json.loads(path.read_text())
    if record.get("schema") != 2:
        raise ValueError(f"{path}: a record of schema {record.get('schema')}; expected 2")
    for stage in record["stages"]:
        for group in stage["measurements"]:
            for one in rows(group):
                yield stage["name"], one["metric"], one["unit"], labels(one), samples(one)

# SPDX-License-Identifier: Apache-2.0
"""Reads what Muster wrote with packages of others: OCP streams with OCP's own `ocptv`, Prometheus text with the parser of
`prometheus-client`. Both are wheels of Python alone, downloaded once. Usage: standards.py FOLDER
"""
import dataclasses
import datetime
import enum
import glob
import json
import os
import sys
import typing

sys.path.insert(0, os.path.join(os.environ["MUSTER_SOURCE"], "tests/support"))
import registry

KEPT = os.path.join(os.environ["MUSTER_BUILD"], "format-packages")
RUN, STEP = "testRunArtifact", "testStepArtifact"


class Stream:
    """Makes ocptv's objects, which check their types, of one stream's JSON; a key that none of them has is an error."""

    def __init__(self):
        import ocptv.output.objects as objects
        self.objects = objects
        self.kinds = {kind.SPEC_OBJECT: kind for kind in vars(objects).values() if hasattr(kind, "SPEC_OBJECT")}
        self.parts = {}

    def value(self, hint, value):
        arguments = typing.get_args(hint)
        if typing.get_origin(hint) is typing.Union:
            hint, = [one for one in arguments if one is not type(None)][:1] if type(None) in arguments else (None,)
            return value if hint is None else self.value(hint, value)
        if typing.get_origin(hint) is list:
            return [self.value(arguments[0], one) for one in value]
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return hint(value)
        if hint is self.objects.Metadata:
            return hint(value)
        if hint is self.objects.HardwareInfo and isinstance(value, str):
            return self.parts[value]  # it must have been declared
        return self.object(hint, value) if hasattr(hint, "__dataclass_fields__") else value

    def object(self, kind, value):
        left = dict(value)
        made = {}
        for field in dataclasses.fields(kind):
            name = field.name
            key = field.metadata.get("spec_field")
            if key is None:
                hint = [one for one in typing.get_args(field.type) or (field.type,) if one is not type(None)][0]
                key = hint.SPEC_OBJECT
            if key not in left:
                made[name] = [] if typing.get_origin(field.type) is list else None
            elif key == "timestamp":
                made[name] = datetime.datetime.fromisoformat(left.pop(key).replace("Z", "+00:00")).timestamp()
            else:
                made[name] = self.value(field.type, left.pop(key))
        assert not left, f"{kind.__name__} has no {sorted(left)}"
        result = kind(**made)
        if kind is self.objects.HardwareInfo:
            self.parts[result.id] = result
        return result

    def check(self, line, number):
        root = json.loads(line)
        assert root.pop("sequenceNumber") == number
        assert datetime.datetime.fromisoformat(root.pop("timestamp").replace("Z", "+00:00")).tzinfo
        (key, value), = root.items()
        if key == "schemaVersion":
            self.object(self.objects.SchemaVersion, value)
            return key, None, None
        step = value.pop("testStepId", None)
        assert (step is not None) == (key == STEP) and key in (RUN, STEP)
        (kind, content), = value.items()
        self.object(self.kinds[kind], content)
        return kind, step, content


def check_stream(path):
    """Every line, and their order: version, start, steps one after another, end."""
    stream = Stream()
    with open(path, encoding="utf-8") as file:
        lines = [stream.check(line, number) for number, line in enumerate(file)]
    kinds = [kind for kind, _, _ in lines]
    assert kinds[:2] == ["schemaVersion", "testRunStart"] and kinds[-1] == "testRunEnd"
    assert kinds.count("testRunStart") == kinds.count("testRunEnd") == kinds.count("schemaVersion") == 1
    now, ended, series = None, set(), {}
    for kind, step, content in lines:
        if kind == "testStepStart":
            assert now is None and step not in ended, f"step {step} starts in {now}"
            now, series = step, {}
        if step is not None:
            assert step == now, f"{kind} of step {step} in {now}"
        if kind == "measurementSeriesElement":
            assert content["index"] == series[content["measurementSeriesId"]]
            series[content["measurementSeriesId"]] += 1
        elif kind == "measurementSeriesStart":
            assert content["measurementSeriesId"] not in series
            series[content["measurementSeriesId"]] = 0
        elif kind == "measurementSeriesEnd":
            assert content["totalCount"] == series[content["measurementSeriesId"]]
        elif kind == "testStepEnd":
            ended.add(now)
            now = None
    assert now is None
    end = lines[-1][2]
    assert (end["status"] == "COMPLETE") or end["result"] == "NOT_APPLICABLE"
    return len(lines)


def check_prometheus(path):
    """prometheus-client reads as many series as there are lines, none of them twice."""
    from prometheus_client.parser import text_string_to_metric_families
    with open(path, encoding="utf-8") as file:
        text = file.read()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert len(samples) == sum(not line.startswith("#") for line in text.splitlines())
    keys = {(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples}
    assert len(keys) == len(samples), "a series is there twice"
    verdicts = [sample.value for sample in samples if sample.name == "muster_run_verdict"]
    assert sum(verdicts) * 6 == len(verdicts)
    return len(samples)


def main():
    try:
        for package, version in (("ocptv", "0.1.7"), ("prometheus-client", "0.26.0")):
            sys.path.insert(0, registry.wheel(package, version, KEPT))
    except registry.Unavailable as why:
        print(why)
        return 77
    wrong, checked = [], 0
    for ending, check in ((".ocp.jsonl", check_stream), (".prom", check_prometheus)):
        for path in sorted(glob.glob(os.path.join(sys.argv[1], "*" + ending))):
            try:
                checked += check(path)
            except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
                wrong.append(f"{os.path.basename(path)}: {type(error).__name__}: {error}")
    print("\n".join(wrong), f"{checked} lines")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What a run of `./dev gpu` found: checks and figures, as one JSON file and as a table."""
import datetime
import json
import os
import pathlib
import re

import records

PASS, FAIL, SKIP = "pass", "fail", "skip"


def text(document):
    """JSON with one line for each check, figure and record: there are thousands."""
    def value(one):
        return "[\n" + ",\n".join(json.dumps(item) for item in one) + "]" if isinstance(one, list) and one else json.dumps(one)
    return "{" + ",\n".join(f"{json.dumps(key)}: {value(one)}" for key, one in document.items()) + "}\n"


class Results:
    """Kept on disk after every check, so that a run that is cut off loses nothing."""

    def __init__(self, folder, machine):
        date = datetime.datetime.now(datetime.timezone.utc)
        self.document = {"schema": 1, "date": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": machine,
                         "parts": {}, "records": [], "checks": [], "figures": []}
        self.part = ""
        gpu = re.sub(r"[^a-z0-9]+", "-", machine.get("gpu", "no-gpu").lower()).strip("-")
        self.path = pathlib.Path(folder) / f"{date:%Y%m%d-%H%M%S-%f}-{gpu}.json"  # two runs may begin in one second

    def begin(self, part):
        """From now on checks are of this part of run.py. Until it ends it counts as cut off."""
        self.part = part
        self.end("was cut off")

    def end(self, state):
        self.document["parts"][self.part] = state
        self.save()

    def check(self, name, outcome, detail="", **more):
        """One line of the table: what was checked, how it ended, and the figure beside what was expected."""
        self.document["checks"].append({"name": name, "part": self.part, "outcome": outcome, "detail": detail, **more})
        print(f"  {outcome:4}  {name:52} {detail}", flush=True)
        self.save()

    def figure(self, name, value, unit, **labels):
        """Is on disk with the next check: a record has thousands."""
        self.document["figures"].append({"name": name, "value": value, "unit": unit, "labels": labels})

    def record(self, plan, record, kept):
        """What a record says beside its figures: requirements, peaks and the profile in force; `kept` is its folder."""
        self.document["records"].append({
            "plan": plan, "kept": kept, "simulated": record["simulated"], "acceptance": record["acceptance"],
            "profile": {key: record["profile"][key] for key in ("name", "sha256", "text")}, "peaks": record["peaks"],
            "requirements": list(records.requirements(record)),
            "troubles": [f"stage {stage['name']}: {text}" for stage in record["stages"] for text in records.troubles(stage)[:1]]})
        self.save()

    def values(self, name, where):
        """All figures of this name that carry these labels."""
        return [one["value"] for one in self.document["figures"]
                if one["name"] == name and all(one["labels"].get(key) == value for key, value in where.items())]

    def count(self, outcome):
        return sum(check["outcome"] == outcome for check in self.document["checks"])

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(text(self.document))
        os.replace(temporary, self.path)

    def exit_code(self):
        """1: a check failed. 3: nothing was proven. 0: everything that could run passed, and something ran."""
        if self.count(FAIL):
            return 1
        return 0 if self.count(PASS) else 3

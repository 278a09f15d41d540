# SPDX-License-Identifier: Apache-2.0
"""What a run of `./dev gpu` found: checks and figures, as one JSON file and as a table."""
import datetime
import json
import os
import pathlib
import re

PASS, FAIL, SKIP = "pass", "fail", "skip"


class Results:
    """Kept on disk after every check, so that a run that is cut off loses nothing."""

    def __init__(self, folder, machine):
        date = datetime.datetime.now(datetime.timezone.utc)
        self.document = {"schema": 1, "date": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": machine, "checks": [], "figures": []}
        gpu = re.sub(r"[^a-z0-9]+", "-", machine.get("gpu", "no-gpu").lower()).strip("-")
        self.path = pathlib.Path(folder) / f"{date:%Y%m%d-%H%M%S}-{gpu}.json"

    def check(self, name, outcome, detail="", **more):
        """One line of the table: what was checked, how it ended, and the figure beside what was expected."""
        self.document["checks"].append({"name": name, "outcome": outcome, "detail": detail, **more})
        print(f"  {outcome:4}  {name:52} {detail}", flush=True)
        self.save()

    def figure(self, name, value, unit, **labels):
        self.document["figures"].append({"name": name, "value": value, "unit": unit, "labels": labels})
        self.save()

    def count(self, outcome):
        return sum(check["outcome"] == outcome for check in self.document["checks"])

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.document, indent=1) + "\n")
        os.replace(temporary, self.path)

    def exit_code(self):
        """1: a check failed. 3: nothing was proven. 0: everything that could run passed, and something ran."""
        if self.count(FAIL):
            return 1
        return 0 if self.count(PASS) else 3

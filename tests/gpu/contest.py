# SPDX-License-Identifier: Apache-2.0
"""Two workers that take turns (A B A B ...) on one GPU, so that heat and a neighbour hit both alike.

A worker is a process that answers each line "what argument ..." with one line of JSON: {"value": 7.1e14, "unit":
"FLOP/s"}, or {"error": "..."} for what it cannot do.
"""
import json
import statistics
import subprocess


class WorkerEnded(Exception):
    pass


class Worker:
    def __init__(self, command, environment):
        self.command = [str(part) for part in command]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, line):
        """The rate that the worker measured, or None and why there is none."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            while answer and not answer.startswith("{"):  # a library that prints
                answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise WorkerEnded(f"{' '.join(self.command)} ended with {self.process.wait()} at \"{line}\"")
        found = json.loads(answer)
        return found.get("value"), found.get("error", "")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Contest:
    """One question, asked of ours and of theirs in turns; the first turn of each warms up and is not counted."""

    def __init__(self, ours, theirs, turns):
        self.ours, self.theirs, self.turns = ours, theirs, turns

    def rates(self, line, variants):
        """(ours, theirs, why not) with theirs the better of the variants in each turn; lists of one rate a turn."""
        ours, theirs = [], []
        for turn in range(self.turns + 1):
            mine, problem = self.ours.ask(line)
            if mine is None:
                return [], [], f"ours: {problem}"
            answers = [self.theirs.ask(f"{line} {variant}".strip()) for variant in variants]
            best = max((value for value, _ in answers if value is not None), default=None)
            if best is None:
                return [], [], f"torch: {answers[0][1]}"
            if turn > 0:
                ours.append(mine)
                theirs.append(best)
        return ours, theirs, ""


def median_ratio(ours, theirs):
    return statistics.median(a / b for a, b in zip(ours, theirs))

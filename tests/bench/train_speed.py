# SPDX-License-Identifier: Apache-2.0
"""Samples/s of whole training steps (forward, backward, optimizer) beside Debian's PyTorch: same models, batch and
threads. Both processes stay alive and take turns (A B A B ...), so that a neighbour or a falling clock hits both; the
ratio is the median over the pairs. bf16 of ours takes its turn beside them and is reported, without a goal: torch 1.13
trains in f32 here.

Usage: train_speed.py WORKER BACKENDS [MODEL...] [--pairs N] [--threads N]. Ends 1 when a goal is missed, 2 when a
run failed.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

GOAL = 1.2
BATCH = {"resnet18": 32, "resnet50": 8, "gpt": 8}
STEPS = {"resnet18": 10, "resnet50": 2, "gpt": 20}  # of one turn
TORCH = pathlib.Path(__file__).with_name("train_torch.py")


class Worker:
    """A process that runs N steps for each line "N"."""

    def __init__(self, command, threads):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def line(self):
        text = self.process.stdout.readline().strip()
        if not text:
            sys.exit(f"train_speed.py: {' '.join(map(str, self.command))} ended with {self.process.wait()}")
        return text

    def seconds(self, steps):
        try:
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended: line() says so
        return float(self.line().split()[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours(Worker):
    """Our worker says first what it runs, or that this processor has no such type."""

    def __init__(self, model, dtype, options):
        super().__init__([options.worker, options.backends, model, dtype], options.threads)
        self.runs = self.line()


def contest(model, options):
    """Samples/s of one model: {"f32": [...], "bf16": [...], "torch": [...]}, one of each a round; bf16 where there is."""
    workers = {dtype: Ours(model, dtype, options) for dtype in ("f32", "bf16")}
    for dtype, worker in list(workers.items()):
        print(f"{model}: {worker.runs}", flush=True)
        if worker.runs.startswith("unsupported"):
            if dtype == "f32":
                sys.exit(2)
            workers.pop(dtype).close()
    workers["torch"] = Worker(["/usr/bin/python3", TORCH, model, str(options.threads)], options.threads)
    rates = {name: [] for name in workers}
    for number in range(options.pairs + 1):  # the first round warms up and is not counted
        for name, worker in workers.items():
            rates[name].append(STEPS[model] * BATCH[model] / worker.seconds(STEPS[model]))
        print(f"\r{model}: pair {number} of {options.pairs}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for worker in workers.values():
        worker.close()
    return {name: all_rates[1:] for name, all_rates in rates.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("backends")
    parser.add_argument("model", nargs="*", choices=[*BATCH, []], default=[])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    missed = []
    table = [f"{'samples/s, median':26} {'muster':>10} {'torch f32':>10} {'ratio':>7} {'lowest':>7} {'highest':>8}"]
    for model in options.model or BATCH:
        rates = contest(model, options)
        for dtype in [name for name in rates if name != "torch"]:
            ratios = [ours / torch for ours, torch in zip(rates[dtype], rates["torch"])]
            ratio = statistics.median(ratios)
            table.append(f"{f'{model} {dtype}, batch {BATCH[model]}':26} {statistics.median(rates[dtype]):10.1f} "
                         f"{statistics.median(rates['torch']):10.1f} {ratio:7.2f} {min(ratios):7.2f} {max(ratios):8.2f}")
            if dtype == "f32" and ratio < GOAL:
                missed.append(model)
    print("\n".join(table))
    print(f"goal in f32: {GOAL} x PyTorch on {options.threads} threads: " + (f"missed by {', '.join(missed)}" if missed else "met"))
    return 1 if missed else 0


sys.exit(main())

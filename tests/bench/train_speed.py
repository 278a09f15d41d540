# SPDX-License-Identifier: Apache-2.0
"""Samples/s of whole training steps (forward, backward, optimizer) beside PyTorch, eager and compiled: same models,
batch, threads and type. All processes stay alive and take turns (A B C A B C ...), so that a neighbour or a falling
clock hits each; a ratio is the median over the rounds.

Usage: train_speed.py WORKER BACKENDS PYTHON [MODEL...] [--dtype TYPE] [--pairs N] [--threads N]. PYTHON has torch. Ends
1 when a goal is missed, 2 when a run failed.
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
DTYPES = ("f32", "bf16")
MODES = ("eager", "compiled")
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


def contest(model, dtype, options):
    """Samples/s by who ran: {"muster": [...], "eager": [...], "compiled": [...]}, one of each a round. None: this
    processor has no such type."""
    workers = {"muster": Worker([options.worker, options.backends, model, dtype], options.threads)}
    for mode in MODES:
        workers[mode] = Worker([options.python, TORCH, model, dtype, mode, str(options.threads)], options.threads)
    said = [worker.line() for worker in workers.values()]
    print(f"{model}: {'; '.join(said)}", flush=True)
    if said[0].startswith("unsupported"):
        for worker in workers.values():
            worker.close()
        return None
    rates = {name: [] for name in workers}
    for number in range(options.pairs + 1):  # the first round warms up, or compiles, and is not counted
        for name, worker in workers.items():
            rates[name].append(STEPS[model] * BATCH[model] / worker.seconds(STEPS[model]))
        print(f"\r{model} {dtype}: round {number} of {options.pairs}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for worker in workers.values():
        worker.close()
    return {name: all_rates[1:] for name, all_rates in rates.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("backends")
    parser.add_argument("python")
    parser.add_argument("model", nargs="*", choices=[*BATCH, []], default=[])
    parser.add_argument("--dtype", choices=DTYPES, action="append")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    missed = []
    table = [f"{'samples/s, median':26} {'muster':>9} {'eager':>9} {'compiled':>9} {'ratio':>7} {'lowest':>7} {'highest':>8}"]
    for model in options.model or BATCH:
        for dtype in options.dtype or DTYPES:
            rates = contest(model, dtype, options)
            if rates is None:
                if dtype == "f32":
                    sys.exit(2)
                continue
            ratios = [ours / max(others) for ours, *others in zip(*rates.values())]
            ratio = statistics.median(ratios)
            row = " ".join(f"{statistics.median(rates[name]):9.1f}" for name in rates)
            table.append(f"{f'{model} {dtype}, batch {BATCH[model]}':26} {row} {ratio:7.2f} {min(ratios):7.2f} {max(ratios):8.2f}")
            if ratio < GOAL:
                missed.append(f"{model} {dtype}")
    print("\n".join(table))
    print(f"goal: {GOAL} x the faster PyTorch on {options.threads} threads: " + (f"missed by {', '.join(missed)}" if missed else "met"))
    return 1 if missed else 0


sys.exit(main())

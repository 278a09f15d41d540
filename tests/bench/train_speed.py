# SPDX-License-Identifier: Apache-2.0
"""Samples/s of whole training steps (forward, backward, optimizer) beside Debian's PyTorch: same models, batch and
threads. Both processes stay alive and take turns (A B A B ...), so that a neighbour or a falling clock hits both; the
ratio is the median over the pairs.

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

    def seconds(self, steps):
        try:
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline().split()[0])
        except (BrokenPipeError, IndexError):
            sys.exit(f"train_speed.py: {' '.join(map(str, self.command))} ended with {self.process.wait()}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def contest(model, options):
    ours = Worker([options.worker, options.backends, model], options.threads)
    torch = Worker(["/usr/bin/python3", TORCH, model, str(options.threads)], options.threads)
    steps, samples = STEPS[model], STEPS[model] * BATCH[model]
    rates = []
    for number in range(options.pairs + 1):  # the first pair warms up and is not counted
        rates.append((samples / ours.seconds(steps), samples / torch.seconds(steps)))
        print(f"\r{model}: pair {number} of {options.pairs}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    ours.close()
    torch.close()
    return rates[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("backends")
    parser.add_argument("model", nargs="*", choices=[*BATCH, []], default=[])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    missed = []
    print(f"{'samples/s, median':20} {'muster':>10} {'torch':>10} {'ratio':>7} {'lowest':>7} {'highest':>8}")
    for model in options.model or BATCH:
        rates = contest(model, options)
        ratios = [ours / torch for ours, torch in rates]
        ratio = statistics.median(ratios)
        print(f"{model + ', batch ' + str(BATCH[model]):20} {statistics.median(r[0] for r in rates):10.1f} "
              f"{statistics.median(r[1] for r in rates):10.1f} {ratio:7.2f} {min(ratios):7.2f} {max(ratios):8.2f}", flush=True)
        if ratio < GOAL:
            missed.append(model)
    print(f"goal: {GOAL} x PyTorch on {options.threads} threads: " + (f"missed by {', '.join(missed)}" if missed else "met"))
    return 1 if missed else 0


sys.exit(main())

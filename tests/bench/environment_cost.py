# SPDX-License-Identifier: Apache-2.0
"""Times `muster run plans/environment.toml` as a whole process, report included, beside `python -c "import torch"`.

The two run in turn (A B A B ...), so that both see the same machine; the figure is the median of the pairs' ratios.
Usage: environment_cost.py MUSTER PLAN PYTHON [--pairs N]. PYTHON has torch. Ends 1 when the goal is missed, 2 when a run itself failed.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

GOAL = 1 / 30


class RunFailed(Exception):
    """A command that did not end with 0, and what it said."""


def wall_time(command):
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise RunFailed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds


def pair(muster, plan, python, folder):
    out = pathlib.Path(folder, "out")
    first = wall_time([muster, "run", plan, "--out", str(out)])
    if not (out / "report.html").is_file():
        raise RunFailed(f"{muster} left no report in {out}")
    return first, wall_time([python, "-c", "import torch"])


def measure(muster, plan, python, pairs):
    times = []
    for number in range(pairs + 1):  # the first pair fills the caches and is not counted
        with tempfile.TemporaryDirectory() as folder:
            times.append(pair(muster, plan, python, folder))
        print(f"\rpair {number} of {pairs}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return times[1:]


def show(name, values):
    print(f"{name:34} {min(values) * 1e3:9.1f} {statistics.median(values) * 1e3:9.1f} {max(values) * 1e3:9.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("muster")
    parser.add_argument("plan")
    parser.add_argument("python")
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    try:
        times = measure(options.muster, options.plan, options.python, options.pairs)
    except (RunFailed, OSError) as error:
        print(f"environment_cost: {error}", file=sys.stderr)
        return 2
    print(f"{'wall time in ms':34} {'min':>9} {'median':>9} {'max':>9}")
    show("muster run environment.toml", [a for a, _ in times])
    show('python -c "import torch"', [b for _, b in times])
    ratio = statistics.median(a / b for a, b in times)
    met = ratio <= GOAL
    print(f"{'PASS' if met else 'MISS'}: median ratio 1/{1 / ratio:.1f} over {len(times)} pairs, required at most 1/{1 / GOAL:.0f}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

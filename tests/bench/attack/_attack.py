# SPDX-License-Identifier: Apache-2.0
"""What all attack benches share: their options, their temporary folder, and how they end.

An attack injects generated faults (or none) and counts wrong verdicts. `./dev bench attack NAME` runs it in full;
tests/bench/meson.build runs a seeded sample of a few seconds as a test.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile


def options(description: str, count: int, **defaults):
    """Parses --build, --count, --seed and --keep. `count` is how many trials a full run makes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", default=os.environ.get("MUSTER_BUILD", "build"), help="build folder (default: %(default)s)")
    parser.add_argument("--count", type=int, default=count, help="trials (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices (default: %(default)s)")
    parser.add_argument("--keep", metavar="DIR", help="keep the files of all trials in DIR")
    for name, value in defaults.items():
        kind = {"action": "store_true"} if isinstance(value, bool) else {"type": type(value), "default": value}
        parser.add_argument("--" + name.replace("_", "-"), **kind)
    chosen = parser.parse_args()
    chosen.build = os.path.abspath(chosen.build)
    chosen.random = random.Random(chosen.seed)
    return chosen


def muster(build: str) -> str:
    """The installed command."""
    return os.path.join(build, "dist", "bin", "muster")


def folder(chosen):
    """A folder for the files of all trials, removed at the end unless --keep is given."""
    if chosen.keep:
        os.makedirs(chosen.keep, exist_ok=True)
        return chosen.keep
    chosen.temporary = tempfile.TemporaryDirectory(prefix="muster-attack-")
    return chosen.temporary.name


def run(*command, **more):
    """Runs a command and returns (exit code, standard output and standard error as one text)."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **more)
    return done.returncode, done.stdout


def finish(trials: int, wrong: list) -> None:
    """Prints each wrong verdict (one text per trial, with what reproduces it) and the counts, and exits."""
    for text in wrong[:20]:
        print("WRONG:", text)
    if len(wrong) > 20:
        print(f"... and {len(wrong) - 20} more")
    print(f"{trials} trials: {len(wrong)} wrong verdicts")
    sys.exit(1 if wrong or trials == 0 else 0)

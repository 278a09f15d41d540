# SPDX-License-Identifier: Apache-2.0
"""Time, memory and disk of `muster history` over growing histories, with the exponent of each step.

history_scale.py MUSTER HISTORY_BENCH RECORD [RUNS...]: by default up to 50,000 runs of 8 GPUs. Ends with 1 where a goal
is missed: 50,000 runs are trended in at most 60 CPU s and 500 MB, and take at most 5 GB.
"""
import math
import os
import subprocess
import sys
import tempfile
import time

GOAL_RUNS, GOAL_SECONDS, GOAL_MB, GOAL_DISK_MB = 50_000, 60, 500, 5_000


def measured(arguments, codes=(0,)):
    """Seconds, CPU seconds and peak MB of a program."""
    begin = time.monotonic()
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in codes:
        sys.exit(f"{' '.join(arguments)}: ended with {child.returncode}")
    return time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def exponent(before, now, runs_before, runs):
    """By which power of the number of runs a figure grew."""
    if before is None or before <= 0 or now <= 0:
        return "     "
    return f"^{math.log(now / before) / math.log(runs / runs_before):4.2f}"


def main():
    muster, bench, record = sys.argv[1:4]
    sizes = [int(n) for n in sys.argv[4:]] or [1_000, 5_000, 20_000, 50_000]
    bad = False
    columns = ["add ms/run", "disk MB", "trend s", "CPU s", "MB", "compare s", "MB", "prune s", "MB"]
    print(f"{'runs':>8} " + " ".join(f"{name:>10}      " for name in columns))
    with tempfile.TemporaryDirectory() as folder:
        database = os.path.join(folder, "history.sqlite")
        runs_before, row_before = 0, None
        for runs in sizes:
            add = measured([bench, database, str(runs_before), str(runs), record])
            history = [muster, "history"]
            trend = measured(history + ["trend", "--db", database], (0, 1))
            compare = measured(history + ["compare", str(runs - 1), str(runs), "--db", database], (0, 1))
            prune = measured(history + ["prune", "--keep-days", "30", "--keep-newest", "5", "--db", database])
            disk = os.path.getsize(database) / 1e6
            row = [1000 * add[0] / (runs - runs_before), disk, *trend, compare[0], compare[2], prune[0], prune[2]]
            grown = [exponent(b, n, runs_before, runs) for b, n in zip(row_before or [None] * len(row), row)]
            print(f"{runs:>8} " + " ".join(f"{n:>10.2f} {e}" for n, e in zip(row, grown)), flush=True)
            if runs <= GOAL_RUNS and (trend[1] > GOAL_SECONDS or trend[2] > GOAL_MB or disk > GOAL_DISK_MB):
                print(f"MISSED: at most {GOAL_SECONDS} CPU s, {GOAL_MB} MB and {GOAL_DISK_MB} MB on disk")
                bad = True
            runs_before, row_before = runs, row
        begin = measured([muster, "history", "prune", "--keep-days", "30", "--keep-newest", "5", "--apply", "--db",
                          database])
        print(f"prune --apply: {begin[0]:.1f} s, {begin[2]:.0f} MB; "
              f"{os.path.getsize(database) / 1e6:.0f} MB are left on disk")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Everything that needs a GPU: `./dev gpu` runs this, here or from what `./dev gpu --pack` packed.

Needs python3, an NVIDIA driver and NVIDIA's libraries (of a toolkit, or Python's nvidia packages); PyTorch for the
comparisons, compute-sanitizer for its checks. What is missing is a line that says "skip" and why. Ends 0 when
everything that could run passed, 1 when a check failed, 3 when nothing could run.
"""
import argparse
import glob
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import contest
import records
import results

HERE = pathlib.Path(__file__).resolve().parent
# What is judged against PyTorch on the same GPU: (line for the workers, torch's variants, least ratio).
GEMM_SIZES = [4096, 8192, 16384]
GEMM_TYPES = ["bf16", "f16", "tf32", "f32", "f64", "fp8_e4m3", "fp8_e5m2", "i8"]
SIZES_OF = {"f64": [4096, 8192], "f32": [4096, 8192]}
COMPARISONS = [(f"gemm {dtype} {size}", [""], 0.99) for dtype in GEMM_TYPES for size in SIZES_OF.get(dtype, GEMM_SIZES)]
COMPARISONS += [("copy 4294967296", ["torch", "vector"], 0.98), ("host_to_device 1073741824", [""], 0.98),
                ("device_to_host 1073741824", [""], 0.98)]
for batch in (128, 256):
    for model in ("resnet50", "resnet18"):
        COMPARISONS += [(f"train {model} {batch} 224", ["eager"], 1.3), (f"train {model} {batch} 224", ["compile"], 1.0)]
COMPARISONS += [("train transformer 32 512", ["compile"], 1.1)]
SANITIZED = "*Sanitized*"  # the tests of our own kernels on small sizes
SANITIZERS = ["memcheck", "racecheck", "initcheck"]


def command_output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def machine():
    fields = ["name", "driver_version", "vbios_version", "memory.total", "power.limit", "clocks.max.sm"]
    line = command_output("nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader").splitlines()
    found = dict(zip(["gpu", "driver", "vbios", "memory", "power_limit", "max_sm_clock"], [part.strip() for part in line[0].split(",")])) if line else {}
    found["gpus"] = len(line)
    found["kernel"] = os.uname().release
    return found


def library_folders():
    """Where Python's nvidia packages keep their libraries: the interpreter knows better than any guess."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations) if spec else []
    return [folder for root in roots for folder in sorted(glob.glob(f"{root}/*/lib"))]


def environment(dist):
    """NVIDIA's libraries after those of our tree."""
    folders = [str(dist / "lib/muster/lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")]), *library_folders()]
    return dict(os.environ, MUSTER_DIST=str(dist), LD_LIBRARY_PATH=":".join(folders))


class Session:
    def __init__(self, options):
        self.dist, self.tests = options.dist.resolve(), options.tests.resolve()
        self.turns = options.turns
        self.environment = environment(self.dist)
        self.results = results.Results(options.out, machine())
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="muster-gpu-"))

    # --- correctness -------------------------------------------------------------------------------------------

    def run_test(self, program, prefix=(), label="", arguments=(), limit=600):
        """One test program; each of its cases is a check, each line of JSON that it prints a figure."""
        report = self.scratch / f"{program.name}{label}.json"
        command = [*prefix, str(program), f"--gtest_output=json:{report}", *arguments]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=self.environment, check=False)
        except subprocess.TimeoutExpired as problem:
            output = problem.stdout or b""
            tail = (output.decode(errors="replace") if isinstance(output, bytes) else output).strip().splitlines()[-1:]
            self.results.check(program.name + label, results.FAIL, f"did not end within {limit} s; last line: {''.join(tail)}")
            return
        print(ran.stdout[-4000:] if ran.returncode not in (0, 77) else "", end="")
        if ran.returncode == 77:
            self.results.check(program.name + label, results.SKIP, ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else "")
            return
        self.take_figures(ran.stdout)
        self.take_cases(program.name + label, report, ran)

    def take_figures(self, output):
        for line in output.splitlines():
            if line.startswith('{"figure"'):
                found = json.loads(line)
                self.results.figure(found["figure"], found["value"], found["unit"], **found["labels"])

    def take_cases(self, name, report, ran):
        cases = []
        if report.exists():
            document = json.loads(report.read_text())
            cases = [case for suite in document["testsuites"] for case in suite["testsuite"]]
        for case in cases:
            failures = case.get("failures", [])
            outcome = results.FAIL if failures else results.SKIP if case["result"] == "SKIPPED" else results.PASS
            detail = " ".join(failures[0]["failure"].split())[:300] if failures else ""
            self.results.check(f"{name}: {case['classname']}.{case['name']}", outcome, detail)
        if ran.returncode != 0 and not any(case.get("failures") for case in cases):
            tail = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
            self.results.check(name, results.FAIL, f"ended with {ran.returncode}: {''.join(tail)}")
        elif not cases:
            self.results.check(name, results.FAIL, "no case was run")

    def tests_pass(self):
        for program in sorted(self.tests.glob("*-gpu-test")):
            self.run_test(program)

    def sanitizers_are_quiet(self):
        sanitizer = shutil.which("compute-sanitizer")
        for tool in SANITIZERS:
            if not sanitizer:
                self.results.check(f"compute-sanitizer {tool}", results.SKIP, "compute-sanitizer is not installed")
                continue
            for program in sorted(self.tests.glob("*-gpu-test")):
                listed = command_output(str(program), f"--gtest_filter={SANITIZED}", "--gtest_list_tests")
                if "." in listed:
                    self.run_test(program, (sanitizer, "--tool", tool, "--error-exitcode", "9"), f" under {tool}",
                                  (f"--gtest_filter={SANITIZED}",))

    # --- the tool itself ---------------------------------------------------------------------------------------

    def plans_run(self):
        """Ready plans as a user runs them; an accepted run passes, and what was measured is kept."""
        for plan in ("node-quick",):
            out = self.scratch / plan
            command = [str(self.dist / "bin/muster"), "run", str(self.dist / f"share/muster/plans/{plan}.toml"), "--out", str(out)]
            ran = subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False)
            print(ran.stdout[-6000:], end="")
            self.results.check(f"muster run {plan}.toml", results.PASS if ran.returncode == 0 else results.FAIL,
                               f"exit code {ran.returncode}" + (f": {ran.stderr.strip().splitlines()[-1]}" if ran.stderr.strip() else ""))
            self.take_record(plan, out / "record.json")

    def take_record(self, plan, path):
        if not path.exists():
            return
        for stage, metric, unit, labels, samples in records.measurements(path):
            if samples:
                self.results.figure(metric, statistics.median(samples), unit, **{**labels, "plan": plan, "stage": stage})

    # --- beside PyTorch ----------------------------------------------------------------------------------------

    def beats_torch(self):
        worker = self.tests / "muster-gpu-worker"
        if not importlib.util.find_spec("torch"):
            self.results.check("comparison with PyTorch", results.SKIP, f"{sys.executable} has no torch")
            return
        if not worker.exists():
            self.results.check("comparison with PyTorch", results.FAIL, f"{worker} is missing")
            return
        ours = theirs = None
        for line, variants, least in COMPARISONS:
            name = " ".join([line, *variants]).strip()
            try:
                # A worker that died takes only its own question along.
                ours = ours or contest.Worker([worker, self.dist / "lib/muster/backends"], self.environment)
                theirs = theirs or contest.Worker([sys.executable, HERE / "torch_worker.py"], os.environ)
                self.judge(name, *contest.Contest(ours, theirs, self.turns).rates(line, variants), least)
            except contest.WorkerEnded as problem:
                self.results.check(name, results.FAIL, str(problem))
                ours = theirs = None

    def judge(self, name, ours, theirs, problem, least):
        if problem:
            self.results.check(name, results.FAIL if problem.startswith("ours") else results.SKIP, problem)
            return
        ratio = contest.median_ratio(ours, theirs)
        self.results.check(name, results.PASS if ratio >= least else results.FAIL,
                           f"ours {max(ours):.4g}, torch {max(theirs):.4g}: ratio {ratio:.3f}, required {least}",
                           ours=ours, theirs=theirs, ratio=ratio, wanted=least)


PARTS = {"tests": Session.tests_pass, "plans": Session.plans_run, "torch": Session.beats_torch, "sanitizer": Session.sanitizers_are_quiet}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dist", type=pathlib.Path, default=HERE.parent / "dist", help="the installed tree")
    parser.add_argument("--tests", type=pathlib.Path, default=HERE.parent / "tests", help="the folder of the *-gpu-test programs")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="where the JSON goes")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part (may be given again)")
    parser.add_argument("--turns", type=int, default=5, help="paired turns of each comparison")
    options = parser.parse_args()
    session = Session(options)
    print(f"{session.results.document['machine']}\n")
    if not session.results.document["machine"].get("gpu"):
        session.results.check("an NVIDIA GPU", results.SKIP, "nvidia-smi names none: install the driver, or run this where a GPU is")
    else:
        for part in options.part or PARTS:
            print(f"== {part}", flush=True)
            PARTS[part](session)
    shutil.rmtree(session.scratch, ignore_errors=True)
    found = session.results
    print(f"\n{found.count(results.PASS)} passed, {found.count(results.FAIL)} failed, {found.count(results.SKIP)} skipped; {found.path}")
    return found.exit_code()


sys.exit(main())

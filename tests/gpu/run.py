# SPDX-License-Identifier: Apache-2.0
"""Everything that needs a GPU: `./dev gpu` runs this, here or from what `./dev gpu --pack` packed.

Needs python3, an NVIDIA driver and NVIDIA's libraries (of a toolkit, or Python's nvidia packages); PyTorch for the
comparisons, nvbandwidth and nccl-tests for others, compute-sanitizer for its checks. What is missing is a line that
says "skip" and why. At the end, also after Ctrl-C, a page is written: what Muster claims and what this GPU says
(page.py). Ends 0 when everything that could run passed, 1 when a check failed, 3 when nothing could run.
"""
import argparse
import fnmatch
import glob
import hashlib
import importlib.util
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

import claims
import contest
import page
import peers
import records
import results

HERE = pathlib.Path(__file__).resolve().parent
SANITIZED = "*Sanitized*"  # the tests of our own kernels on small sizes
READY = ["node-quick", "nccl"]  # plans
SANITIZERS = {"memcheck": ["--error-exitcode", "9"], "racecheck": [], "initcheck": ["--error-exitcode", "9"]}


def command_output(*command, environment=None):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def machine():
    fields = ["name", "driver_version", "vbios_version", "memory.total", "power.limit", "clocks.max.sm"]
    line = command_output("nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader").splitlines()
    found = dict(zip(["gpu", "driver", "vbios", "memory", "power_limit", "max_sm_clock"], [part.strip() for part in line[0].split(",")])) if line else {}
    found["gpus"] = len(line)
    # Tells GPUs apart without naming them.
    found["gpu_ids"] = [hashlib.sha256(uuid.encode()).hexdigest()[:8] for uuid in command_output("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader").split()]
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
        self.turns, self.questions, self.plans = options.turns, options.compare, options.plan or READY
        self.environment = environment(self.dist)
        self.results = results.Results(options.out, machine())
        self.gpus = self.results.document["machine"]["gpus"]
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="muster-gpu-"))

    def selection(self, part):
        """What narrowed a part, as its options say it; empty: nothing."""
        chosen = {"tests": os.environ.get("GTEST_FILTER", ""), "torch": self.questions if self.questions != "*" else "",
                  "plans": ", ".join(self.plans) if self.plans != READY else ""}
        return chosen.get(part, "")

    # --- correctness -------------------------------------------------------------------------------------------

    def run_test(self, program, prefix=(), label="", arguments=(), limit=600):
        """One test program; each of its cases is a check, each line of JSON that it prints a figure. Returns what it printed."""
        report = self.scratch / f"{program.name}{label}.json"
        command = [*prefix, str(program), f"--gtest_output=json:{report}", *arguments]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=self.environment, check=False)
        except subprocess.TimeoutExpired as problem:
            output = problem.stdout or b""
            tail = (output.decode(errors="replace") if isinstance(output, bytes) else output).strip().splitlines()[-1:]
            self.results.check(program.name + label, results.FAIL, f"did not end within {limit} s; last line: {''.join(tail)}")
            return ""
        self.keep_output(program.name + label, ran.stdout + ran.stderr)
        print(ran.stdout[-4000:] if ran.returncode not in (0, 77) else "", end="")
        if ran.returncode == 77:
            self.results.check(program.name + label, results.SKIP, ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else "")
        else:
            self.take_figures(ran.stdout)
            self.take_cases(program.name + label, report, ran)
        return ran.stdout

    def keep_output(self, name, text):
        folder = self.results.path.with_suffix("")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name.replace(' ', '-')}.log").write_text(without_folders(text))

    def take_figures(self, output):
        for line in output.splitlines():
            if line.startswith('{"figure"'):
                found = json.loads(line)
                self.results.figure(found["figure"], found["value"], found["unit"], **found["labels"])

    def take_cases(self, name, report, ran):
        cases = cases_of(report)
        if not cases:  # gtest writes its report at the end: a program that crashed has printed its cases only
            for case, outcome in cases_printed(ran.stdout):
                self.results.check(f"{name}: {case}", outcome, "" if outcome != results.FAIL else f"ended with {ran.returncode} in this case")
        for case in cases:
            failures = case.get("failures", [])
            outcome = results.FAIL if failures else results.SKIP if case["result"] == "SKIPPED" else results.PASS
            detail = " ".join(without_folders(failures[0]["failure"]).split())[:300] if failures else ""
            self.results.check(f"{name}: {case['classname']}.{case['name']}", outcome, detail)
        if ran.returncode != 0 and not any(case.get("failures") for case in cases):
            tail = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
            self.results.check(name, results.FAIL, f"ended with {ran.returncode}: {''.join(tail)}")
        elif not cases:
            chosen = self.selection("tests")
            self.results.check(name, results.SKIP if chosen else results.FAIL, f"no case matches {chosen}" if chosen else "no case was run")

    def tests_pass(self):
        for program in sorted(self.tests.glob("*-gpu-test")):
            self.run_test(program)

    def sanitizers_are_quiet(self):
        sanitizer = shutil.which("compute-sanitizer")
        chosen = [program for program in sorted(self.tests.glob("*-gpu-test"))
                  if "." in command_output(str(program), f"--gtest_filter={SANITIZED}", "--gtest_list_tests", environment=self.environment)]
        for tool, options in SANITIZERS.items():
            name = f"compute-sanitizer {tool}"
            if not sanitizer:
                self.results.check(name, results.SKIP, "compute-sanitizer is not installed")
            elif not chosen:
                self.results.check(name, results.FAIL, f"no program in {self.tests} lists a case {SANITIZED}")
            for program in chosen if sanitizer else []:
                output = self.run_test(program, (sanitizer, "--tool", tool, *options), f" under {tool}", (f"--gtest_filter={SANITIZED}",))
                if tool == "racecheck":
                    self.results.check(f"{program.name}: races", *races_found(output))

    # --- the tool itself ---------------------------------------------------------------------------------------

    def plans_run(self):
        """Ready plans as a user runs them; an accepted run passes, and what was measured is kept."""
        for line in self.plans:
            plan, *arguments = shlex.split(line)
            gpus = 2 if plan == "nccl" else 1
            if self.gpus < gpus:
                self.results.check(f"muster run {plan}.toml", results.SKIP, f"it needs {gpus} GPUs; found {self.gpus}")
                continue
            out = self.scratch / plan
            command = [str(self.dist / "bin/muster"), "run", str(self.dist / f"share/muster/plans/{plan}.toml"), "--out", str(out), *arguments]
            ran = subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False)
            print(ran.stdout[-6000:], end="")
            self.keep_output(f"muster-run-{plan}", ran.stdout + ran.stderr)
            measured = self.take_record(plan, out / "record.json")
            outcome = results.FAIL if ran.returncode != 0 else results.PASS if measured else results.SKIP
            self.results.check(f"muster run {plan}.toml", outcome, f"exit code {ran.returncode}" + ("" if measured else ", and no record that was measured")
                               + (f": {ran.stderr.strip().splitlines()[-1]}" if ran.stderr.strip() else ""))

    def take_record(self, plan, path):
        """True if there is a record of this machine: figures of a simulated one are compared with nothing."""
        if not path.exists():
            return False
        record = records.read(path)
        self.keep_record(plan, path, record)
        if record["simulated"] is not False:
            return False
        for stage, metric, unit, labels, samples in records.measurements(record):
            if samples:
                self.results.figure(metric, statistics.median(samples), unit, **{**labels, "plan": plan, "stage": stage})
        return True

    def keep_record(self, plan, path, record):
        kept = self.results.path.with_suffix("") / plan
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, kept)
        self.results.record(plan, record, str(kept.relative_to(self.results.path.parent)))

    # --- beside PyTorch ----------------------------------------------------------------------------------------

    def beats_torch(self):
        worker = self.tests / "muster-gpu-worker"
        if not importlib.util.find_spec("torch"):
            self.results.check("comparison with PyTorch", results.SKIP, f"{sys.executable} has no torch", whole_part=True)
            return
        if not worker.exists():
            self.results.check("comparison with PyTorch", results.FAIL, f"{worker} is missing", whole_part=True)
            return
        ours = theirs = None
        for line, variants, least in claims.TORCH:
            name = claims.torch_name(line, variants)
            if not fnmatch.fnmatch(name, self.questions):
                continue
            try:
                # A worker that died takes only its own question along.
                ours = ours or contest.Worker([worker, self.dist / "lib/muster/backends"], self.environment)
                theirs = theirs or contest.Worker([sys.executable, HERE / "torch_worker.py"], os.environ)
                self.judge(name, *contest.Contest(ours, theirs, self.turns).rates(line, variants), least)
            except contest.WorkerEnded as problem:
                self.results.check(name, results.FAIL, str(problem))
                ours = theirs = None

    def judge(self, name, ours, theirs, problem, least):
        if not problem and not all(rate > 0 and math.isfinite(rate) for rate in ours + theirs):
            problem = f"{'torch' if all(rate > 0 and math.isfinite(rate) for rate in ours) else 'ours'}: a rate that is no number above zero"
        if problem:
            self.results.check(name, results.FAIL if problem.startswith("ours") else results.SKIP, problem)
            return
        ratio = contest.median_ratio(ours, theirs)
        self.results.check(name, results.PASS if ratio >= least else results.FAIL,
                           f"ours {max(ours):.4g}, torch {max(theirs):.4g}: ratio {ratio:.3f}, required {least}",
                           ours=ours, theirs=theirs, ratio=ratio, wanted=least)

    # --- beside other tools ------------------------------------------------------------------------------------

    def agrees_with_peers(self):
        said = {}  # of each tool: what it measured, or why it did not
        for peer in peers.PEERS:
            ours = self.results.values(peer.metric, peer.where)
            try:
                if self.gpus < peer.gpus:
                    raise peers.ToolFailed(f"it needs {peer.gpus} GPUs; found {self.gpus}")
                if not ours:
                    raise peers.ToolFailed(f"Muster measured no {peer.metric} in this run (--part plans)")
                if peer.tool not in said:
                    said[peer.tool] = self.ask(peer.tool)
                if isinstance(said[peer.tool], peers.ToolFailed):
                    raise said[peer.tool]
                agrees, detail, ratio = peers.compare(peer, ours, said[peer.tool])
                self.results.check(peer.name, results.PASS if agrees else results.FAIL, detail, ratio=ratio)
            except peers.WrongValues as problem:
                self.results.check(peer.name, results.FAIL, str(problem))
            except peers.ToolFailed as problem:
                self.results.check(peer.name, results.SKIP, str(problem))

    def ask(self, tool):
        try:
            return peers.run_tool(tool, self.gpus)
        except peers.ToolFailed as problem:
            return problem


def races_found(output):
    """(outcome, detail) of racecheck: only races in our own kernels, which lie in namespace muster, count. It reports some
    in cuDNN's kernels for Hopper, and cannot leave those out: told to check ours alone, it crashed (version 2025.3)."""
    summary = re.search(r"RACECHECK SUMMARY: (\d+) hazard", output)
    if not summary:
        return results.FAIL, "racecheck did not come to its end"
    kernels = {name.split("(")[0] for name in re.findall(r"(?:Read|Write) access at (.+?)\+0x", output)}
    ours = sorted(name for name in kernels if "muster::" in name)
    if ours:
        return results.FAIL, f"races in {', '.join(ours)}"
    if not kernels and int(summary.group(1)) > 0:
        return results.FAIL, f"{summary.group(0)}, and no kernel is named"
    return results.PASS, f"none in our kernels; reported in {len(kernels)} of NVIDIA's" if kernels else "none"


def without_folders(text):
    """gtest names sources by where they were built, which is nobody's business."""
    return re.sub(r"\S*/(?=tests/gpu/)", "", text)


def cases_of(report):
    """The cases in gtest's report; none where there is no whole one."""
    try:
        return [case for suite in json.loads(report.read_text())["testsuites"] for case in suite["testsuite"]]
    except (OSError, ValueError, KeyError):
        return []


def cases_printed(output):
    """(name, outcome) of every case that gtest says it began; one without an end is where the program died."""
    ends = {name: word for word, name in re.findall(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:,.*)? \(\d+ ms\)", output, re.MULTILINE)}
    outcome = {"OK": results.PASS, "SKIPPED": results.SKIP}
    return [(name, outcome.get(ends.get(name), results.FAIL)) for name in re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)]


PARTS = {"tests": Session.tests_pass, "plans": Session.plans_run, "torch": Session.beats_torch, "peers": Session.agrees_with_peers,
         "sanitizer": Session.sanitizers_are_quiet}


def run_part(session, part):
    """What one part raises must not take the others and the page along."""
    print(f"== {part}", flush=True)
    session.results.begin(part)
    try:
        PARTS[part](session)
        session.results.end(f"ran a selection ({selection})" if (selection := session.selection(part)) else "done")
    except Exception as problem:  # pylint: disable=broad-except
        text = f"{type(problem).__name__}: {problem}"
        session.results.end(f"crashed: {text}")
        session.results.check(f"part {part} of run.py", results.FAIL, text, whole_part=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dist", type=pathlib.Path, default=HERE.parent / "dist", help="the installed tree")
    parser.add_argument("--tests", type=pathlib.Path, default=HERE.parent / "tests", help="the folder of the *-gpu-test programs")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="where the JSON goes")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part (may be given again)")
    parser.add_argument("--plan", action="append", metavar="NAME [OPTION...]",
                        help="part plans: run this plan (may be given again), as \"node-full --set sustained.duration=60s\"")
    parser.add_argument("--compare", default="*", metavar="GLOB", help="part torch: only these comparisons, as \"gemm * 8192\"")
    parser.add_argument("--turns", type=int, default=5, choices=range(1, 101), metavar="N", help="paired turns of each comparison")
    options = parser.parse_args()
    session = Session(options)
    print(f"{session.results.document['machine']}\n")
    found = session.results
    try:
        if not session.gpus:
            found.check("an NVIDIA GPU", results.SKIP, "nvidia-smi names none: install the driver, or run this where a GPU is")
        else:
            for part in options.part or PARTS:
                run_part(session, part)
    finally:
        shutil.rmtree(session.scratch, ignore_errors=True)
        page.write(found.document, found.path.with_suffix(".html"))
    print(f"\n{found.count(results.PASS)} passed, {found.count(results.FAIL)} failed, {found.count(results.SKIP)} skipped; {found.path}\n"
          f"What Muster claims and what this GPU says: {found.path.with_suffix('.html')}")
    return found.exit_code()


if __name__ == "__main__":
    sys.exit(main())

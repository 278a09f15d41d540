# SPDX-License-Identifier: Apache-2.0
"""Asks ptxas what each of our CUDA kernels takes on each GPU: registers, shared memory, local memory. Fails on a spill
that EXPLAINED does not explain, and on an explanation that is no longer needed.

Compiles again what compile_commands.json of a build folder says, with its very flags; the objects are thrown away.
Usage: check_registers.py BUILD [SOURCE...]      SOURCE: only these, as paths from the root of the project
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# (kernel, sm) -> why it may spill.
EXPLAINED = {}

ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


class Use:
    """What one kernel takes on one GPU; over the instances of a template, the most."""

    def __init__(self):
        self.registers, self.fewest, self.shared, self.stack, self.spilled, self.instances = 0, 1 << 16, 0, 0, 0, 0

    def add(self, registers, shared, stack, spilled):
        self.registers, self.fewest = max(self.registers, registers), min(self.fewest, registers)
        self.shared, self.stack, self.spilled = max(self.shared, shared), max(self.stack, stack), max(self.spilled, spilled)
        self.instances += 1

    def __str__(self):
        span = f"{self.fewest}-{self.registers}" if self.fewest < self.registers else str(self.registers)
        return span + (f" +{self.stack}B" if self.stack else "") + (f" SPILLS {self.spilled}B" if self.spilled else "")


def plain_name(demangled):
    """`void muster::cuda::(anonymous namespace)::fill<float>(float*)` is `fill`."""
    text, depth, kept = demangled.replace("(anonymous namespace)", "anonymous"), 0, []
    for character in text:
        depth += character in "<("
        if depth == 0:
            kept.append(character)
        depth -= character in ">)"
    return "".join(kept).split("::")[-1].split()[-1]


def read(output, uses, source, demangle):
    """Adds what ptxas says; the number of kernels."""
    kernel, stack, spilled, count = None, 0, 0, 0
    for line in output.splitlines():
        if found := ENTRY.search(line):
            kernel = (source, plain_name(demangle(found.group(1))), found.group(2))
        elif found := SPILLS.search(line):
            stack, spilled = int(found.group(1)), int(found.group(2)) + int(found.group(3))
        elif (found := USED.search(line)) and kernel:
            shared = SHARED.search(line)
            uses.setdefault(kernel, Use()).add(int(found.group(1)), int(shared.group(1)) if shared else 0, stack, spilled)
            kernel, count = None, count + 1
    return count


def demangler():
    known = {}

    def demangle(name):
        if name not in known:
            known[name] = subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout.strip()
        return known[name]

    return demangle


def compile_again(entry):
    """What ptxas says of one source; the command is the build's own but for its output."""
    command = shlex.split(entry["command"])
    command = [word for word in command if os.path.basename(word) != "ccache"]
    with tempfile.TemporaryDirectory() as folder:
        command[command.index("-o") + 1] = f"{folder}/object.o"
        for option in ("-MF", "-MQ"):
            if option in command:
                command[command.index(option) + 1] = f"{folder}/depends"
        return subprocess.run([*command, "-Xptxas=-v"], cwd=entry["directory"], capture_output=True, text=True, check=False)


def cuda_sources(build, wanted):
    """Entries of compile_commands.json for .cu files, by path from the root; each once."""
    root = pathlib.Path(__file__).resolve().parents[2]
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(os.path.normpath(os.path.join(entry["directory"], entry["file"])), root)
        if path.endswith(".cu") and path.startswith("kernels/") and (not wanted or path in wanted):
            found.setdefault(path, entry)
    return found


def table(uses):
    archs = sorted({arch for _, _, arch in uses}, key=lambda arch: int(re.match(r"\d+", arch).group()))
    yield "| source: kernel | instances | shared memory | " + " | ".join(f"sm_{arch}" for arch in archs) + " |"
    yield "|---" * (3 + len(archs)) + "|"
    for source, kernel in sorted({key[:2] for key in uses}):
        row = [uses[(source, kernel, arch)] for arch in archs if (source, kernel, arch) in uses]
        cells = [str(uses.get((source, kernel, arch), "-")) for arch in archs]
        name = source.removeprefix("kernels/cuda/")
        yield f"| {name}: {kernel} | {row[0].instances} | {max(use.shared for use in row)} B | " + " | ".join(cells) + " |"


def spill_mistakes(uses, complete):
    spilled = {(kernel, arch) for (_, kernel, arch), use in uses.items() if use.spilled}
    for kernel, arch in sorted(spilled - set(EXPLAINED)):
        yield f"{kernel} spills on sm_{arch}: give it fewer values at a time, or explain it in EXPLAINED of {__file__}"
    for kernel, arch in sorted(set(EXPLAINED) - spilled if complete else ()):
        yield f"{kernel} does not spill on sm_{arch}: drop its explanation from EXPLAINED of {__file__}"


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    sources = cuda_sources(pathlib.Path(arguments[0]), arguments[1:])
    if not sources:
        print("registers: no CUDA source to look at in this build")
        return 0
    uses, mistakes, demangle = {}, [], demangler()
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for source, ran in zip(sources, pool.map(compile_again, sources.values())):
            if ran.returncode != 0:
                mistakes.append(f"{source}: nvcc ended with {ran.returncode}: {ran.stderr.strip()[-400:]}")
            elif read(ran.stdout + ran.stderr, uses, source, demangle) == 0:
                mistakes.append(f"{source}: ptxas told nothing of any kernel")
    if uses:
        print("\n".join(table(uses)))
    mistakes += spill_mistakes(uses, complete=not arguments[1:])
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    print(f"registers: {len({key[:2] for key in uses})} kernels of {len(sources)} sources, {len(mistakes)} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Checks every #include against the project's dependency graph.

All folders share one include root, so the build alone would let anything include anything. USES says what each
folder may include beside itself; README.md draws the same graph. Usage: check_includes.py ROOT
"""
import pathlib
import re
import sys

CORE = "runner/core"
INTERFACES = "kernels"  # the headers of kernels/ itself, not those of the backends below it

# The longest matching folder rules a file.
USES = {
    "runner/core": [],
    "runner/plan": [CORE],
    "runner/sku": [CORE],
    "runner/judge": [CORE],
    "runner/dispatch": [CORE],
    "runner/rendezvous": [CORE],
    "runner/slurm": [CORE, "runner/rendezvous"],
    "runner/host": [CORE, "runner/rendezvous", "plugins/abi", "plugins/sdk"],
    "runner/app": [CORE, "runner/plan", "runner/sku", "runner/judge", "runner/dispatch", "runner/rendezvous", "runner/slurm", "reports"],
    "plugins/abi": [],
    "plugins/sdk": [CORE, "plugins/abi", INTERFACES],
    "plugins": [CORE, "plugins/abi", "plugins/sdk", INTERFACES],
    "kernels": [CORE],
    "kernels/host": [CORE, INTERFACES],
    "kernels/sim": [CORE, INTERFACES],
    "kernels/cuda": [CORE, INTERFACES, "kernels/host/inventory"],  # the node around the GPUs is any Linux machine
    "reports/model": [CORE],
    "reports": [CORE, "reports/model"],
    "reports/history": [CORE, "reports/fleet"],
    "reports/fleet": [CORE, "reports/model", "reports/html", "reports/terminal", "runner/judge"],  # what nodes deferred is judged there
}
# Libraries that only some folders may see: a pattern of the include, and who may.
EXTERNAL = [
    (r"(oneapi/)?dnnl|cblas|openblas|hwloc", ["kernels/host"]),
    (r"gloo/", ["kernels/host"]),
    (r"cuda|cublas|cudnn|nccl|nvml", ["kernels/cuda"]),
    (r"toml\+\+", ["runner/core"]),
    (r"(lua5\.4/)?(lua|lauxlib)", ["runner/plan"]),
    (r"CLI/", ["runner/app"]),
    (r"(kainjow/)?mustache", ["reports/html", "reports/fleet", "runner/slurm"]),
    (r"jpeglib|jerror|curl/", ["plugins/train"]),
    (r"simdjson", ["reports/fleet"]),
    (r"sqlite3", ["reports/history"]),
]
# The judge is pure: it neither reads nor writes anything.
JUDGE = "runner/judge"
IMPURE = re.compile(r"fstream|iostream|filesystem|cstdio|stdio\.h|unistd\.h|fcntl\.h|sys/|chrono|ctime|random|thread|runner/core/(files|clock)\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def owner(path):
    """The folder of USES that rules this file, or None (tests and generated files may include anything)."""
    best = None
    for folder in USES:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def in_own_folder(path, target, rule):
    """Whether both lie in the same library; plugins/compute and plugins/memory are two."""
    own = "/".join(path.split("/")[: max(2, rule.count("/") + 1)])
    if rule == INTERFACES:
        return target.count("/") == 1 and target.startswith("kernels/")
    return target.startswith(own + "/")


def allowed(path, target):
    rule = owner(path)
    if in_own_folder(path, target, rule):
        return True
    for folder in USES[rule]:
        direct = target.rpartition("/")[0] == folder
        if direct or (folder != INTERFACES and target.startswith(folder + "/")):
            return True
    return False


def mistakes(path, text):
    """The forbidden includes of one file as (line, what is wrong)."""
    rule = owner(path)
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        target = match.group(2)
        if rule == JUDGE and IMPURE.match(target):
            yield line, f"includes {target}; {JUDGE} is pure: no input, output, clock or randomness"
        for pattern, folders in EXTERNAL:
            if re.match(pattern, target) and not any(path.startswith(folder + "/") for folder in folders):
                yield line, f"includes {target}; only {', '.join(folders)} may"
        if match.group(1) == '"' and "/" in target and not allowed(path, target):
            wanted = ", ".join(["its own folder", *USES[rule]])
            yield line, f"includes {target}; {rule} may include {wanted}"


def sources(root):
    for top in ("runner", "plugins", "kernels", "reports"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cpp", ".c", ".cu", ".cuh", ".in"):
                yield path


def main(root):
    bad = files = 0
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        if owner(name) is None:
            print(f"{name}: no rule in tests/lint/check_includes.py covers this folder; add it to USES")
            bad += 1
            continue
        files += 1
        for line, what in mistakes(name, path.read_text(encoding="utf-8")):
            print(f"{name}:{line}: {what}")
            bad += 1
    if files == 0:
        print(f"{root}: no source found; wanted the project's root folder")
        return 1
    print(f"includes: {files} files, {bad} mistakes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

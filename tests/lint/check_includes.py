# SPDX-License-Identifier: Apache-2.0
"""Checks every #include against the project's dependency graph.

All folders share one include root, so the build alone would let anything include anything. USES says what each
folder may include beside itself; README.md draws the same graph. Usage: check_includes.py ROOT
"""
import pathlib
import re
import sys

CORE = "runner/core"
SYSTEM = "runner/system"
METRICS = "runner/metrics"
HOSTS = "runner/hosts"
WIRE = "runner/rendezvous/wire"
TOML = "runner/core/toml"
INPUTS = "runner/inputs"
RECORD = "runner/record"
FINDINGS = "runner/record/findings"
KERNELS = ["kernels/interfaces", "kernels/spec", "kernels/checks", "kernels/loading"]
APP = "runner/app/"

# The longest matching folder rules a file. A name stands for that folder alone, except for those of WHOLE.
USES = {
    CORE: [],
    SYSTEM: [CORE],
    "runner/attest": [CORE, SYSTEM],
    TOML: [CORE],
    METRICS: [CORE],
    HOSTS: [CORE],
    "runner/import": [CORE, METRICS],
    INPUTS: [CORE, SYSTEM, TOML, METRICS],
    "runner/plan": [CORE, SYSTEM, TOML, METRICS, INPUTS, "runner/plan/lua"],
    "runner/plan/lua": [CORE, SYSTEM, TOML, METRICS],
    "runner/sku": [CORE, SYSTEM, TOML, METRICS, INPUTS],
    "runner/judge": [CORE, TOML, METRICS],
    RECORD: [CORE, SYSTEM, METRICS, "runner/judge", "runner/record/fold"],
    "runner/record/fold": [CORE, METRICS],
    FINDINGS: [CORE, METRICS, "runner/judge", RECORD],
    WIRE: [CORE, SYSTEM],
    "runner/rendezvous": [CORE, SYSTEM, WIRE],
    "runner/launcher": [CORE, HOSTS, WIRE],
    "runner/slurm": [CORE, SYSTEM, HOSTS],
    "runner/kube": [CORE, SYSTEM, HOSTS],
    "runner/dispatch": [CORE, SYSTEM, METRICS],
    "runner/cluster": [CORE, SYSTEM, "runner/dispatch", "runner/rendezvous", WIRE],
    "runner/host": [CORE, SYSTEM, "runner/rendezvous", "plugins/abi", "plugins/sdk"],
    APP + "process": [CORE, SYSTEM],
    APP + "view": [CORE, "runner/dispatch", RECORD, "reports/terminal", APP + "process"],
    APP + "stage": [CORE, SYSTEM, METRICS, "runner/plan", "runner/plan/lua", "runner/sku", "runner/judge", "runner/dispatch", "runner/rendezvous", "runner/cluster",
                    RECORD, "runner/record/fold", APP + "process", APP + "view"],
    APP + "node": [CORE, SYSTEM, INPUTS, "runner/plan", "runner/sku", "runner/judge", WIRE, "runner/launcher", "runner/cluster", RECORD,
                   "reports/acceptance", "reports/html", "reports/junit", APP + "process", APP + "view", APP + "stage"],
    APP + "input": [CORE, SYSTEM, METRICS, "runner/plan", "runner/plan/lua", "runner/sku", "runner/judge", "runner/dispatch", "runner/slurm", RECORD, "reports/fleet/read",
                    APP + "stage", APP + "node"],
    APP + "prepare": [CORE, SYSTEM, METRICS, "runner/plan", "runner/sku", "runner/judge", "runner/dispatch", FINDINGS, "runner/core/toml", "reports/acceptance", "kernels/sim/scenario", APP + "process", APP + "stage", APP + "input"],
    APP + "run": [CORE, SYSTEM, HOSTS, INPUTS, "runner/judge", "runner/dispatch", "runner/launcher", RECORD, APP + "process", APP + "node", APP + "input"],
    APP + "judge": [CORE, SYSTEM, METRICS, "runner/import", "runner/judge", "runner/dispatch", "runner/sku", RECORD, "runner/record/fold", "reports/terminal",
                    APP + "stage", APP + "node", APP + "input"],
    APP + "fleet": [CORE, SYSTEM, HOSTS, "runner/plan", "runner/sku", "runner/judge", "runner/dispatch", "runner/slurm", RECORD, FINDINGS, "reports/acceptance", "reports/fleet",
                    "reports/fleet/read", "reports/fleet/render", APP + "node", APP + "input"],
    APP + "report": [CORE, SYSTEM, "runner/sku", "runner/judge", "runner/dispatch", RECORD, FINDINGS, "kernels/sim/scenario", "reports/acceptance", "reports/formats", "reports/redaction",
                     "reports/history/store", "reports/terminal", "reports/fleet/read", APP + "process", APP + "node", APP + "input"],
    APP + "submit": [CORE, SYSTEM, INPUTS, "runner/plan", "runner/dispatch", APP + "node", APP + "input", APP + "fleet"],
    APP + "slurm": [CORE, SYSTEM, INPUTS, "runner/judge", "runner/dispatch", "runner/slurm", RECORD, FINDINGS, APP + "process", APP + "input", APP + "fleet", APP + "submit"],
    APP + "kube": [CORE, SYSTEM, INPUTS, "runner/judge", "runner/dispatch", "runner/kube", "runner/slurm", RECORD, "reports/fleet/read", APP + "process", APP + "node", APP + "input", APP + "fleet", APP + "submit"],
    APP + "history": [CORE, SYSTEM, "runner/judge", "runner/dispatch", "runner/slurm", "runner/kube", "reports/history", "reports/history/store", "reports/fleet/read", "reports/fleet/render",
                      APP + "process", APP + "node", APP + "input", APP + "fleet"],
    APP + "attest": [CORE, SYSTEM, METRICS, "runner/attest", "runner/plan", "runner/sku", "runner/judge", "runner/dispatch", RECORD, FINDINGS, "reports/acceptance", "reports/html",
                     "reports/junit", "reports/fleet", "reports/fleet/blame", "reports/fleet/check", "reports/fleet/read", "reports/fleet/render", APP + "stage", APP + "node", APP + "input",
                    APP + "fleet"],
    APP + "baseline": [CORE, SYSTEM, "runner/judge", "runner/dispatch", "runner/sku", RECORD, "reports/fleet", "reports/fleet/check", "reports/fleet/read", APP + "input", APP + "process"],
    "runner/app": [CORE, "runner/judge", APP + "process", *[APP + name for name in ("prepare", "run", "judge", "fleet", "report", "slurm", "kube", "history", "baseline", "attest")]],
    "plugins/abi": [],
    "plugins/sdk": [CORE, METRICS, "plugins/abi", "kernels/interfaces"],
    "plugins/ring/solver": [CORE, HOSTS],
    "plugins/exec": [CORE, SYSTEM, METRICS, "plugins/sdk", "runner/import"],
    "plugins/storage": [CORE, SYSTEM, METRICS, "plugins/sdk", "runner/import", *KERNELS],
    "plugins": [CORE, SYSTEM, METRICS, "plugins/abi", "plugins/sdk", *KERNELS],
    "kernels/spec": [CORE],
    "kernels/interfaces": [CORE, METRICS, "kernels/spec"],
    "kernels/checks": [CORE, "kernels/spec", "kernels/interfaces"],
    "kernels/loading": [CORE, SYSTEM, "kernels/interfaces"],
    "kernels/host": [CORE, SYSTEM, *KERNELS],
    "kernels/sim": [CORE, *KERNELS, "kernels/sim/scenario"],
    "kernels/sim/scenario": [CORE, SYSTEM, TOML, INPUTS, "kernels/interfaces"],
    "kernels/cuda": [CORE, SYSTEM, *KERNELS, "kernels/host/inventory", "kernels/host/rdma"],  # the node around the GPUs is any Linux machine
    "kernels/cuda/dnn/library": [CORE, *KERNELS, "kernels/cuda", "kernels/cuda/dnn/device"],
    "kernels/cuda/dnn/device": ["kernels/cuda", "kernels/spec"],
    "kernels/cuda/dnn/ops": [CORE, *KERNELS, "kernels/cuda", "kernels/cuda/dnn/library", "kernels/cuda/dnn/device"],
    "reports/terminal": [CORE, METRICS, RECORD, FINDINGS],
    "reports/junit": [CORE, METRICS, RECORD, FINDINGS],
    "reports/formats": [CORE, METRICS, RECORD, FINDINGS, "reports/junit"],
    "reports/redaction": [CORE, SYSTEM, HOSTS, RECORD, FINDINGS],
    "reports/acceptance": [CORE, SYSTEM, TOML, METRICS, RECORD],
    "reports/html/page": [CORE, SYSTEM, METRICS],
    "reports/html/plots": [CORE, METRICS, RECORD, FINDINGS, "reports/html/page"],
    "reports/html/page_one": [CORE, METRICS, RECORD, FINDINGS, "reports/acceptance", "reports/html/page", "reports/html/plots"],
    "reports/html": [CORE, SYSTEM, METRICS, RECORD, FINDINGS, "reports/acceptance", "reports/html/page", "reports/html/plots", "reports/html/page_one"],
    "reports/fleet/peers": [CORE, METRICS],
    "reports/fleet/read": [CORE, SYSTEM, METRICS, "runner/judge", RECORD, "runner/record/fold", "reports/fleet/peers"],
    "reports/fleet": [CORE, "reports/fleet/read"],
    "reports/fleet/check": [CORE, METRICS, RECORD, "reports/fleet", "reports/fleet/read"],
    "reports/fleet/blame": [CORE, "runner/judge", FINDINGS, "reports/fleet", "reports/fleet/read", "reports/fleet/check"],
    "reports/fleet/assess": [CORE, SYSTEM, METRICS, "runner/judge", RECORD, FINDINGS, "reports/fleet", "reports/fleet/peers", "reports/fleet/read", "reports/fleet/check", "reports/fleet/blame"],
    "reports/fleet/render": [CORE, SYSTEM, RECORD, FINDINGS, "reports/acceptance", "reports/html/page", "reports/html/plots",
                             "reports/html/page_one", "reports/terminal", "reports/fleet"],
    "reports/history/store": [CORE, SYSTEM, METRICS, "reports/fleet/read"],
    "reports/history": [CORE, "reports/fleet/read", "reports/history/store"],
}
# Libraries whose folders are one: each may include what lies anywhere below it.
WHOLE = ["kernels/host", "kernels/cuda", "plugins"]
# Libraries that only some folders may see: a pattern of the include, and who may.
EXTERNAL = [
    (r"(oneapi/)?dnnl|cblas|openblas|hwloc", ["kernels/host"]),
    (r"gloo/", ["kernels/host"]),
    (r"cuda|cublas|cudnn|nccl|nvml", ["kernels/cuda"]),
    (r"toml\+\+", ["runner/core/toml"]),
    (r"(lua5\.4/)?(lua|lauxlib)", ["runner/plan/lua"]),
    (r"CLI/", ["runner/app"]),
    (r"(kainjow/)?mustache", ["reports/html/page", "reports/fleet/render", "runner/slurm"]),
    (r"jpeglib|jerror|curl/", ["plugins/train"]),
    (r"re2/", ["plugins/exec"]),
    (r"simdjson", ["reports/fleet/read"]),
    (r"sqlite3", ["reports/history/store"]),
    (r"sodium", ["runner/attest"]),
]
# The judge is pure: it neither reads nor writes anything.
JUDGE = "runner/judge"
IMPURE = re.compile(r"fstream|iostream|filesystem|cstdio|stdio\.h|unistd\.h|fcntl\.h|sys/|chrono|ctime|random|thread|runner/core/clock\.h")
# What these folders print may be anybody's text: runner/core/print.h escapes it.
PRINTING = ["runner/app/", "runner/slurm/"]
PRINT = re.compile(r"fmt::print\((?!\s*stderr\b)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def owner(path):
    """The folder of USES that rules this file, or None (tests and generated files may include anything)."""
    best = None
    for folder in USES:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def in_own_folder(path, target, rule):
    """Whether both lie in the same folder or library; plugins/compute and plugins/memory are two."""
    if rule in WHOLE:
        own = "/".join(path.split("/")[:2])
        return target.startswith(own + "/")
    return target.rpartition("/")[0] == rule


def allowed(path, target):
    rule = owner(path)
    folder = target.rpartition("/")[0]
    return in_own_folder(path, target, rule) or any(
        folder == used or (used in WHOLE or used == "kernels/host/inventory") and target.startswith(used + "/") for used in USES[rule])


def mistakes(path, text):
    """The forbidden includes and prints of one file as (line, what is wrong)."""
    rule = owner(path)
    for match in PRINT.finditer(text) if path.startswith(tuple(PRINTING)) else ():
        yield text.count("\n", 0, match.start()) + 1, "prints by fmt::print; printText of runner/core/print.h escapes"
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
        print(f"{root}: no source found; expected the project's root folder")
        return 1
    print(f"includes: {files} files, {bad} mistakes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

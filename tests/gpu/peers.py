# SPDX-License-Identifier: Apache-2.0
"""nvbandwidth and nccl-tests on the same machine: run where they are on PATH, their output read, their rates beside Muster's.

nvbandwidth is asked for JSON (json_output.cpp of NVIDIA/nvbandwidth): a matrix of texts in GB/s, "N/A" where
a GPU has no path to itself. nccl-tests prints a table under a comment line that names its columns (util.cu of
NVIDIA/nccl-tests); "busbw" is in 1e9 B/s, once for buffers out of place and once in place.
"""
import dataclasses
import json
import math
import re
import shutil
import statistics
import subprocess

TOLERANCE = 0.05  # ours: the tools' own runs differ by 1% to 2%
LIMIT = 600  # seconds for one run of a tool
ALL_REDUCE_BYTES = 8 << 30


class ToolFailed(Exception):
    """A tool gave no figure, and why."""


class WrongValues(ToolFailed):
    """It ran and found that data is corrupted."""


@dataclasses.dataclass(frozen=True)
class Peer:
    """One rate that both measure. `cases` are the tool's names for it: where there are two, the better one counts."""
    tool: str
    cases: tuple
    metric: str
    where: dict
    gpus: int = 1

    @property
    def name(self):
        return f"{self.metric} beside {self.tool}: {', '.join(self.cases)}"


COPIES = {"engine": "copy_engine", "numa": "near"}
PEERS = [
    Peer("nvbandwidth", ("host_to_device_memcpy_ce",), "memory.host_to_device_bandwidth", COPIES),
    Peer("nvbandwidth", ("device_to_host_memcpy_ce",), "memory.device_to_host_bandwidth", COPIES),
    Peer("nvbandwidth", ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce"), "memory.peer_bandwidth",
         {"direction": "unidirectional", "engine": "copy_engine"}, gpus=2),
    Peer("all_reduce_perf", ("out of place",), "collective.large_message_bus_bandwidth",
         {"op": "all_reduce", "bytes": str(ALL_REDUCE_BYTES), "placement": "out_of_place"}, gpus=2),
    Peer("all_reduce_perf", ("in place",), "collective.large_message_bus_bandwidth",
         {"op": "all_reduce", "bytes": str(ALL_REDUCE_BYTES), "placement": "in_place"}, gpus=2),
]


def rate(text):
    """B/s from a cell in GB/s."""
    value = float(text)
    if not math.isfinite(value) or value <= 0:
        raise ToolFailed(f"{text} GB/s is no rate")
    return value * 1e9


def matrix_rates(case):
    """The rates of a matrix; none of a GPU to itself, which older versions show as 0."""
    rows = case["bandwidth_matrix"]
    return [rate(cell) for i, row in enumerate(rows) for j, cell in enumerate(row)
            if cell != "N/A" and not (i == j and len(rows) > 1 and float(cell) == 0)]


def read_nvbandwidth(text):
    """{testcase: rates in B/s, or a text that says why there are none}."""
    start = text.find("{")
    try:
        found = json.JSONDecoder().raw_decode(text, start)[0]["nvbandwidth"] if start >= 0 else None
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise ToolFailed(f"no JSON of nvbandwidth in its output; it begins with {text.strip()[:80]!r}")
    if found.get("error"):
        raise ToolFailed(str(found["error"])[:200])
    cases = {}
    listed = found.get("testcases")
    for case in [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []:
        if case.get("status") != "Passed":
            cases[case.get("name")] = " ".join(str(case[key]) for key in ("status", "error") if case.get(key))
        elif "(GB/s)" not in str(case.get("bandwidth_description")):
            cases[case.get("name")] = f"its unit is not GB/s: {case.get('bandwidth_description')!r}"
        else:
            try:
                cases[case.get("name")] = matrix_rates(case) or "an empty matrix"
            except (KeyError, TypeError, ValueError, ToolFailed) as problem:
                cases[case.get("name")] = f"its matrix cannot be read: {problem}"
    return cases


def read_all_reduce(text):
    """{"out of place": [B/s], "in place": [B/s]} of the row of ALL_REDUCE_BYTES. Wrong values make it no measurement."""
    columns, row = [], []
    for line in text.splitlines():
        fields = line.lstrip("# ").split()
        if line.startswith("#") and "busbw" in fields and "size" in fields:
            columns = fields
        elif not line.startswith("#") and fields[:1] == [str(ALL_REDUCE_BYTES)]:
            row = fields
    wrong = re.search(r"Out of bounds values : (\d+)", text)
    if wrong and wrong.group(1) != "0":
        raise WrongValues(f"nccl-tests counted {wrong.group(1)} wrong values: data is corrupted on this machine")
    places = [i for i, name in enumerate(columns) if name == "busbw"]
    if len(places) != 2 or len(row) < len(columns) or not wrong:
        raise ToolFailed(f"no complete table with a row of {ALL_REDUCE_BYTES} bytes in its output")
    try:
        return {"out of place": [rate(row[places[0]])], "in place": [rate(row[places[1]])]}
    except ValueError as problem:
        raise ToolFailed(str(problem)) from problem


TOOLS = {
    "nvbandwidth": (lambda gpus: ["-j", "-t", *sorted({case for peer in PEERS if peer.tool == "nvbandwidth" for case in peer.cases})],
                    read_nvbandwidth),
    "all_reduce_perf": (lambda gpus: ["-b", str(ALL_REDUCE_BYTES), "-e", str(ALL_REDUCE_BYTES), "-g", str(gpus), "-d", "bfloat16"],
                        read_all_reduce),
}


def run_tool(tool, gpus):
    """{case: rates or why not}, by running the tool."""
    program = shutil.which(tool)
    if not program:
        raise ToolFailed(f"{tool} is not on PATH")
    arguments, read = TOOLS[tool]
    try:
        ran = subprocess.run([program, *arguments(gpus)], capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired as problem:
        raise ToolFailed(f"{tool} did not end within {LIMIT} s") from problem
    except OSError as problem:
        raise ToolFailed(f"{tool} could not be started: {problem}") from problem
    if ran.returncode != 0:
        last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
        raise ToolFailed(f"{tool} ended with {ran.returncode}: {''.join(last)[:200]}")
    return read(ran.stdout)


def compare(peer, ours, cases):
    """(within the tolerance, one line, ratio) of our rates and the tool's; ToolFailed where there is nothing to compare."""
    rates = [cases[name] for name in peer.cases if isinstance(cases.get(name), list)]
    if not rates:
        raise ToolFailed("; ".join(f"{name}: {cases.get(name, 'not in its output')}" for name in peer.cases))
    theirs = max(statistics.median(values) for values in rates)
    mine = statistics.median(ours)
    ratio = mine / theirs
    return (abs(ratio - 1) <= TOLERANCE,
            f"Muster {mine / 1e9:.4g} GB/s (median of {len(ours)}), {peer.tool} {theirs / 1e9:.4g} GB/s: ratio {ratio:.3f}, "
            f"required {1 - TOLERANCE:.2f} to {1 + TOLERANCE:.2f}", ratio)

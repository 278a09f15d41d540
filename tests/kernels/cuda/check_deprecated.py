# SPDX-License-Identifier: Apache-2.0
"""Checks that a library of ours calls no function that cuDNN's headers mark as deprecated: those go with the next major
version. Usage: check_deprecated.py HEADERS NM LIBRARY
"""
import pathlib
import re
import subprocess
import sys

DEPRECATED = re.compile(r"^CUDNN_DEPRECATED\s+[\w\s*]*?\bCUDNNWINAPI\s+(cudnn\w+)\s*\(", re.M)


def deprecated(headers):
    return {name for path in sorted(headers.glob("cudnn*.h")) for name in DEPRECATED.findall(path.read_text(encoding="utf-8", errors="replace"))}


def called(nm, library):
    listed = subprocess.run([nm, "--dynamic", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].partition("@")[0] for line in listed.splitlines() if "cudnn" in line}


def main(headers, nm, library):
    old, used = deprecated(pathlib.Path(headers)), called(nm, library)
    if not old or not used:
        print(f"found {len(old)} deprecated functions in {headers} and {len(used)} of cuDNN's in {library}, expected some of both")
        return 1
    for name in sorted(old & used):
        print(f"{library} calls {name}, which cuDNN's headers mark as deprecated; use the graph API")
    print(f"deprecated: {len(old & used)} of {len(used)} functions of cuDNN's")
    return 1 if old & used else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

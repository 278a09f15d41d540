# SPDX-License-Identifier: Apache-2.0
"""Prints the headers of the project, one a line, for the test that compiles each alone. Usage: list.py ROOT"""
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
for top in ("runner", "plugins", "kernels", "reports"):
    for path in sorted((root / top).rglob("*.h")):
        name = path.relative_to(root).as_posix()
        if not name.startswith("kernels/cuda/"):  # they need the CUDA toolkit
            print(name)

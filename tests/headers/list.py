# SPDX-License-Identifier: Apache-2.0
"""Prints the headers of the project that have to be compiled alone, one per line.

A header that is the very first include of the source of its name (x.h of x.cpp) compiles alone already: that
source would not build otherwise. All others get a test of their own. Every header must say #pragma once.

Usage: list.py ROOT                 print them
       list.py ROOT --same NAME...  fail unless they are just these, as they were when the build was configured
"""
import pathlib
import re
import sys

TOPS = ("runner", "plugins", "kernels", "reports")
FIRST_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def headers(root):
    """All headers but those of the CUDA backend, which need its toolkit."""
    paths = sorted(path for top in TOPS for path in (root / top).rglob("*.h"))
    names = [path.relative_to(root).as_posix() for path in paths]
    return [name for name in names if not name.startswith("kernels/cuda/")]


def is_built(root, source):
    """Whether a meson.build of the source's folder, or of one above it, names the source."""
    for folder in source.relative_to(root).parents:
        listing = root / folder / "meson.build"
        name = source.relative_to(root / folder).as_posix()
        if listing.exists() and f"'{name}'" in listing.read_text():
            return True
    return False


def has_own_source(root, name):
    for ending in (".cpp", ".c"):
        source = (root / name).with_suffix(ending)
        first = FIRST_INCLUDE.search(source.read_text()) if source.exists() else None
        if first and first.group(1) == name and is_built(root, source):
            return True
    return False


def unguarded(root):
    return [name for name in headers(root) if not re.search(r"^#pragma once$|^#ifndef \w+_H_?$", (root / name).read_text(), re.M)]


def lonely(root):
    """The headers that no source proves."""
    return [name for name in headers(root) if not has_own_source(root, name)]


def main(arguments):
    root = pathlib.Path(arguments[0])
    found = lonely(root)
    if arguments[1:2] != ["--same"]:
        print("\n".join(found))
        return 0
    changed = sorted(set(found) ^ set(arguments[2:]))
    for name in changed:
        print(f"{name}: it has to be compiled alone, or no longer; configure the build again (meson --reconfigure)")
    bare = unguarded(root)
    for name in bare:
        print(f"{name}: no #pragma once")
    return 1 if changed or bare else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

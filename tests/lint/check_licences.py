# SPDX-License-Identifier: Apache-2.0
"""Checks that every source starts with the licence line and says what it is for. Usage: check_licences.py ROOT"""
import pathlib
import sys

LICENCE = "SPDX-License-Identifier: Apache-2.0"
SUFFIXES = {".cpp", ".h", ".c", ".cu", ".cuh", ".py", ".sh"}
TOPS = ("runner", "plugins", "kernels", "reports", "tests", "docker", "packaging", ".ci")
SCRIPTS = ("dev", ".ci/run")


def mistake(text):
    """What is wrong with the head of a file, or None."""
    head = text.splitlines()[:4]
    at = next((i for i, line in enumerate(head[:2]) if LICENCE in line), None)
    if at is None:
        return f"no '{LICENCE}' in the first two lines"
    if len(head) <= at + 1 or not any(letter.isalpha() for letter in head[at + 1]):
        return "no line under the licence that says what the file is for"
    return None


def sources(root):
    yield from (root / name for name in SCRIPTS if (root / name).is_file())
    for top in TOPS:
        yield from (path for path in sorted((root / top).rglob("*")) if path.suffix in SUFFIXES)


def main(root):
    bad = files = 0
    for path in sources(root):
        files += 1
        what = mistake(path.read_text(encoding="utf-8", errors="replace"))
        if what:
            print(f"{path.relative_to(root)}:1: {what}")
            bad += 1
    print(f"licences: {files} files, {bad} mistakes")
    return 1 if bad or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

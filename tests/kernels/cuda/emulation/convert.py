# SPDX-License-Identifier: Apache-2.0
"""Makes C++ for the CPU of a CUDA source: `kernel<<<grid, block, shared, stream>>>(arguments)` becomes a call of
emulation::launch(), the .cuh headers it includes are put in their places, and the few instructions that are written
in GPU assembly become calls. Everything else is compiled as it is, and keeps its file and line.

Usage: convert.py ROOT SOURCE OUTPUT [DEPENDENCIES]      the last: where to write what OUTPUT depends on, for ninja
"""
import pathlib
import re
import sys

INCLUDED = re.compile(r'^[ \t]*#[ \t]*include "([^"]+\.cuh)"[ \t]*$', re.M)
ONCE = re.compile(r"^#pragma once[ \t]*$", re.M)
# Assembly that the CPU cannot run, and what it stands for.
ASSEMBLY = {
    'asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));': "now = ::muster::emulation::nanoseconds();",
}
OPENING, CLOSING = "([{", ")]}"


class Mistake(Exception):
    """What this script cannot convert, with its place."""


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def split(text):
    """Arguments at top level; commas in brackets do not part them."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in OPENING) - (character in CLOSING)
        if character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return parts + [text[start:].strip()]


def kernel_before(text, end):
    """Where the kernel's name, with its template arguments, begins: it stops at `end`."""
    at = end
    if text[at - 1] == ">":
        depth = 0
        while at > 0:
            at -= 1
            depth += (text[at] == ">" and text[at - 1] != "-") - (text[at] == "<")
            if depth == 0:
                break
    while at > 0 and re.match(r"[\w:]", text[at - 1]):
        at -= 1
    return at


def closing(text, opened):
    """The place behind the bracket that closes the one at `opened`."""
    depth = 0
    for at in range(opened, len(text)):
        depth += (text[at] in OPENING) - (text[at] in CLOSING)
        if depth == 0:
            return at + 1
    raise Mistake(f"{line_of(text, opened)}: a bracket that nothing closes")


def convert_launch(text):
    """The first launch of `text` converted."""
    opened = text.index("<<<")
    closed = text.find(">>>", opened)
    call = re.compile(r"\s*\(").match(text, closed + 3)
    name_end = len(text[:opened].rstrip())
    name_start = kernel_before(text, name_end)
    if closed < 0 or call is None or name_start == name_end:
        raise Mistake(f"{line_of(text, opened)}: found <<<, expected kernel<<<grid, block, shared, stream>>>(arguments)")
    shape = split(text[opened + 3 : closed])
    if len(shape) != 4:
        raise Mistake(f"{line_of(text, opened)}: a launch with {len(shape)} settings, expected grid, block, shared, stream")
    end = closing(text, call.end() - 1)
    arguments = text[call.end() : end - 1].strip()
    lines = "\n" * (text.count("\n", name_start, end) - arguments.count("\n"))  # what follows keeps its lines
    launch = (
        f"::muster::emulation::launch({{{', '.join(' '.join(part.split()) for part in shape)}}}, "
        f"[](const auto&... a) {{ {text[name_start:name_end]}(a...); }}{', ' if arguments else ''}{arguments}){lines}"
    )
    return text[:name_start] + launch + text[end:]


def convert(text):
    """One source or header, without what it includes."""
    for assembly, call in ASSEMBLY.items():
        text = text.replace(assembly, call)
    left = re.search(r"\basm\b", text)
    if left:
        raise Mistake(f"{line_of(text, left.start())}: assembly that ASSEMBLY of convert.py does not know; add it there")
    while "<<<" in text:
        text = convert_launch(text)
    return text


def expand(root, path, seen):
    """The converted source with its .cuh headers in place, each once."""
    seen.append(path)
    try:
        text = convert((root / path).read_text(encoding="utf-8"))
    except Mistake as mistake:
        raise Mistake(f"{path}:{mistake}") from None

    def put(match):
        line = line_of(text, match.start()) + 1
        inner = expand(root, match.group(1), seen) if match.group(1) not in seen else ""
        return f'{inner}\n#line {line} "{path}"'

    body = INCLUDED.sub(put, ONCE.sub("", text))
    return f'#line 1 "{path}"\n{body}'


def main(arguments):
    root, source, output = pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1]).resolve(), pathlib.Path(arguments[2])
    seen = []
    try:
        body = expand(root, source.relative_to(root).as_posix(), seen)
    except Mistake as mistake:
        print(f"convert.py: {mistake}", file=sys.stderr)
        return 1
    output.write_text(f'#include "tests/kernels/cuda/emulation/device_code.h"\n{body}', encoding="utf-8")
    if len(arguments) > 3:
        pathlib.Path(arguments[3]).write_text(f"{output}: {' '.join(str(root / path) for path in seen)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

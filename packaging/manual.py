# SPDX-License-Identifier: Apache-2.0
"""Writes a man page for every command, from its --help. Usage: manual.py FOLDER DATE MUSTER [ARG...]

MUSTER is the command that runs it, several words where an emulator is needed.
"""
import pathlib
import re
import subprocess
import sys

HEADING = re.compile(r"(Positionals|Options|Subcommands):$")
ENTRY = re.compile(r"  (\S.*?)(?:  +(\S.*))?$")  # "  --out DIR      run directory"
USAGE = re.compile(r"Usage: (?:.*/)?muster(?= |$)")
CONTINUED = re.compile(r" {20,}(\S.*)$")  # the help of an option whose own line was full
FOOTER_HEADING = re.compile(r"(Examples|Exit codes?): *(.*)$")


def escaped(text):
    """Text that troff shows as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


class Help:
    """What one --help says."""

    def __init__(self, text):
        lines = [line.rstrip() for line in text.splitlines()]
        usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
        self.summary = " ".join(lines[:usage]).strip()
        self.usage = USAGE.sub("", lines[usage])
        self.groups, self.footer = [], []
        entries = None
        for line in lines[usage + 1:]:
            continued, entry = CONTINUED.match(line), ENTRY.match(line)
            if HEADING.match(line):
                entries = []
                self.groups.append((line.rstrip(":"), entries))
            elif entries is None:
                self.footer.append(line)
            elif continued and entries:
                entries[-1][1] = (entries[-1][1] + " " + continued.group(1)).strip()
            elif entry:
                entries.append([entry.group(1), entry.group(2) or ""])
            elif entries:
                entries = None

    def commands(self):
        return [name for heading, entries in self.groups if heading == "Subcommands" for name, _ in entries]


def footer(lines):
    """Paragraphs as they are; indented lines keep their columns."""
    page, indented = [], False
    for line in "\n".join(lines).strip("\n").splitlines():
        heading = FOOTER_HEADING.match(line)
        if line.startswith("  ") != indented:
            indented = not indented
            page.append(".EX" if indented else ".EE")
        if heading:
            page += [f".SH {heading.group(1).upper()}"] + ([escaped(heading.group(2))] if heading.group(2) else [])
        elif not line:
            page.append(".PP" if not indented else "")
        else:
            page.append(escaped(line))
    return page + ([".EE"] if indented else [])


def page_of(words, text, version, date):
    name = "-".join(words)
    said = Help(text)
    page = [f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "{date}" "{version}" "Muster"', ".ad l", ".nh", ".SH NAME",
            f"{escaped(name)} \\- {escaped(said.summary.rstrip('.'))}", ".SH SYNOPSIS", f".B muster{escaped(said.usage)}"]
    for heading, entries in said.groups:
        page.append(f".SH {'COMMANDS' if heading == 'Subcommands' else heading.upper()}")
        for entry, what in entries:
            page += [".TP", f".B {escaped(entry)}", escaped(what)]
    notes = footer(said.footer)
    if notes and not notes[0].startswith(".SH"):
        page.append(".SH DESCRIPTION")
    page += notes
    others = related(words, said)
    page += [".SH SEE ALSO"] + [f".BR {escaped(other)} (1){',' if other != others[-1] else ''}" for other in others]
    return said, "\n".join(page) + "\n"


def related(words, said):
    others = ["-".join(words[:-1])] if len(words) > 1 else []
    return others + ["-".join(words + [command]) for command in said.commands()]


def write_pages(folder, muster, words, version, date):
    text = subprocess.run(muster + words[1:] + ["--help"], check=True, capture_output=True, text=True).stdout
    said, page = page_of(words, text, version, date)
    (folder / f"{'-'.join(words)}.1").write_text(page, encoding="utf-8")
    for command in said.commands():
        write_pages(folder, muster, words + [command], version, date)


def main(folder, date, *muster):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([*muster, "--version"], check=True, capture_output=True, text=True).stdout.split(" (")[0]
    write_pages(folder, list(muster), ["muster"], version.strip(), date)


if __name__ == "__main__":
    main(*sys.argv[1:])

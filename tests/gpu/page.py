# SPDX-License-Identifier: Apache-2.0
"""The page "what Muster claims and what this GPU says" from results: page.py RESULTS.json... [-o PAGE.html].
Several files of machines of one kind make one page.

One HTML file without script or network, as Muster's reports are: whoever stands at the machine opens it, prints it or
sends it on, and long lines of evidence stay readable in a table's cells.
"""
import argparse
import html
import json
import pathlib
import shlex
import sys
import unicodedata

import claims

STYLE = """body{font:15px/1.4 "DejaVu Sans",sans-serif;margin:2em auto;max-width:76em;padding:0 1em;color:#1a1a1a;background:#fff}
h1{font-size:1.5em;margin-bottom:.2em}h2{font-size:1.15em;margin-top:1.6em}p{margin:.3em 0}
table{border-collapse:collapse;width:100%;table-layout:fixed;font-size:.87em}
th,td{text-align:left;vertical-align:top;padding:.35em .6em;border-bottom:1px solid #ddd;overflow-wrap:anywhere}
th{background:#f3f3f3}tr{break-inside:avoid}thead{display:table-header-group}
.confirmed{border-left:.4em solid #2e7d32;padding-left:.5em}.refuted{border-left:.4em solid #c62828;padding-left:.5em}
.not-tried{border-left:.4em solid #777;padding-left:.5em}code{font-size:.95em}
.c1{width:27%}.c2{width:24%}.c3{width:17%}"""
TITLE = "What Muster claims and what this GPU says"
MARKS = {claims.CONFIRMED: "\u2713", claims.REFUTED: "\u2717", claims.NOT_TRIED: "\u2013"}
HEADS = {claims.CONFIRMED: "What Muster claims holds on this machine.", claims.REFUTED: "This machine says otherwise: either it is faulty, or the claim is wrong.",
         claims.NOT_TRIED: "Nothing on this machine tells: the reason is in the last column."}


def escape(text):
    """Text of a record or a tool as HTML; characters that control or reorder text are shown as their numbers."""
    plain = "".join(f"\\u{ord(char):04x}" if unicodedata.category(char) in ("Cc", "Cf", "Cs") else char for char in str(text))
    return html.escape(plain)


def section(verdict, found):
    rows = "".join(f"<tr><td>{escape(one.text)}</td><td>{escape(one.source)}</td><td>{escape(one.check)}</td><td>{escape(one.said)}</td></tr>\n" for one in found)
    table = (f'<table><thead><tr><th class="c1">Claim</th><th class="c2">Source of the claim</th><th class="c3">Check</th><th>Result</th></tr></thead>'
             f"<tbody>\n{rows}</tbody></table>") if found else "<p>None.</p>"
    name = verdict.replace(" ", "-")
    return f'<section id="{name}"><h2 class="{name}">{MARKS[verdict]} {verdict.capitalize()}: {len(found)}</h2>\n<p>{HEADS[verdict]}</p>\n{table}</section>\n'


def next_step(records):
    """How to correct the profile by this run, where a record was kept."""
    kept = [record for record in records if record["kept"] and record["profile"]["name"]]
    commands = [shlex.join(["muster", "baseline", "learn", one["kept"], "--correct", "-o", f"{one['profile']['name']}-by-{one['plan']}.toml"]) for one in kept]
    return "".join(f"<p>To correct the profile by {escape(one['plan'])} of this machine, in the folder of its results: <code>{escape(command)}</code></p>\n"
                   for one, command in zip(kept, commands))


def page(document, readme):
    """The whole page. `document` is what results.py keeps; what is missing in it is a claim that was not tried."""
    found = claims.claims(document, readme)
    document = claims.as_dict(document)
    machine = claims.as_dict(document.get("machine"))
    facts = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items() if value not in ("", None))
    counts = {verdict: [one for one in found if one.verdict == verdict] for verdict in (claims.CONFIRMED, claims.REFUTED, claims.NOT_TRIED)}
    records = claims.Findings(document).records
    simulated = "<p><strong>SIMULATED: no value here was measured.</strong></p>\n" if any(not one["measured"] for one in records) else ""
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f'<meta name="viewport" content="width=device-width"><title>{TITLE}</title><style>{STYLE}</style></head><body>\n'
            f"<h1>{TITLE}</h1>\n<p>{escape(document.get('date') or 'date unknown')}: {escape(facts) or 'machine unknown'}</p>\n{simulated}"
            f"<p>{len(found)} claims: " + ", ".join(f"{len(ones)} {verdict}" for verdict, ones in counts.items()) + "</p>\n"
            + next_step(records) + "".join(section(verdict, ones) for verdict, ones in counts.items()) + "</body></html>\n")


def write(document, target):
    """Writes the page of a results document."""
    readme = pathlib.Path(__file__).with_name("README.md")
    target.write_text(page(document, readme.read_text(encoding="utf-8") if readme.exists() else ""), encoding="utf-8", errors="replace")


def merged(documents):
    """One document of several runs on machines of one kind; ValueError where they are of different kinds.

    A check that was run again on the same GPUs counts as it ended last; one that is skipped later keeps its earlier outcome.
    """
    documents = sorted((claims.as_dict(document) for document in documents), key=lambda one: str(one.get("date")))
    kinds = [dict(claims.as_dict(document.get("machine"))) for document in documents]
    gpus = [kind.pop("gpu_ids", []) for kind in kinds]
    if any(kind != kinds[0] for kind in kinds):
        raise ValueError("the results are of machines of different kinds: " + "; ".join(sorted({json.dumps(kind, sort_keys=True) for kind in kinds})))
    checks, parts = {}, {}
    for document, ids in zip(documents, gpus):
        for check in claims.objects(document.get("checks")):
            key = (str(ids), str(check.get("part")), str(check.get("name")))
            if key not in checks or check.get("outcome") != "skip":
                checks[key] = check
        parts.update({part: state for part, state in claims.as_dict(document.get("parts")).items() if parts.get(part) != "done"})
    lists = {key: [one for document in documents for one in claims.objects(document.get(key))] for key in ("records", "figures")}
    dates = dict.fromkeys(str(document.get("date")) for document in (documents[0], documents[-1]))
    return {**documents[-1], **lists, "machine": {**kinds[0], "gpu_ids": sorted({str(one) for ids in gpus for one in ids})},
            "parts": parts, "checks": list(checks.values()), "date": " to ".join(dates)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("results", nargs="+", type=pathlib.Path, metavar="RESULTS.json")
    parser.add_argument("-o", "--out", type=pathlib.Path, metavar="PAGE.html", help="default: beside the first of the results")
    options = parser.parse_args()
    try:
        write(merged(json.loads(one.read_text()) for one in options.results), options.out or options.results[0].with_suffix(".html"))
    except (OSError, ValueError, TypeError, OverflowError, RecursionError) as problem:  # damaged results
        sys.exit(f"page.py: {type(problem).__name__}: {problem}")


if __name__ == "__main__":
    main()

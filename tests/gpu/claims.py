# SPDX-License-Identifier: Apache-2.0
"""What Muster claims about GPUs, and what one run of `./dev gpu` says to each claim: one list, from its results alone.

The claims are the rows of README.md's table, the limits and peaks of the GPU's profile, the rates beside PyTorch
(TORCH) and beside other tools (peers.py). A claim is confirmed only where everything that tells it ran and agreed;
it is refuted where anything disagreed; all else is "not tried", with the reason.
"""
import dataclasses
import fnmatch
import itertools
import math
import re

import peers

try:
    import tomllib
except ImportError:  # Python before 3.11
    tomllib = None

CONFIRMED, REFUTED, NOT_TRIED = "confirmed", "refuted", "not tried"
SIMULATED = "the record is SIMULATED: nothing was measured"

# What is judged against PyTorch on the same GPU: (line for the workers, torch's variants, least ratio).
GEMM_SIZES = [4096, 8192, 16384]
GEMM_TYPES = ["bf16", "f16", "tf32", "f32", "f64", "fp8_e4m3", "fp8_e5m2", "i8"]
SIZES_OF = {"f64": [4096, 8192], "f32": [4096, 8192]}
TORCH = [(f"gemm {dtype} {size}", [""], 0.99) for dtype in GEMM_TYPES for size in SIZES_OF.get(dtype, GEMM_SIZES)]
TORCH += [("copy 4294967296", ["torch", "vector"], 0.98), ("host_to_device 1073741824", [""], 0.98),
          ("device_to_host 1073741824", [""], 0.98)]
for batch in (128, 256):
    for model in ("resnet50", "resnet18"):
        TORCH += [(f"train {model} {batch} 224", ["eager"], 1.3), (f"train {model} {batch} 224", ["compile"], 1.0)]
TORCH += [("train transformer 32 512", ["compile"], 1.1)]

# Metrics that are a share of a peak of the profile, with the label that completes the peak's name.
PEAK_METRICS = {"compute.gemm_throughput": "flops.{dtype}", "compute.sustained_throughput": "flops.{dtype}", "memory.bandwidth": "memory_bandwidth"}


@dataclasses.dataclass
class Claim:
    text: str  # what Muster claims
    source: str  # whose word that is
    check: str  # what tells
    verdict: str
    said: str  # what it said; of a claim that was not tried, why


def torch_name(line, variants):
    return " ".join([line, *variants]).strip()


def quantity(value, unit):
    """"657 TFLOP/s" from 6.57e14 and "FLOP/s"."""
    if not isinstance(value, (int, float)):
        return str(value)
    if unit == "ratio":
        return f"{value:.1%}"
    prefix, unit = "", {"degC": "\u00b0C"}.get(unit, unit)
    if unit in ("FLOP/s", "OP/s", "B/s", "Hz"):
        power = max(0, min(5, int(math.log10(abs(value)) // 3))) if value and math.isfinite(value) else 0
        value, prefix = value / 1000**power, " kMGTP"[power].strip()
    return f"{value:.4g} {prefix}{unit}" if unit not in ("", "count", "bool", "text") else f"{value:.4g}"


def labels_text(where):
    return "".join(f" {key}={value}" for key, value in sorted(where.items()))


def shown(names, most=3):
    names = list(dict.fromkeys(names))
    return "; ".join(names[:most]) + (f"; and {len(names) - most} more" if len(names) > most else "")


def toml_limit(entry):
    """What an [[expect]] of a profile asks for, in its own words."""
    kinds = ("min", "max", "equals", "one_of", "contains", "excludes", "baseline", "of_peak", "within", "cv_max", "drop_max")
    kind = next((name for name in kinds if name in entry), "")
    tolerance = f", tolerance {entry['tolerance']}" if "tolerance" in entry else ""
    return kind, f"{kind} {entry.get(kind)}{tolerance}"


def as_dict(value):
    return value if isinstance(value, dict) else {}


def objects(value):
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(document, *keys):
    """`document` with these of its values as text."""
    return {**document, **{key: "" if document.get(key) is None else str(document[key]) for key in keys}}


def requirement(document):
    """A requirement of records.py, each value of the kind that it must be; counts of another kind are no outcome."""
    counts = as_dict(document.get("outcomes"))
    if not counts or not all(isinstance(count, int) and count > 0 for count in counts.values()):
        counts = {"without outcome": 1}
    return {**texts(document, "stage", "metric", "kind", "origin", "source", "unit", "requires", "detail", "trouble"),
            "where": texts(as_dict(document.get("where")), *as_dict(document.get("where"))), "outcomes": counts}


class Findings:
    """The document of results.py, asked by claims. What is missing or of another kind counts as not there."""

    def __init__(self, document):
        document = as_dict(document)
        self.checks = [texts(one, "name", "part", "outcome", "detail") for one in objects(document.get("checks"))]
        self.figures = [{**texts(one, "name"), "labels": as_dict(one.get("labels"))} for one in objects(document.get("figures"))
                        if isinstance(one.get("value"), (int, float))]
        self.records = [{**texts(one, "plan", "kept"), "profile": texts(as_dict(one.get("profile")), "name", "text"), "peaks": as_dict(one.get("peaks")),
                         "measured": one.get("simulated") is False, "requirements": [requirement(inner) for inner in objects(one.get("requirements"))]}
                        for one in objects(document.get("records"))]
        self.parts = texts(as_dict(document.get("parts")), *as_dict(document.get("parts")))
        self.used = set()  # checks that a claim has named

    def no_gpu(self):
        return next((check["detail"] for check in self.checks if check["name"] == "an NVIDIA GPU"), "")

    def absent(self, part):
        """Why a part of run.py has no word on something."""
        state = self.parts.get(part)
        if state == "done":
            return f"part {part} ran without it"
        return self.no_gpu() or (f"part {part} {state}" if state else f"part {part} was not run")

    def whole(self, part):
        """Whether all of a part of run.py ran."""
        return self.parts.get(part) == "done"

    def take(self, chosen):
        """The checks that `chosen` accepts; they are no longer without a claim."""
        found = [check for check in self.checks if chosen(check)]
        self.used.update(id(check) for check in found)
        return found

    def requirements(self, chosen):
        """(record, requirement) pairs."""
        return [(record, one) for record in self.records for one in record["requirements"] if chosen(one)]


def of_checks(found, missing):
    """(verdict, what it said) of checks and of reasons why others are missing."""
    if len(found) == 1 and not missing:
        verdict = {"pass": CONFIRMED, "fail": REFUTED}.get(found[0]["outcome"], NOT_TRIED)
        return verdict, found[0]["detail"] or found[0]["outcome"]
    failed = [check for check in found if check["outcome"] == "fail"]
    passed = [check for check in found if check["outcome"] == "pass"]
    if failed:
        return REFUTED, f"{len(failed)} of {len(found)} failed: " + shown(f"{check['name']}: {check['detail']}" for check in failed)
    missing = missing + [f"{check['name']}: {check['detail']}" for check in found if check not in passed]
    if missing or not passed:
        return NOT_TRIED, shown(missing or ["nothing told"]) + (f" ({len(passed)} others passed)" if passed else "")
    return CONFIRMED, f"{len(passed)} passed"


def of_requirements(found, absent):
    """The same for (record, requirement) pairs."""
    if not found:
        return NOT_TRIED, absent
    outcomes, said, refuted, untold = {}, [], [], []
    for record, one in found:
        counts = one["outcomes"]
        text = f"{one['detail'] or quantity(one.get('observed'), one['unit'])} (stage {one['stage']} of {record['plan']})"
        if set(counts) & {"fail", "flaky", "waived", "missed"}:
            refuted.append(text)
        elif set(counts) != {"pass"}:
            untold.append(text)
        elif one["trouble"]:
            untold.append(f"stage {one['stage']} of {record['plan']}: {one['trouble']}")
        elif not record["measured"]:
            untold.append(SIMULATED)
        else:
            said.append(text)
        for name, count in counts.items():
            outcomes[name] = outcomes.get(name, 0) + count
    total = ", ".join(f"{count} {name}" for name, count in outcomes.items())
    if refuted and all(record["measured"] for record, _ in found):
        return REFUTED, f"{total}: {shown(refuted)}"
    if untold or refuted:
        return NOT_TRIED, f"{total}: {shown(untold + refuted)}"
    metrics = {one["metric"] for _, one in found}
    return CONFIRMED, f"{total}, of {len(metrics)} metrics" if len(metrics) > 1 else f"{total}; closest to the limit: {shown(said)}"


def table_rows(readme):
    """(claim, what shows it) of the table under "Claims" in README.md."""
    lines = readme.partition("\n## Claims\n")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    return [(cells[0], cells[1]) for cells in rows[2:] if len(cells) == 2]


def case_of(name):
    """ "Nccl.RunsAsGraphs" of "nccl-gpu-test: Ranks/Nccl.RunsAsGraphs/1", as gtest names a case of several parameters."""
    return re.sub(r"^\w+/(?=\w+\.)|(?<=\w)/\w+$", "", name.split(": ")[-1])


def table_claims(findings, readme):
    """Each row names in `code` what must agree: tests, a part of run.py, a metric; anything else is not run here."""
    if not table_rows(readme):
        yield Claim("what only a GPU can show", "tests/gpu/README.md", "its table", NOT_TRIED, "README.md with the table of claims is not here")
    for text, shows in table_rows(readme):
        found, missing, required, cases, metrics = [], [], [], [], []
        for token in re.findall(r"`([^`]+)`", shows):
            part = re.fullmatch(r"--part (\w+)", token)
            if part:
                one = findings.take(lambda check, name=part.group(1): check["part"] == name)
                found += one
                missing += [] if one and findings.whole(part.group(1)) else [findings.absent(part.group(1))]
            elif re.fullmatch(r"[a-z]+\.[a-z_*]+", token):
                one = findings.requirements(lambda r, token=token: fnmatch.fnmatchcase(r["metric"], token))
                required += [of_requirements(one, "")] if one else []
                metrics += [] if one else [token]
            elif re.fullmatch(r"[A-Z*][\w*]*(\.[\w*]+)?", token):
                one = findings.take(lambda check, token=token: fnmatch.fnmatchcase(case_of(check["name"]), token))
                found += one
                cases += [] if one and findings.whole("tests") else [token]
            else:
                missing.append(f"this run does not try {token}")
        missing += [f"no case {', '.join(cases)}: {findings.absent('tests')}"] if cases else []
        missing += [f"no requirement of {', '.join(metrics)} was judged: {findings.absent('plans')}"] if metrics else []
        yield Claim(text, "tests/gpu/README.md", shows.replace("`", ""), *combined(found, missing, required))


def combined(found, missing, required):
    """One verdict of checks and requirements together: the worst of them."""
    parts = list(required)
    if found or missing or not parts:
        parts.append(of_checks(found, missing))
    for verdict in (REFUTED, NOT_TRIED, CONFIRMED):
        said = [text for one, text in parts if one == verdict]
        if said:
            return verdict, "; ".join(said)
    return NOT_TRIED, "nothing told"


def profile_document(profile):
    """(the profile's TOML, why it cannot be read)."""
    if tomllib is None:
        return {}, "this Python is older than 3.11 and cannot read the profile; make the page again elsewhere: page.py RESULTS.json"
    try:
        return thawed(profile["text"]), ""
    except tomllib.TOMLDecodeError as problem:
        return {}, f"the profile in the record cannot be read: {problem}"


def thawed(text):
    """A frozen profile (runner/inputs) as one document: its limits and those of the files that it includes or extends."""
    own, *files = text.split("\n#:included ")
    included = ["\n".join(line[3:] for line in file.split("\n")[1:]) for file in files]
    documents = [tomllib.loads(own)] + [thawed(file) for file in included]
    sets, peaks = {}, {}
    for document in reversed(documents):
        sets.update(as_dict(document.get("expectations")))
        peaks.update(as_dict(document.get("peaks")))
    limits = [limit for document in documents for entry in objects(document.get("expect")) for limit in single_limits(entry, sets)]
    return {**documents[0], "peaks": peaks, "expectations": sets, "expect": limits}


def single_limits(entry, sets):
    """An expectation of a set, of several metrics or of several values of a label as the single ones that it stands for."""
    entry = {**as_dict(sets.get(entry.get("set"))), **{key: value for key, value in entry.items() if key != "set"}}
    where = as_dict(entry.get("where"))
    values = [value if isinstance(value, list) else [value] for value in where.values()]
    metrics = entry.get("metric")
    for metric in metrics if isinstance(metrics, list) else [metrics]:
        for choice in itertools.product(*values):
            yield {**entry, "metric": metric, **({"where": dict(zip(where, choice))} if where else {})}


def limit_claims(findings):
    """Each limit of the profile that was in force; those that no plan of this run judges are not tried."""
    profiles = {record["profile"]["name"]: record["profile"] for record in findings.records if record["profile"]["name"]}
    if not profiles:
        yield Claim("limits and peaks of the GPU's profile", "plans/skus", "muster run", NOT_TRIED,
                    "no record with a profile: " + (findings.absent("plans") if not findings.records else "no profile knows this GPU"))
    for name, profile in sorted(profiles.items()):
        groups = {}
        for record, one in findings.requirements(lambda r, name=name: r["origin"] == f"profile {name}"):
            groups.setdefault((one["metric"], labels_text(one["where"]), one["kind"]), []).append((record, one))
        for (metric, labels, kind), found in groups.items():
            yield Claim(f"{metric}{labels}: {found[0][1]['requires'] or kind}", source_text(name, found[0][1]["source"]),
                        "muster run: " + shown(f"stage {one['stage']} of {record['plan']}" for record, one in found), *of_requirements(found, ""))
        document, problem = profile_document(profile)
        if problem:
            yield Claim("further limits of the profile", f"profile {name}", "muster run", NOT_TRIED, problem)
        yield from unjudged_limits(name, document, groups, findings)
        yield from peak_claims(name, document, findings)


def source_text(name, source):
    return f"profile {name}" if not source or source == f"profile {name}" else f"profile {name}: {source}"


def unjudged_limits(name, document, judged, findings):
    for entry in objects(document.get("expect")):
        kind, text = toml_limit(entry)
        labels = labels_text(as_dict(entry.get("where")))
        if (str(entry.get("metric")), labels, kind) not in judged:
            yield Claim(f"{entry.get('metric')}{labels}: {text}", source_text(name, entry.get("source")), "muster run", NOT_TRIED,
                        "no plan of this run measured it: " + shown(not_run(record) for record in findings.records))


def not_run(record):
    """The plan's name, with what of it has no result."""
    problems = [str(text) for text in record["troubles"]] if isinstance(record.get("troubles"), list) else []
    return record["plan"] + (f" ({shown(problems)})" if problems else "")


def peak_claims(name, document, findings):
    """Nothing that was measured may exceed a peak: else the peak or the measurement is wrong."""
    records = [record for record in findings.records if record["profile"]["name"] == name]
    plans = [record["plan"] for record in records]
    bounds = {peak: most for record in records for peak, most in record["peaks"].items()
              if isinstance(most, (int, float)) and most > 0 and not peak.startswith("network_bandwidth.")}  # those follow from network_bandwidth
    source = as_dict(document.get("peaks")).get("source")
    for peak, most in bounds.items():
        rates = [figure["value"] for figure in findings.figures if figure["labels"].get("plan") in plans
                 and PEAK_METRICS.get(figure["name"], "").replace("{dtype}", str(figure["labels"].get("dtype"))) == peak]
        unit = "FLOP/s" if peak.startswith("flops.") else "B/s"
        if not rates:
            verdict, said = NOT_TRIED, f"{shown(plans)} measured nothing that this peak bounds"
        elif not all(record["measured"] for record in records):
            verdict, said = NOT_TRIED, SIMULATED
        elif not all(map(math.isfinite, rates)):
            verdict, said = REFUTED, "a rate that was measured is no number"
        else:
            verdict = CONFIRMED if max(rates) <= most else REFUTED
            said = f"the highest of {len(rates)}: {quantity(max(rates), unit)}, {max(rates) / most:.0%} of it"
        yield Claim(f"peak {peak}: no rate exceeds {quantity(most, unit)}", source_text(name, source), f"muster run: {shown(plans)}", verdict, said)


def named_claim(findings, name, part, text, source, check):
    """A claim that the check of this name tells; a check of the whole part says why it is missing."""
    found = findings.take(lambda one: one["name"] == name)
    whole = [f"{one['name']}: {one['detail']}" for one in findings.checks if one["part"] == part and one.get("whole_part")]
    return Claim(text, source, check, *of_checks(found, [] if found else whole or [findings.absent(part)]))


def peer_claims(findings):
    for line, variants, least in TORCH:
        name = torch_name(line, variants)
        yield named_claim(findings, name, "torch", f"{name}: at least {least} of PyTorch's rate", "tests/gpu/claims.py", "PyTorch, paired turns")
    for peer in peers.PEERS:
        text = f"{peer.metric}{labels_text(peer.where)}: within {peers.TOLERANCE:.0%} of {peer.tool}"
        yield named_claim(findings, peer.name, "peers", text, "tests/gpu/peers.py", f"{peer.tool}: {', '.join(peer.cases)}")


def claims(document, readme):
    """All claims: refuted ones can be acted on, but what is confirmed comes first, then refuted, then not tried."""
    findings = Findings(document)
    found = [*table_claims(findings, readme), *limit_claims(findings), *peer_claims(findings)]
    for check in findings.checks:
        if check["outcome"] == "fail" and id(check) not in findings.used:
            found.append(Claim(f"{check['name']} passes", "tests/gpu", f"part {check['part']}", REFUTED, check["detail"]))
    return sorted(found, key=lambda claim: [CONFIRMED, REFUTED, NOT_TRIED].index(claim.verdict))

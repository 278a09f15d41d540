# SPDX-License-Identifier: Apache-2.0
"""claims.py and page.py on results as results.py keeps them: whole, with something missing, and damaged."""
import copy
import fnmatch
import json
import pathlib
import re
import unittest

import claims
import page
import peers
import records

HERE = pathlib.Path(__file__).resolve().parent
README = (HERE / "README.md").read_text()
PROFILE = """name = "h100"
[peaks]
source = "datasheet"
[[expect]]
metric = "compute.gemm_throughput"
where = { dtype = "bf16" }
baseline = "730 TFLOP/s"
tolerance = "10%"
source = "gpu-fryer"
[[expect]]
metric = "env.nvlinks_active"
min = 18
source = "datasheet"
"""


def requirement(metric, outcomes=None, **more):
    return {"stage": "gemm", "metric": metric, "where": {}, "kind": "min", "origin": "standing", "source": "", "unit": "", "requires": "at least 1",
            "outcomes": {"pass": 8} if outcomes is None else outcomes, "observed": 2.0, "detail": "", **more}


def gemm(outcomes=None, **more):
    return requirement("compute.gemm_throughput", outcomes, where={"dtype": "bf16"}, kind="baseline", origin="profile h100",
                       source="gpu-fryer", unit="FLOP/s", requires="at least 657 TFLOP/s", observed=7e14, **more)


def healthy():
    """Results in which everything was tried and agreed."""
    names = [f"blas-gpu-test: {case}" for case in test_cases()]
    document = {"schema": 1, "date": "2026-11-23T00:00:00Z", "machine": {"gpu": "NVIDIA H100 80GB HBM3", "gpus": 8},
                "parts": {part: "done" for part in ("tests", "plans", "torch", "peers", "sanitizer")},
                "checks": [{"name": name, "part": "tests", "outcome": "pass", "detail": ""} for name in names],
                "figures": [{"name": "compute.gemm_throughput", "value": 7e14, "unit": "FLOP/s", "labels": {"dtype": "bf16", "plan": "node-quick"}}],
                "records": [{"plan": "node-quick", "kept": "x/node-quick", "simulated": False, "peaks": {"flops.bf16": 989.4e12},
                             "profile": {"name": "h100", "sha256": "", "text": PROFILE}, "requirements": [
                                 gemm(), requirement("compute.sustained_duty"), requirement("env.nvlinks_active", origin="profile h100"),
                                 *(requirement(f"env.{name}") for name in ("clock_max", "throttle_thermal", "ecc_corrected", "row_remap_failed",
                                                                           "fabric_healthy", "recovery_needed", "sram_threshold_exceeded", "inforom_valid", "remap_banks",
                                                                           "slowdown_margin", "fabric_manager_errors"))]}]}
    for name in [claims.torch_name(line, variants) for line, variants, _ in claims.TORCH]:
        document["checks"].append({"name": name, "part": "torch", "outcome": "pass", "detail": "ratio 1.01"})
    for peer in peers.PEERS:
        document["checks"].append({"name": peer.name, "part": "peers", "outcome": "pass", "detail": "ratio 1.01"})
    document["checks"].append({"name": "muster run node-quick.toml", "part": "plans", "outcome": "pass", "detail": "exit code 0"})
    document["checks"].append({"name": "blas-gpu-test under memcheck: GpuNn.SanitizedNetworksAreRight", "part": "sanitizer", "outcome": "pass", "detail": ""})
    return document


def test_cases():
    return [".".join(case) for path in sorted(HERE.glob("*_gpu_test.cpp")) for case in re.findall(r"^TEST\w*\((\w+), *(\w+)", path.read_text(), re.MULTILINE)]


def of(document, verdict):
    return [one.text for one in claims.claims(document, README) if one.verdict == verdict]


def said(document, begin):
    found = [(one.verdict, one.said) for one in claims.claims(document, README) if one.text.startswith(begin)]
    assert len(found) == 1, (begin, found)
    return found[0]


class Evidence(unittest.TestCase):
    def test_all_is_confirmed_but_what_no_part_tries(self):
        self.assertEqual(of(healthy(), claims.REFUTED), [])
        rest = [(one.text, one.said) for one in claims.claims(healthy(), README) if one.verdict == claims.NOT_TRIED]
        self.assertEqual(rest, [("GPUDirect RDMA works with dma-buf and with nvidia_peermem", "this run does not try plans/rdma.toml"),
                                ("limits that a profile derives instead of citing a measurement fit healthy GPUs", "this run does not try muster baseline learn")])

    def test_confirmed_come_first_then_refuted(self):
        document = healthy()
        document["checks"][0]["outcome"] = "fail"
        order = [one.verdict for one in claims.claims(document, README)]
        self.assertEqual(order, sorted(order, key=[claims.CONFIRMED, claims.REFUTED, claims.NOT_TRIED].index))
        self.assertEqual(set(order), {claims.CONFIRMED, claims.REFUTED, claims.NOT_TRIED})

    def test_no_claim_is_confirmed_by_a_check_that_is_missing_or_did_not_pass(self):
        whole = set(of(healthy(), claims.CONFIRMED))
        for i, check in enumerate(healthy()["checks"]):
            for outcome in ("fail", "skip", "unheard of", None, 7):
                document = healthy()
                document["checks"][i]["outcome"] = outcome
                found = set(of(document, claims.CONFIRMED))
                self.assertLessEqual(found, whole)
                if check["part"] != "tests":  # of the tests, the table names only some
                    self.assertNotEqual(found, whole, (check["name"], outcome))
        for part in ("torch", "peers"):
            document = healthy()
            document["checks"] = [check for check in document["checks"] if check["part"] != part]
            gone = whole - set(of(document, claims.CONFIRMED))
            self.assertGreaterEqual(len(gone), len([check for check in healthy()["checks"] if check["part"] == part]))

    def test_each_failure_is_in_a_refuted_claim(self):
        for i, check in enumerate(healthy()["checks"]):
            document = healthy()
            document["checks"][i].update(outcome="fail", detail="the reason of this failure")
            refuted = [one for one in claims.claims(document, README) if one.verdict == claims.REFUTED]
            self.assertTrue(any("the reason of this failure" in one.said for one in refuted), check["name"])

    def test_a_requirement_confirms_only_if_every_verdict_passed(self):
        for outcomes, verdict in (({"pass": 8}, claims.CONFIRMED), ({"pass": 7, "fail": 1}, claims.REFUTED), ({"flaky": 1}, claims.REFUTED),
                                  ({"waived": 1, "pass": 7}, claims.REFUTED), ({"missed": 1}, claims.REFUTED), ({"pass": 7, "error": 1}, claims.NOT_TRIED),
                                  ({"skipped": 1}, claims.NOT_TRIED), ({"elsewhere": 1}, claims.NOT_TRIED), ({"new": 1}, claims.NOT_TRIED),
                                  ({}, claims.NOT_TRIED), (None, claims.CONFIRMED), (7, claims.NOT_TRIED), ({"pass": "8"}, claims.NOT_TRIED), ({"pass": 0}, claims.NOT_TRIED)):
            document = healthy()
            document["records"][0]["requirements"][0] = gemm(outcomes)
            self.assertEqual(said(document, "compute.gemm_throughput dtype=bf16")[0], verdict, outcomes)

    def test_a_case_of_several_parameters_is_known_by_its_name(self):
        for name, case in (("nccl-gpu-test: Ranks/Nccl.RunsAsGraphs/1", "Nccl.RunsAsGraphs"), ("blas-gpu-test: Blas.RefusesByName", "Blas.RefusesByName"),
                           ("Shapes/GpuConvolutions.AreRightAlone/Large", "GpuConvolutions.AreRightAlone"), ("muster run a/b.toml", "muster run a/b.toml")):
            self.assertEqual(claims.case_of(name), case)

    def test_several_runs_are_one_page_and_the_last_word_counts(self):
        whole = healthy()
        first = {**whole, "checks": [dict(one, outcome="fail") for one in whole["checks"][:1]], "records": [], "figures": [], "parts": {"tests": "was cut off"}}
        self.assertEqual(of(page.merged([first, whole]), claims.CONFIRMED), of(whole, claims.CONFIRMED))
        self.assertNotEqual(of(page.merged([whole, first]), claims.REFUTED), [])
        self.assertEqual(page.merged([whole, first])["parts"], whole["parts"])
        skipped = {**whole, "checks": [dict(one, outcome="skip") for one in whole["checks"]]}
        self.assertNotEqual(of(page.merged([first, skipped]), claims.REFUTED), [], "what could not run again is no pass")
        other = {**whole, "machine": {**whole["machine"], "gpu_ids": ["0badc0de"]}}
        self.assertNotEqual(of(page.merged([first, other]), claims.REFUTED), [], "another GPU's pass is none of this one's")
        with self.assertRaises(ValueError):
            page.merged([whole, {**whole, "machine": {"gpu": "another"}}])

    def test_a_requirement_of_a_stage_with_trouble_is_not_confirmed(self):
        document = healthy()
        document["records"][0]["requirements"][0] = gemm({"pass": 7}, trouble="rank 3 (gpu3) timed out")
        self.assertEqual(said(document, "compute.gemm_throughput dtype=bf16"),
                         (claims.NOT_TRIED, "7 pass: stage gemm of node-quick: rank 3 (gpu3) timed out"))
        document["records"][0]["requirements"][0] = gemm({"pass": 6, "fail": 1}, trouble="rank 3 (gpu3) timed out")
        self.assertEqual(said(document, "compute.gemm_throughput dtype=bf16")[0], claims.REFUTED)

    def test_no_record_that_is_not_marked_as_measured_tells_anything(self):
        for mark in (True, None, "false", 0):
            document = healthy()
            document["records"][0]["simulated"] = mark
            document["records"][0]["requirements"].append(requirement("env.ecc_errors", {"fail": 1}, origin="profile h100"))
            for claim in ("compute.gemm_throughput dtype=bf16", "peak flops.bf16", "the stress test", "env.ecc_errors"):
                self.assertEqual(said(document, claim)[0], claims.NOT_TRIED, (mark, claim))

    def test_a_rate_above_its_peak_refutes_it(self):
        for value in (1e15, float("nan"), float("inf")):
            document = healthy()
            document["figures"].append({**document["figures"][0], "value": value})
            self.assertEqual(said(document, "peak flops.bf16")[0], claims.REFUTED, value)
        document["figures"] = []
        self.assertEqual(said(document, "peak flops.bf16"), (claims.NOT_TRIED, "node-quick measured nothing that this peak bounds"))

    def test_a_limit_that_no_plan_judged_is_there(self):
        document = healthy()
        del document["records"][0]["requirements"][2]
        self.assertEqual(said(document, "env.nvlinks_active: min 18"), (claims.NOT_TRIED, "no plan of this run measured it: node-quick"))
        document["records"][0]["profile"]["text"] = "name = "
        self.assertIn("cannot be read", said(document, "further limits of the profile")[1])

    def test_a_part_that_was_cut_off_or_narrowed_confirms_nothing_whole(self):
        for state in ("was cut off", "ran a selection (gemm * 8192)"):
            for part in ("tests", "torch", "sanitizer"):
                document = healthy()
                document["parts"][part] = state
                self.assertLess(len(of(document, claims.CONFIRMED)), len(of(healthy(), claims.CONFIRMED)), (part, state))

    def test_the_reason_is_that_of_the_part(self):
        for state, reason in (("crashed: ValueError: x", "part torch crashed: ValueError: x"), ("was cut off", "part torch was cut off"),
                              ("done", "part torch ran without it"), (None, "part torch was not run")):
            document = healthy()
            document["checks"] = [check for check in document["checks"] if check["part"] != "torch"]
            document["parts"]["torch"] = state
            self.assertEqual(said(document, "gemm bf16 8192"), (claims.NOT_TRIED, reason))
        document["checks"].append({"name": "comparison with PyTorch", "part": "torch", "outcome": "skip", "detail": "no torch", "whole_part": True})
        self.assertEqual(said(document, "gemm bf16 8192"), (claims.NOT_TRIED, "comparison with PyTorch: no torch"))


class Table(unittest.TestCase):
    def test_every_case_that_it_names_exists(self):
        tokens = [token for _, shows in claims.table_rows(README) for token in re.findall(r"`([A-Z*][\w*]*(?:\.[\w*]+)?)`", shows)]
        self.assertGreater(len(tokens), 8)
        for token in tokens:
            self.assertTrue(any(fnmatch.fnmatchcase(case, token) for case in test_cases()), token)

    def test_a_missing_table_is_a_claim_that_was_not_tried(self):
        found = claims.claims(healthy(), "")
        self.assertEqual([one.verdict for one in found if one.source == "tests/gpu/README.md"], [claims.NOT_TRIED])


class Damaged(unittest.TestCase):
    def test_confirms_nothing_and_still_makes_a_page(self):
        whole = healthy()
        for document in (None, [], 7, "text", {}, {key: 7 for key in whole}, {key: [7, None, "x", []] for key in whole},
                         {key: {"x": 7} for key in whole}, {"records": [{}]}, {"records": [{"profile": 7, "requirements": [7, {}]}]}):
            with self.subTest(document=document):
                self.assertEqual(of(document, claims.CONFIRMED), [])
                self.assertIn("</html>", page.page(document, README))

    def test_a_value_of_another_kind_anywhere_confirms_nothing_more(self):
        whole = healthy()
        whole["checks"] = whole["checks"][:1] + whole["checks"][-1:]  # they are alike
        confirmed = len(of(whole, claims.CONFIRMED))
        for path in paths(whole):
            for value in (None, "x", 7, [], {}, [7], {"x": 7}):
                document = copy.deepcopy(whole)
                place = document
                for key in path[:-1]:
                    place = place[key]
                place[path[-1]] = value
                with self.subTest(path=path, value=value):
                    self.assertIn("</html>", page.page(document, README))
                    self.assertLessEqual(len(of(document, claims.CONFIRMED)), confirmed)

    def test_text_is_shown_and_not_run(self):
        document = healthy()
        document["checks"][0].update(outcome="fail", detail="<script>alert(1)</script>\x1b[31m\u202e&")
        document["machine"]["gpu"] = "<b>H100"
        shown = page.page(document, README)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;\\u001b[31m\\u202e&amp;", shown)
        self.assertIn("&lt;b&gt;H100", shown)
        self.assertNotIn("<script", shown)


def paths(value, path=()):
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from paths(inner, (*path, key))


class Records(unittest.TestCase):
    def requirement(self, *verdicts):
        record = {"stages": [{"name": "gemm", "state": "ran", "reason": "", "evidence": {"expectations": [{"metric": "m", "kind": "min"}]}, "verdicts": list(verdicts)}]}
        return list(records.requirements(json.loads(json.dumps(record))))

    def test_a_requirement_is_told_by_its_worst_verdict(self):
        found = self.requirement({"expectation": 0, "outcome": "pass", "rows": {"device": ["gpu0", "gpu1"], "observed": [9, 5], "margin": [0.8, 0.1]}},
                                 {"expectation": 0, "outcome": "fail", "observed": 3, "margin": -0.4, "detail": "gpu2 is slow"})
        self.assertEqual(len(found), 1)
        self.assertEqual((found[0]["outcomes"], found[0]["observed"], found[0]["detail"]), ({"pass": 2, "fail": 1}, 3, "gpu2 is slow"))

    def test_a_warning_is_met_only_with_a_margin(self):
        for margin, outcome in ((0.01, "pass"), (-0.01, "missed"), ("nan", "missed")):
            self.assertEqual(self.requirement({"expectation": 0, "outcome": "warn", "margin": margin})[0]["outcomes"], {outcome: 1})

    def test_what_has_no_verdict_is_the_trouble_of_its_stage(self):
        self.assertEqual(self.requirement({"outcome": "error", "detail": "crashed"}), [])
        found = self.requirement({"expectation": 0, "outcome": "pass"}, {"outcome": "error", "device": "gpu3", "detail": "gpu3 timed out; rerun it alone: /tmp/x"})
        self.assertEqual((found[0]["outcomes"], found[0]["trouble"]), ({"pass": 1}, "gpu3 timed out"))
        self.assertEqual(self.requirement({"expectation": 0, "outcome": "pass"}, {"outcome": "unjudged"})[0]["trouble"], "")
        record = {"stages": [{"name": "peer", "state": "ran", "reason": "", "outcome": "skipped", "ranks": [{}], "evidence": {"expectations": [{"metric": "m", "kind": "min"}]},
                              "verdicts": [{"expectation": 0, "outcome": "pass"}, {"outcome": "skipped", "detail": "one device has no peer"}]}]}
        self.assertEqual(next(records.requirements(record))["trouble"], "", "its telemetry was judged")
        record["stages"][0]["ranks"].append({})
        self.assertEqual(next(records.requirements(record))["trouble"], "one device has no peer", "and the other rank?")
        self.assertEqual(records.troubles({"state": "skipped", "reason": "no prerequisite", "verdicts": []}), ["no prerequisite"])


if __name__ == "__main__":
    unittest.main()

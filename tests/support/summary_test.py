# SPDX-License-Identifier: Apache-2.0
"""Tests summary.py with the logs that passing, failing, crashing and skipping test runs leave."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).with_name("summary.py")


def case(state, name):
    return f"[ RUN      ] {name}\n[ {state:^8} ] {name} (0 ms)\n"


def test(name, result="OK", stdout="", returncode=0):
    return {"name": name, "result": result, "stdout": stdout, "returncode": returncode}


class Summary(unittest.TestCase):
    def run_on(self, tests, exit_code=0):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "testlog.json")
            if tests is not None:
                log.write_text("".join(json.dumps(entry) + "\n" for entry in tests))
            done = subprocess.run([sys.executable, PROGRAM, log, "--exit-code", str(exit_code)],
                                  capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def test_counts_cases_and_scripts(self):
        code, lines, _ = self.run_on([test("unit", stdout=case("OK", "A.b") + case("OK", "A.c")), test("script")])
        self.assertEqual((code, lines), (0, ["3 passed, 0 failed, 0 skipped"]))

    def test_counts_a_parametrised_case_once(self):
        text = "[ RUN      ] P/A.b/0\n[  FAILED  ] P/A.b/0, where GetParam() = 7 (3 ms)\n[  FAILED  ] P/A.b/0, where GetParam() = 7\n"
        code, lines, _ = self.run_on([test("unit", "FAIL", text, 1)], 1)
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_shows_why_a_case_was_skipped(self):
        text = case("OK", "A.a") + "[ RUN      ] A.b\nx.cpp:3: Skipped\nneeds a GPU\n\n[  SKIPPED ] A.b (0 ms)\n"
        code, lines, _ = self.run_on([test("unit", stdout=text)])
        self.assertEqual((code, lines), (0, ["skipped: unit: A.b (needs a GPU)", "1 passed, 0 failed, 1 skipped"]))

    def test_a_crash_fails_the_case_that_did_not_end(self):
        text = case("OK", "A.a") + "[ RUN      ] A.b\n"
        code, lines, _ = self.run_on([test("unit", "ERROR", text, -11)], 1)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_an_early_exit_with_code_0_is_a_failure(self):
        code, lines, _ = self.run_on([test("unit", stdout="[ RUN      ] A.b\n")])
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_timeout_after_passing_cases_is_a_failure(self):
        code, lines, _ = self.run_on([test("unit", "TIMEOUT", case("OK", "A.a"), -9)], 1)
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_all_skipped_is_not_a_success(self):
        code, lines, _ = self.run_on([test("script", "SKIP", "needs root\n", 77)])
        self.assertEqual((code, lines[0]), (1, "skipped: script (needs root)"))

    def test_no_test_is_not_a_success(self):
        self.assertEqual(self.run_on([])[0], 1)

    def test_a_missing_or_torn_log_is_not_a_success(self):
        self.assertEqual(self.run_on(None)[0], 1)
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            log.write_text('{"name": "unit", "res')
            done = subprocess.run([sys.executable, PROGRAM, log, "--exit-code", "0"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot read", done.stderr)

    def test_mesons_own_failure_is_kept(self):
        code, _, errors = self.run_on([test("script")], 2)
        self.assertEqual(code, 1)
        self.assertIn("ended with 2", errors)


if __name__ == "__main__":
    unittest.main()

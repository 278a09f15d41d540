# SPDX-License-Identifier: Apache-2.0
"""run.py from its start to its page on a machine that lacks GPUs: nvidia-smi, the test programs and the peer tools are
scripts of this test, and `muster` is the tree's own on a simulated node, whose records are then marked as measured."""
import html
import json
import os
import pathlib
import re
import signal
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
MUSTER = pathlib.Path(os.environ["MUSTER_DIST"]) / "bin/muster"
SCENARIO = pathlib.Path(os.environ["MUSTER_DIST"]) / "share/muster/plans/scenarios/h100x8-cluster-healthy.toml"

NVIDIA_SMI = """#!/bin/sh
for gpu in 0 1 2 3 4 5 6 7; do echo 'NVIDIA H100 80GB HBM3, 580.95.05, 96.00.74, 81559 MiB, 700.00 W, 1980 MHz'; done
"""
FAKE_MUSTER = f"""#!/bin/sh
{MUSTER} "$@" --simulate {SCENARIO}
code=$?
[ -n "$KEEP_SIMULATED" ] || sed -i 's/"simulated": true/"simulated": false/' "$4/record.json"
exit $code
"""
GTEST = """#!/usr/bin/python3
import json, sys
CASES = {cases!r}
if "--gtest_list_tests" in sys.argv:
    sys.exit(0)
suites = [{{"testsuite": [{{"classname": c.split(".")[0], "name": c.split(".")[1], "result": "COMPLETED",
                            **({{"failures": [{{"failure": f}}]}} if f else {{}})}}]}} for c, f in CASES.items()]
report = [a for a in sys.argv if a.startswith("--gtest_output=json:")][0].split(":", 1)[1]
open(report, "w").write(json.dumps({{"testsuites": suites}}))
sys.exit(any(CASES.values()))
"""
CRASH = """#!/bin/sh
printf '[ RUN      ] Nccl.RunsAsGraphs\\n[       OK ] Nccl.RunsAsGraphs (3 ms)\\n[ RUN      ] Nccl.AddsUpGradients\\n'
kill -SEGV $$
"""


def nvbandwidth(to_device, to_host=51.8, peer=377.0):
    def case(name, rows):
        return {"name": name, "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)",
                "bandwidth_matrix": [[str(cell) for cell in row] for row in rows]}
    square = [["N/A" if i == j else peer for j in range(8)] for i in range(8)]
    text = json.dumps({"nvbandwidth": {"version": "v0.8", "testcases": [
        case("host_to_device_memcpy_ce", [[to_device] * 8]), case("device_to_host_memcpy_ce", [[to_host] * 8]),
        case("device_to_device_memcpy_read_ce", square), {"name": "device_to_device_memcpy_write_ce", "status": "Waived"}]}})
    return f"#!/bin/sh\ncat <<'JSON'\n{text}\nJSON\n"


class Machine:
    """A folder with all that run.py finds on a machine."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.put("path/nvidia-smi", NVIDIA_SMI)
        self.put("dist/bin/muster", FAKE_MUSTER)
        (self.folder / "dist/share").symlink_to(MUSTER.parent.parent / "share")
        self.put("tests/blas-gpu-test", GTEST.format(cases={"Blas.TellsItsFigures": "", "Blas.IsRightInEveryTypeAndShape": ""}))

    def put(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start(self, *arguments, **environment):
        return subprocess.Popen([sys.executable, "-B", HERE / "run.py", "--dist", self.folder / "dist", "--tests", self.folder / "tests",
                                 "--out", self.folder / "out", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "PATH": f"{self.folder}/path:/usr/bin:/bin", **environment})

    def run(self, *arguments, **environment):
        return self.outcome(self.start(*arguments, **environment))

    def outcome(self, process):
        said = process.communicate()[0]
        return Outcome(process.returncode, said, self.folder / "out")


class Outcome:
    def __init__(self, code, said, out):
        self.code, self.said = code, said
        self.document = json.loads(next(out.glob("*.json")).read_text())
        self.page = next(out.glob("*.html")).read_text()
        self.rows = {}
        for verdict in ("confirmed", "refuted", "not-tried"):
            section = re.search(rf'<section id="{verdict}">(.*?)</section>', self.page, re.DOTALL).group(1)
            self.rows[verdict] = [[html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", row)] for row in re.findall(r"<tr><td>.*?</tr>", section)]

    def verdict(self, claim):
        """(verdict, result) of the one claim that begins so."""
        found = [(verdict, row[3]) for verdict, rows in self.rows.items() for row in rows if row[0].startswith(claim)]
        assert len(found) == 1, (claim, found)
        return found[0]


class DayOne(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.machine = Machine(folder.name)

    def test_a_healthy_machine_confirms_what_was_tried_and_says_why_the_rest_was_not(self):
        self.machine.put("path/nvbandwidth", nvbandwidth(50.9))
        run = self.machine.run("--part", "tests", "--part", "plans", "--part", "peers")
        self.assertEqual(run.code, 0, run.said)
        self.assertEqual(run.rows["refuted"], [])
        self.assertEqual(run.verdict("compute.gemm_throughput dtype=bf16 size=8192: at least 617.4 TFLOP/s")[0], "confirmed")
        self.assertEqual(run.verdict("memory.host_to_device_bandwidth engine=copy_engine numa=near: within 5% of nvbandwidth")[0], "confirmed")
        self.assertEqual(run.verdict("memory.peer_bandwidth direction=unidirectional engine=copy_engine: within 5% of nvbandwidth")[0], "confirmed")
        self.assertEqual(run.verdict("the stress test keeps a GPU busy")[0], "confirmed")
        self.assertEqual(run.verdict("peak memory_bandwidth")[0], "confirmed")
        self.assertEqual(run.verdict("env.nvlinks_active: min 18"), ("not-tried", "no plan of this run measured it: node-quick; nccl"))
        self.assertEqual(run.verdict("gemm bf16 8192: at least 0.99"), ("not-tried", "part torch was not run"))
        verdict, result = run.verdict("collective.large_message_bus_bandwidth bytes=8589934592 op=all_reduce placement=in_place: within 5%")
        self.assertEqual((verdict, result), ("not-tried", "all_reduce_perf is not on PATH"))
        verdict, result = run.verdict("our kernels, cuBLASLt")
        self.assertEqual(verdict, "not-tried", "Blas alone does not prove Nccl.*")
        self.assertIn("no case GpuDevice.*, GpuCopies.*, GpuConvolutions.*, GpuAttention.*, Nccl.*: part tests ran without it", result)
        kept = self.machine.folder / "out" / run.document["records"][0]["kept"] / "record.json"
        self.assertTrue(kept.exists())
        self.assertIn("muster baseline learn ", run.page)

    def test_a_refuting_machine(self):
        self.machine.put("path/nvbandwidth", nvbandwidth(63.0))
        self.machine.put("tests/blas-gpu-test", GTEST.format(cases={"Blas.TellsItsFigures": "", "Blas.GivesTheSameBitsEveryTime": "bits <differ>\x1b[31m"}))
        self.machine.put("tests/nccl-gpu-test", CRASH)
        shutil.copy(SCENARIO.parent / "h100x8-healthy.toml", self.machine.folder)  # what the scenario includes
        slow = self.machine.folder / "slow.toml"
        slow.write_text(SCENARIO.read_text() + "".join(
            f'\n[[fault]]\nkind = "slow"\nnode = 0\ndevice = {gpu}\nfactor = 0.8\nops = ["gemm"]\n' for gpu in range(8)))
        self.machine.put("dist/bin/muster", FAKE_MUSTER.replace(str(SCENARIO), str(slow)))
        run = self.machine.run("--part", "tests", "--part", "plans", "--part", "peers")
        self.assertEqual(run.code, 1, run.said)
        verdict, result = run.verdict("compute.gemm_throughput dtype=bf16 size=8192: at least 617.4 TFLOP/s")
        self.assertEqual(verdict, "refuted")
        self.assertIn("8 fail", result)
        verdict, result = run.verdict("memory.host_to_device_bandwidth engine=copy_engine numa=near: within 5% of nvbandwidth")
        self.assertEqual(verdict, "refuted")
        self.assertIn("nvbandwidth 63 GB/s: ratio 0.8", result)
        verdict, result = run.verdict("our kernels, cuBLASLt")
        self.assertEqual(verdict, "refuted")
        self.assertIn("bits <differ>\\u001b[31m", result)
        self.assertIn("Nccl.AddsUpGradients: ended with -11 in this case", result)
        self.assertEqual(run.verdict("nccl-gpu-test passes")[0], "refuted", "what no claim names is on the page all the same")
        self.assertIn({"name": "nccl-gpu-test: Nccl.RunsAsGraphs", "part": "tests", "outcome": "pass", "detail": ""}, run.document["checks"])

    def test_a_simulated_record_confirms_and_refutes_nothing(self):
        self.machine.put("path/nvbandwidth", nvbandwidth(50.9))
        run = self.machine.run("--part", "plans", "--part", "peers", KEEP_SIMULATED="1")
        self.assertEqual(run.code, 3, run.said)
        self.assertIn("SIMULATED: no value here was measured", run.page)
        for verdict in ("confirmed", "refuted"):
            self.assertEqual(run.rows[verdict], [])
        self.assertEqual(run.verdict("peak memory_bandwidth"), ("not-tried", "node-quick; nccl measured nothing that this peak bounds"))
        self.assertEqual(run.verdict("compute.gemm_throughput dtype=bf16")[0], "not-tried")

    def test_a_part_that_crashes_takes_only_its_own_claims_along(self):
        self.machine.put("dist/bin/muster", '#!/bin/sh\nmkdir -p "$4"; echo \'{"schema": 1}\' > "$4/record.json"\n')
        run = self.machine.run("--part", "plans", "--part", "tests")
        self.assertEqual(run.code, 1, run.said)
        self.assertEqual(run.document["parts"]["tests"], "done")
        self.assertIn("crashed: ValueError", run.document["parts"]["plans"])
        self.assertEqual(run.verdict("limits and peaks of the GPU's profile")[0], "not-tried")
        self.assertIn("part plans crashed: ValueError", run.verdict("the stress test keeps a GPU busy")[1])

    def test_a_run_that_is_interrupted_says_what_it_did_not_reach(self):
        self.machine.put("tests/copies-gpu-test", "#!/bin/sh\ntouch $MARK\nexec sleep 600\n")
        mark = self.machine.folder / "mark"
        process = self.machine.start("--part", "tests", "--part", "torch", MARK=str(mark))
        while not mark.exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        run = self.machine.outcome(process)
        self.assertNotEqual(run.code, 0, run.said)
        verdict, result = run.verdict("our kernels, cuBLASLt")
        self.assertEqual(verdict, "not-tried")
        self.assertIn("Nccl.*: part tests was cut off (2 others passed)", result)
        self.assertEqual(run.verdict("gemm bf16 8192: at least 0.99"), ("not-tried", "part torch was not run"))

    def test_without_a_gpu_every_claim_is_there_and_none_was_tried(self):
        self.machine.put("path/nvidia-smi", "#!/bin/sh\nexit 9\n")
        run = self.machine.run()
        self.assertEqual(run.code, 3, run.said)
        self.assertEqual((run.rows["confirmed"], run.rows["refuted"]), ([], []))
        self.assertGreater(len(run.rows["not-tried"]), 40)
        self.assertIn("nvidia-smi names none", run.verdict("gemm bf16 8192: at least 0.99")[1])


if __name__ == "__main__":
    unittest.main()

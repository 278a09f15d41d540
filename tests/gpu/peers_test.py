# SPDX-License-Identifier: Apache-2.0
"""peers.py on output in the forms that nvbandwidth and nccl-tests print, whole, partial and damaged."""
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import peers


def nvbandwidth(*cases, **more):
    return json.dumps({"nvbandwidth": {"version": "v0.8", "Driver Version": "580.95.05", "testcases": list(cases), **more}})


def case(name, *rows, status="Passed", unit="(GB/s)"):
    return {"name": name, "status": status, "bandwidth_matrix": [list(row) for row in rows],
            "bandwidth_description": f"memcpy CE CPU(row) -> GPU(column) bandwidth {unit}"}


def all_reduce(row="  8589934592    4294967296  bfloat16     sum      -1  31463.8  273.01  477.77       0  31386.0  273.69  478.96       0",
               wrong="0 OK"):
    return f"""# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Using devices
#  Rank  0 Group  0 Pid  71 on node device  0 [0x1b] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
{row}
# Out of bounds values : {wrong}
# Avg bus bandwidth    : 478.365
#
"""


class Nvbandwidth(unittest.TestCase):
    def test_reads_matrices_without_a_gpus_way_to_itself(self):
        found = peers.read_nvbandwidth(nvbandwidth(case("h2d", ["55.1", "54.9"]), case("d2d", ["N/A", "391"], ["392", "N/A"]),
                                                   case("old", ["0.00", "276"], ["277", "0.00"])))
        self.assertEqual(found, {"h2d": [55.1e9, 54.9e9], "d2d": [391e9, 392e9], "old": [276e9, 277e9]})

    def test_takes_text_around_its_json(self):
        self.assertEqual(peers.read_nvbandwidth("warning\n" + nvbandwidth(case("h2d", ["1"])) + "\nNOTE\n"), {"h2d": [1e9]})

    def test_says_of_each_case_why_there_is_no_rate(self):
        found = peers.read_nvbandwidth(nvbandwidth(
            case("waived", status="Waived"), {"name": "failed", "status": "Error", "error": "CUDA_ERROR_ILLEGAL_ADDRESS"},
            case("latency", ["1"], unit="(ns)"), case("empty"), case("zero", ["0.00", "5"]), case("nan", ["nan"]), case("text", ["fast"]),
            {"name": "bare", "status": "Passed", "bandwidth_description": "(GB/s)"}))
        self.assertEqual(set(found), {"waived", "failed", "latency", "empty", "zero", "nan", "text", "bare"})
        for name, said in found.items():
            self.assertIsInstance(said, str, name)
        self.assertEqual(found["failed"], "Error CUDA_ERROR_ILLEGAL_ADDRESS")

    def test_refuses_output_without_a_document(self):
        for text in ("", "Segmentation fault", "{", "[1]", '{"nvbandwidth": 7}', '{"other": {}}', nvbandwidth(error="no device")):
            with self.assertRaises(peers.ToolFailed, msg=text):
                peers.read_nvbandwidth(text)

    def test_takes_cases_of_another_form_for_none(self):
        self.assertEqual(peers.read_nvbandwidth(nvbandwidth("text", None, 7)), {})
        self.assertEqual(peers.read_nvbandwidth('{"nvbandwidth": {"testcases": 7}}'), {})


class AllReduce(unittest.TestCase):
    def test_reads_both_bus_bandwidths(self):
        self.assertEqual(peers.read_all_reduce(all_reduce()), {"out of place": [477.77e9], "in place": [478.96e9]})

    def test_finds_columns_by_their_names(self):
        older = all_reduce().replace("   redop    root  ", "   redop  ").replace("  sum      -1  ", "  sum  ").replace("#wrong", "error")
        self.assertEqual(peers.read_all_reduce(older), {"out of place": [477.77e9], "in place": [478.96e9]})

    def test_wrong_values_are_no_measurement(self):
        with self.assertRaisesRegex(peers.WrongValues, "3 wrong values"):
            peers.read_all_reduce(all_reduce(wrong="3 FAILED"))

    def test_refuses_a_table_that_is_not_whole(self):
        for text in ("", all_reduce(row=""), all_reduce(row="  8589934592    4294967296  bfloat16     sum      -1  31463.8"),
                     all_reduce().split("# Out of bounds")[0], all_reduce().replace("busbw", "bw"),
                     all_reduce().replace("477.77", "  0.00"), all_reduce().replace("477.77", "   nan"), all_reduce().replace("477.77", "     x")):
            with self.assertRaises(peers.ToolFailed, msg=text):
                peers.read_all_reduce(text)


class Compare(unittest.TestCase):
    def test_is_two_sided(self):
        peer = peers.PEERS[0]
        for ours, agrees in ((50.0, True), (47.6, True), (52.4, True), (47.0, False), (53.0, False), (float("nan"), False)):
            self.assertEqual(peers.compare(peer, [ours * 1e9], {peer.cases[0]: [50e9]})[0], agrees, ours)

    def test_takes_the_better_of_two_directions_and_says_why_there_is_none(self):
        peer = next(one for one in peers.PEERS if len(one.cases) == 2)
        read, write = peer.cases
        self.assertTrue(peers.compare(peer, [390e9], {read: [300e9], write: [391e9]})[0])
        with self.assertRaisesRegex(peers.ToolFailed, f"{read}: Waived; {write}: not in its output"):
            peers.compare(peer, [390e9], {read: "Waived"})


class RunTool(unittest.TestCase):
    def run_script(self, text):
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder, "nvbandwidth")
            tool.write_text("#!/bin/sh\n" + text)
            tool.chmod(0o755)
            with mock.patch.dict(os.environ, PATH=f"{folder}:/usr/bin:/bin"):
                return peers.run_tool("nvbandwidth", 8)

    def test_asks_for_every_case_in_json(self):
        found = self.run_script("""printf '{"nvbandwidth": {"testcases": [{"name": "%s", "status": "Waived"}]}}' "$*"\n""")
        self.assertEqual(list(found), ["-j -t device_to_device_memcpy_read_ce device_to_device_memcpy_write_ce device_to_host_memcpy_ce host_to_device_memcpy_ce"])

    def test_says_how_it_ended(self):
        with self.assertRaisesRegex(peers.ToolFailed, "nvbandwidth ended with 3: no driver"):
            self.run_script("echo no driver >&2; exit 3\n")
        with mock.patch.dict(os.environ, PATH="/nowhere"), self.assertRaisesRegex(peers.ToolFailed, "not on PATH"):
            peers.run_tool("all_reduce_perf", 8)
        with mock.patch.object(peers, "LIMIT", 0.2), self.assertRaisesRegex(peers.ToolFailed, "did not end within"):
            self.run_script("exec sleep 60\n")


if __name__ == "__main__":
    unittest.main()

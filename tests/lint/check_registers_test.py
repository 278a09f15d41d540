# SPDX-License-Identifier: Apache-2.0
"""Tests of check_registers.py: what ptxas says is read, spills are mistakes unless explained, explanations end."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_registers

SAID = """\
ptxas info    : 8 bytes gmem
ptxas info    : Compiling entry function '_Zfill' for 'sm_{arch}'
ptxas info    : Function properties for _Zfill
    16 bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers, 16 bytes cumulative stack size, 2048 bytes smem, 400 bytes cmem[0]
"""


def uses_of(*texts):
    uses = {}
    for text in texts:
        check_registers.read(text, uses, "kernels/cuda/fill.cu", lambda name: "void a::(anonymous namespace)::fill<float, 2>(b<int>)")
    return uses


def said(arch="80", registers=40, stores=0, loads=0):
    return SAID.format(arch=arch, registers=registers, stores=stores, loads=loads)


class Read(unittest.TestCase):
    def test_takes_what_each_kernel_uses(self):
        use = uses_of(said())[("kernels/cuda/fill.cu", "fill", "80")]
        self.assertEqual((use.registers, use.shared, use.stack, use.spilled, use.instances), (40, 2048, 16, 0, 1))

    def test_takes_the_most_of_a_templates_instances(self):
        use = uses_of(said(registers=20), said(registers=70, stores=4))[("kernels/cuda/fill.cu", "fill", "80")]
        self.assertEqual(str(use), "20-70 +16B SPILLS 4B")

    def test_counts_kernels(self):
        self.assertEqual(check_registers.read("nvcc warning\n", {}, "a.cu", str), 0)
        self.assertEqual(check_registers.read(said(), {}, "a.cu", str), 1)

    def test_knows_names_in_all_forms(self):
        for demangled in ("fill(int)", "void fill<int>(int)", "void m::(anonymous namespace)::fill<a<b>, (c)1>(d*)", "m::fill"):
            self.assertEqual(check_registers.plain_name(demangled), "fill")


class Mistakes(unittest.TestCase):
    def setUp(self):
        self.addCleanup(check_registers.EXPLAINED.clear)

    def test_a_spill_is_one(self):
        for text in (said(stores=4), said(loads=8)):
            found = list(check_registers.spill_mistakes(uses_of(text), complete=True))
            self.assertEqual(len(found), 1)
            self.assertIn("fill spills on sm_80", found[0])

    def test_an_explained_spill_is_none_on_that_gpu(self):
        check_registers.EXPLAINED[("fill", "80")] = "tested"
        self.assertEqual(list(check_registers.spill_mistakes(uses_of(said(stores=4)), complete=True)), [])
        found = list(check_registers.spill_mistakes(uses_of(said(stores=4), said(arch="90a", stores=4)), complete=True))
        self.assertEqual(len(found), 1)
        self.assertIn("sm_90a", found[0])

    def test_an_explanation_without_a_spill_is_one_when_all_was_looked_at(self):
        check_registers.EXPLAINED[("fill", "80")] = "tested"
        self.assertIn("does not spill", next(check_registers.spill_mistakes(uses_of(said()), complete=True)))
        self.assertEqual(list(check_registers.spill_mistakes(uses_of(said()), complete=False)), [])


class Table(unittest.TestCase):
    def test_has_a_column_for_each_gpu_in_order(self):
        rows = list(check_registers.table(uses_of(said(arch="100"), said(arch="90a"), said(arch="75", registers=8))))
        self.assertIn("| sm_75 | sm_90a | sm_100 |", rows[0])
        self.assertEqual(rows[2], "| fill.cu: fill | 1 | 2048 B | 8 +16B | 40 +16B | 40 +16B |")


if __name__ == "__main__":
    unittest.main()

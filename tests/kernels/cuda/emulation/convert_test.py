# SPDX-License-Identifier: Apache-2.0
"""Tests of convert.py: launches in every form that our sources have, lines that keep their place, and refusals."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import convert

SCRIPT = pathlib.Path(__file__).parent / "convert.py"


class Convert(unittest.TestCase):
    def test_leaves_what_is_no_launch(self):
        text = "int a = b << 3;\nbool c = d > e;\nauto f = x->y;\n"
        self.assertEqual(convert.convert(text), text)

    def test_converts_a_launch(self):
        self.assertEqual(
            convert.convert("fill<<<blocks, 256, 0, stream>>>(data, f(1, 2));"),
            "::muster::emulation::launch({blocks, 256, 0, stream}, "
            "[](const auto&... a) { fill(a...); }, data, f(1, 2));",
        )

    def test_takes_template_arguments_along(self):
        text = "norm<T, decltype(p->w)::value>\n    <<<dim3(a, b), dim3(c), 0, s.stream>>>(x);\nnext();"
        made = convert.convert(text)
        self.assertIn("{ norm<T, decltype(p->w)::value>(a...); }", made)
        self.assertIn("{dim3(a, b), dim3(c), 0, s.stream}", made)
        self.assertEqual(made.split("\n")[2], "next();")

    def test_converts_several_and_ones_without_arguments(self):
        made = convert.convert("a<<<1, 1, 0, s>>>();\nb<<<1, 1, 0, s>>>(q);")
        self.assertEqual(made.count("launch("), 2)
        self.assertIn("{ a(a...); })", made)

    def test_replaces_known_assembly_only(self):
        self.assertIn("emulation::nanoseconds()", convert.convert('asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));'))
        with self.assertRaisesRegex(convert.Mistake, "^2: assembly that"):
            convert.convert('int a;\nasm("trap;");')

    def test_refuses_what_is_no_launch_of_ours(self):
        with self.assertRaisesRegex(convert.Mistake, "^1: a launch with 2 settings"):
            convert.convert("a<<<1, 1>>>(x);")
        with self.assertRaisesRegex(convert.Mistake, "^2: found <<<"):
            convert.convert("\na<<<1, 1, 0, s>>>;")
        with self.assertRaisesRegex(convert.Mistake, "a bracket that nothing closes"):
            convert.convert("a<<<1, 1, 0, s>>>(x;")


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "k").mkdir()
        (self.root / "k/inner.cuh").write_text("#pragma once\nint inner;\n")
        (self.root / "k/outer.cuh").write_text('#pragma once\n#include "k/inner.cuh"\nint outer;\n')

    def run_on(self, text):
        (self.root / "k/a.cu").write_text(text)
        return subprocess.run(
            [sys.executable, "-B", SCRIPT, self.root, self.root / "k/a.cu", self.root / "a.cpp", self.root / "a.d"],
            capture_output=True, text=True, check=False)

    def test_puts_headers_in_place_once_with_their_lines(self):
        ran = self.run_on('#include "k/outer.cuh"\n#include "k/inner.cuh"\n#include <x.h>\nint own;\n')
        self.assertEqual(ran.returncode, 0, ran.stderr)
        made = (self.root / "a.cpp").read_text()
        self.assertEqual([made.count(f"int {name};") for name in ("inner", "outer", "own")], [1, 1, 1])
        self.assertLess(made.index("int inner;"), made.index("int outer;"))
        self.assertNotIn("#pragma once", made)
        lines = made.split("\n")
        mark = max(i for i, line in enumerate(lines) if line == '#line 3 "k/a.cu"')
        self.assertEqual(lines[mark + 2], "int own;")
        self.assertIn("k/inner.cuh", (self.root / "a.d").read_text())

    def test_names_the_place_of_a_mistake(self):
        ran = self.run_on("int a;\nb<<<1>>>(x);\n")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("k/a.cu:2: a launch with 1 settings", ran.stderr)
        self.assertFalse((self.root / "a.cpp").exists())


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Tests of list.py on small trees."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import list as header_list

HEADER = "// A header.\n#pragma once\n"


class ListTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.put("runner/core/a.h", HEADER)
        self.put("runner/core/meson.build", "library('a', 'a.cpp')\n")

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_header_that_its_source_includes_first_is_proven(self):
        self.put("runner/core/a.cpp", '// Source.\n#include "runner/core/a.h"\n#include <string>\n')
        self.assertEqual(header_list.lonely(self.root), [])

    def test_a_source_that_includes_something_before_proves_nothing(self):
        self.put("runner/core/a.cpp", '#include <string>\n#include "runner/core/a.h"\n')
        self.assertEqual(header_list.lonely(self.root), ["runner/core/a.h"])

    def test_a_source_that_is_not_built_proves_nothing(self):
        self.put("runner/core/a.cpp", '#include "runner/core/a.h"\n')
        self.put("runner/core/meson.build", "library('a', 'b.cpp')\n")
        self.assertEqual(header_list.lonely(self.root), ["runner/core/a.h"])

    def test_a_folder_above_may_build_the_source(self):
        self.put("runner/core/a.cpp", '#include "runner/core/a.h"\n')
        self.put("runner/core/meson.build", "")
        self.put("runner/meson.build", "library('a', 'core/a.cpp')\n")
        self.assertEqual(header_list.lonely(self.root), [])

    def test_a_header_without_a_source_has_to_be_compiled(self):
        self.assertEqual(header_list.lonely(self.root), ["runner/core/a.h"])

    def test_headers_of_the_cuda_backend_are_left_out(self):
        self.put("kernels/cuda/x.h", HEADER)
        self.assertEqual(header_list.lonely(self.root), ["runner/core/a.h"])

    def test_another_list_than_the_configured_one_fails(self):
        self.assertEqual(header_list.main([str(self.root), "--same", "runner/core/a.h"]), 0)
        self.assertEqual(header_list.main([str(self.root), "--same"]), 1)
        self.assertEqual(header_list.main([str(self.root), "--same", "runner/core/a.h", "runner/core/b.h"]), 1)

    def test_a_header_that_cannot_be_included_twice_fails(self):
        self.put("runner/core/a.h", "struct A {};\n")
        self.assertEqual(header_list.main([str(self.root), "--same", "runner/core/a.h"]), 1)


if __name__ == "__main__":
    unittest.main()

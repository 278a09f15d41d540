# SPDX-License-Identifier: Apache-2.0
"""Tests check_licences.py with good and bad heads of files."""
import unittest

import check_licences

LINE = "SPDX-License-Identifier: Apache-2.0"


class CheckLicences(unittest.TestCase):
    def test_a_licence_and_a_purpose_pass(self):
        self.assertIsNone(check_licences.mistake(f"// {LINE}\n// Units.\n#pragma once\n"))
        self.assertIsNone(check_licences.mistake(f"#!/bin/sh\n# {LINE}\n# Runs it.\n"))

    def test_each_bad_head_is_found(self):
        for text in ("", "// Units.\n", f"a\nb\nc\n// {LINE}\n// late\n", f"// {LINE}\n", f"// {LINE}\n\nint main() {{}}\n",
                     "// SPDX-License-Identifier: MIT\n// Units.\n"):
            self.assertIsNotNone(check_licences.mistake(text), text)


if __name__ == "__main__":
    unittest.main()

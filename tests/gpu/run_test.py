# SPDX-License-Identifier: Apache-2.0
"""What run.py makes of racecheck's output, as compute-sanitizer 2025.3 printed it on an H200."""
import unittest

import results
import run

END = "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"
QUIET_END = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
OURS = """========= Error: Race reported between Write access at muster::cuda::<unnamed>::racy(int *, int)+0xa0
=========     and Read access at muster::cuda::<unnamed>::racy(int *, int)+0xb0 [256 hazards]
"""
THEIRS = """========= Error: Race reported between Write access at sm90_xmma_dgrad_implicit_gemm_5x_cudnn+0x7dd0
=========     and Read access at sm90_xmma_dgrad_implicit_gemm_5x_cudnn+0x9fc0 [8 hazards]
"""


class RacesFound(unittest.TestCase):
    def test_a_race_in_our_kernel_is_named_among_those_of_others(self):
        self.assertEqual(run.races_found(THEIRS + OURS + THEIRS + END), (results.FAIL, "races in muster::cuda::<unnamed>::racy"))

    def test_races_of_others_alone_are_counted(self):
        self.assertEqual(run.races_found(THEIRS + END), (results.PASS, "none in our kernels; reported in 1 of NVIDIA's"))

    def test_silence_passes_only_at_the_end(self):
        self.assertEqual(run.races_found(QUIET_END), (results.PASS, "none"))
        self.assertEqual(run.races_found("========= COMPUTE-SANITIZER\n")[0], results.FAIL)

    def test_a_race_of_which_no_kernel_is_read_fails(self):
        self.assertEqual(run.races_found(END)[0], results.FAIL)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Tests check_includes.py with includes that the dependency graph allows and with ones that it forbids."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_includes

GOOD = [
    ("runner/core/units.cpp", '#include "runner/core/units.h"\n#include <fmt/format.h>'),
    ("runner/core/toml/toml_document.cpp", "#include <toml++/toml.h>"),
    ("runner/app/node/outputs.cpp", '#include "runner/judge/judge.h"\n#include "reports/html/html.h"'),
    ("runner/app/cli.cpp", '#include "runner/app/prepare/prepare_options.h"\n#include <CLI/CLI.hpp>'),
    ("kernels/cuda/dnn/nn.cpp", '#include "kernels/cuda/dnn/ops/op.h"'),
    ("runner/host/host.cpp", '#include "plugins/abi/muster_plugin.h"'),
    ("plugins/compute/gemm.cpp", '#include "kernels/interfaces/ops.h"\n#include "plugins/sdk/plugin.h"'),
    ("plugins/abi/example/example.c", '#include "plugins/abi/muster_plugin.h"'),
    ("kernels/loading/loader.cpp", '#include "kernels/interfaces/backend.h"'),
    ("kernels/host/gemm.cpp", '#include "kernels/interfaces/ops.h"\n#include <oneapi/dnnl/dnnl.hpp>\n#include <cblas.h>'),
    ("kernels/host/inventory/cpu.cpp", '#include "kernels/host/inventory/cpu.h"\n#include <hwloc.h>'),
    ("reports/html/page.cpp", '#include "runner/record/record.h"'),
    ("runner/judge/judge.cpp", '#include "runner/metrics/verdict.h"\n#include <cmath>'),
    ("runner/app/main.cpp", 'printText("{}\\n", node); fmt::print(stderr, "x");'),
]
BAD = [
    ("runner/app/main.cpp", 'fmt::print("{}\\n", node);'),
    ("runner/core/units.cpp", '#include "runner/plan/plan.h"'),
    ("runner/plan/plan.cpp", '#include "runner/sku/profile.h"'),
    ("runner/app/main.cpp", '#include "plugins/sdk/plugin.h"'),
    ("runner/app/main.cpp", '#include "kernels/interfaces/device.h"'),
    ("runner/dispatch/launch.cpp", "#include <cuda_runtime.h>"),
    ("runner/host/host.cpp", '#include "runner/plan/plan.h"'),
    ("runner/judge/judge.cpp", '  #  include <fstream>'),
    ("runner/judge/judge.cpp", '#include "runner/system/files.h"'),
    ("plugins/compute/gemm.cpp", '#include "kernels/host/gemm.h"'),
    ("plugins/compute/gemm.cpp", '#include "plugins/memory/copy.h"'),
    ("plugins/compute/gemm.cpp", "#include <dnnl.hpp>"),
    ("plugins/abi/muster_plugin.h", '#include "runner/core/json.h"'),
    ("kernels/host/gemm.cpp", '#include "kernels/sim/scenario/scenario.h"'),
    ("kernels/interfaces/ops.cpp", '#include "kernels/host/gemm.h"'),
    ("kernels/sim/device.cpp", '#include "plugins/sdk/plugin.h"'),
    ("runner/cluster/cluster_link.cpp", '#include "runner/app/node/node_run.h"'),
    ("runner/record/record_json.cpp", '#include "reports/html/page.h"'),
    ("reports/junit/junit.cpp", '#include "reports/html/page.h"'),
]


class CheckIncludes(unittest.TestCase):
    def test_good_samples_pass(self):
        for path, text in GOOD:
            self.assertEqual(list(check_includes.mistakes(path, text)), [], path)

    def test_bad_samples_are_each_found(self):
        for path, text in BAD:
            self.assertEqual(len(list(check_includes.mistakes(path, text))), 1, f"{path}: {text}")

    def test_a_mistake_says_where_and_what_is_allowed(self):
        line, what = next(check_includes.mistakes("runner/sku/a.cpp", '// first\n#include "runner/plan/plan.h"\n'))
        self.assertEqual(line, 2)
        self.assertIn("runner/sku may include its own folder, runner/core", what)

    def run_on(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([sys.executable, check_includes.__file__, root], capture_output=True, text=True)

    def test_the_program_fails_on_a_mistake(self):
        done = self.run_on({"runner/core/a.cpp": '#include "runner/app/main.h"\n'})
        self.assertEqual(done.returncode, 1)
        self.assertIn("runner/core/a.cpp:1: ", done.stdout)

    def test_a_folder_without_a_rule_is_a_mistake(self):
        done = self.run_on({"runner/novel/a.cpp": "\n", "runner/core/a.cpp": "\n"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("runner/novel/a.cpp: no rule", done.stdout)

    def test_an_empty_root_is_a_mistake(self):
        self.assertEqual(self.run_on({}).returncode, 1)


if __name__ == "__main__":
    unittest.main()

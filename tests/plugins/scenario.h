// SPDX-License-Identifier: Apache-2.0
// A small scenario with planted faults for tests of the plugins.
#pragma once

#include <string>

#include "tests/support/process.h"

namespace muster::testing {

/// Two devices of 700 TFLOP/s in bf16 and 3 TB/s, with `faults` ([[fault]] tables) planted.
inline std::string scenarioText(const std::string& faults) {
  return R"(schema = 1
name = "two"
[devices]
count = 2
name = "Test GPU"
pci_id = "10de:0001"
memory = "80 GB"
last_level_cache = "50 MiB"
[figures.gemm]
bf16 = "700 TFLOP/s"
[figures.memory]
read = "3 TB/s"
write = "3 TB/s"
copy = "3 TB/s"
triad = "3 TB/s"
)" + faults;
}

/// Every `every`-th result of `op` on device 0 has a flipped bit.
inline std::string corruption(const std::string& op, int every, int offset, int bit) {
  return "[[fault]]\nkind = \"corruption\"\ndevice = 0\nops = [\"" + op +
         "\"]\nevery = " + std::to_string(every) + "\noffset = " + std::to_string(offset) +
         "\nbit = " + std::to_string(bit) + "\n";
}

}  // namespace muster::testing

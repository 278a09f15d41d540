// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: the first byte chooses the language, the rest is the plan.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/plan_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string problem =
      data[0] % 2 == 0 ? muster::testing::checkTomlPlan(text) : muster::testing::checkLuaPlanHere(text);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}

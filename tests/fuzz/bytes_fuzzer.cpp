// SPDX-License-Identifier: Apache-2.0
// libFuzzer target of one of targets.h: the one that MUSTER_FUZZ_TARGET names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/targets.h"

namespace {

muster::testing::InputCheck chosenCheck() {
  const char* name = std::getenv("MUSTER_FUZZ_TARGET");
  std::string known;
  for (const auto& target : muster::testing::targets()) {
    if (name != nullptr && std::strcmp(target.name, name) == 0) return target.check;
    known += std::string(" ") + target.name;
  }
  std::fprintf(stderr, "set MUSTER_FUZZ_TARGET to one of:%s\n", known.c_str());
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const muster::testing::InputCheck kCheck = chosenCheck();
  const std::string problem = kCheck(std::string(reinterpret_cast<const char*>(data), size));
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}

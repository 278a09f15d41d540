// SPDX-License-Identifier: Apache-2.0
// The command line of ring-bench.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace muster::ring::testing {

struct Options {
  uint64_t seed = 1;
  int trials = 0;  ///< 0: by the number of nodes
  std::vector<int> nodes = {8, 9, 64, 232, 1023, 4096};
  bool harder = false;

  [[nodiscard]] int trialsOf(int count) const {
    return trials > 0 ? trials : count <= 256 ? 1000 : count <= 1024 ? 300 : 100;
  }
};

/// Reads the command line; the exit code where there is nothing to run.
std::optional<int> parse(int argc, char** argv, Options& options);

}  // namespace muster::ring::testing

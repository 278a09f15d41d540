// SPDX-License-Identifier: Apache-2.0
// Fleets of any size out of the records of a few simulated nodes: each copy under a node name of its own and
// of the same length, so that it is as long as what `muster run --simulate` writes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::testing {

class CopiedFleet {
 public:
  /// Records of simulated nodes; an error for those of others.
  static Result<CopiedFleet> from(const std::vector<std::string>& records);

  /// "sim-node-0042".
  static std::string nodeName(size_t i);
  /// Writes the record of node `i` into `out`.
  void make(size_t i, std::string& out) const;
  /// Writes `count` records into `folder`, each in a folder of its node's name.
  Status write(const std::filesystem::path& folder, size_t count) const;

 private:
  /// A simulated record, and where the name of its node stands.
  struct Base {
    std::string text;
    std::vector<size_t> places;
  };
  std::vector<Base> bases_;
};

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Fleets of any size out of the records of a few simulated nodes: each copy under a node name of its own,
// with parts and a run of its own, all of the same length, so that it is as long as what `muster run
// --simulate` writes.
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
  /// What each copy has of its own.
  enum class Own { kName, kRun, kPart };
  struct Place {
    Own own;
    size_t device;
    size_t at;
    size_t size;
  };
  /// A simulated record, and where in its text stands what each copy has of its own.
  struct Base {
    std::string text;
    double started = 0;
    std::vector<Place> places;

    void find(Own own, size_t device, const std::string& value);
  };
  std::vector<Base> bases_;
};

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Fleets of 300 nodes in racks of 10 with known faults on some of them.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/reports/fleet/fleet_folder.h"

namespace muster::testing {

/// One fault of each kind that scenarios know, in the record of one node.
struct FaultKind {
  const char* name;
  fleet::Urgency urgency;
  bool device;  ///< a device is at fault
  bool limit;   ///< a limit with a source was missed
  void (*plant)(Record&, const std::string& gpu);
};
const std::vector<FaultKind>& faultKinds();

/// Each fault by its node, with the GPU that it is on.
using Faults = std::map<int, std::pair<const FaultKind*, std::string>>;

class FaultyFleet {
 public:
  explicit FaultyFleet(unsigned seed);

  static std::string nameOf(int node);
  static std::string placeOf(int node);
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  /// A node without a fault yet.
  int pick();
  /// One or two faults of each kind.
  Faults someOfEachKind();
  fleet::Fleet assess(const Faults& faults, const std::set<int>& absent);
  [[nodiscard]] const fleet::FleetRecords& records() const { return folder_.records(); }

 private:
  std::mt19937 random_;
  std::set<int> faulty_;
  fleet::FleetOptions options_;
  FleetFolder folder_;
};

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Small simulated fleets with planted faults, run and judged by the installed `muster`.
#pragma once

#include <string>
#include <vector>

#include "tests/e2e/muster.h"

namespace muster::testing {

/// A plan of three short stages: memory, GPU pairs (one direction), one product.
extern const char* const kFleetPlan;

/// A fault of a scenario: its lines.
std::string slowFault(const std::string& where, double factor, const std::string& ops = "\"gemm\"");

/// The same on all devices; `node` is a line, or empty for every node.
std::string slowNode(const std::string& node, double factor);

/// A folder with a fleet in it.
class FleetRun {
 public:
  /// Simulates `nodes` nodes of 8 H100 with these faults into run/; returns what `muster run` said.
  ProcessResult simulate(int nodes, const std::string& faults, const std::vector<std::string>& more = {},
                         const std::string& folder = "run");
  /// `muster fleet` over run/ with sim-node-0000 and so on expected.
  ProcessResult judge(int nodes, const std::vector<std::string>& more = {});
  /// The same with this file of expected nodes.
  ProcessResult judge(const std::string& expected, const std::vector<std::string>& more = {});
  /// fleet.json of the last judge().
  Json json();
  /// Its suspects of one kind, each as "node what".
  std::vector<std::string> suspects(const std::string& kind);
  std::filesystem::path write(const std::string& name, const std::string& text) {
    return folder_.write(name, text);
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path(); }

 private:
  TempDir folder_;
};

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Who was which node of a run, and whose its ranks were: as all of them took it down when they met, and not
// as each record says of itself alone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reports/fleet/read/node_summary.h"

namespace muster::fleet {

/// A stage of several nodes, in one run of it.
using StageOfRun = std::pair<std::string, uint32_t>;

class Roster {
 public:
  /// Who met in a stage. What counts is what most say of all that say something of it, and two at least.
  struct Meeting {
    std::set<std::string> speakers;    ///< whose records name nodes, at least themselves
    std::map<int, std::string> nodes;  ///< by number
    std::set<std::string> named;       ///< whom any of them names
    /// By the first rank of a node: the one after its last, and its name.
    std::map<int, std::pair<int64_t, std::string>> ranks;
  };

  explicit Roster(const FleetNames& names) : fleetNames_(names) {}

  /// Takes down what a record says of a stage in which it met others.
  void hear(const StageOfRun& stage, const NodeSummary& record, const StageSummary& said);
  /// Decides, after the last word.
  void settle();

  [[nodiscard]] const std::map<StageOfRun, Meeting>& meetings() const { return meetings_; }
  /// Who had the number, as most in the run say; empty: they do not, or its meetings differ.
  [[nodiscard]] std::string nodeOf(const std::string& run, int number) const;
  /// What most in the run say instead of that the node had this number; empty: nothing.
  [[nodiscard]] std::string contradicts(const std::string& run, const std::string& node, int number) const;
  /// Whether another's record of the run names the node.
  [[nodiscard]] bool knows(const std::string& run, const std::string& node) const;
  /// Whose rank it was; empty: most do not say so.
  [[nodiscard]] std::string ownerOf(const StageOfRun& stage, int rank) const;

 private:
  using Word = std::tuple<int, uint64_t, uint32_t>;  ///< about which number, what, and who says so
  struct Words {
    std::vector<Word> nodes, ranks;
  };

  uint32_t idOf(const std::string& node);

  const FleetNames& fleetNames_;
  std::map<std::string, uint32_t> ids_;
  std::vector<std::string> names_;  ///< by id
  std::map<StageOfRun, Words> words_;
  std::map<StageOfRun, Meeting> meetings_;
  std::map<std::string, std::set<std::string>> known_;  ///< by run, whom others name
  /// By run and number, and by run and node: several where its meetings differ.
  std::map<std::string, std::map<int, std::set<std::string>>> nodes_;
  std::map<std::string, std::map<std::string, std::set<int>>> numbers_;
};

}  // namespace muster::fleet

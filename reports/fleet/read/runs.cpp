// SPDX-License-Identifier: Apache-2.0
// See runs.h.
#include "reports/fleet/read/runs.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>

namespace muster::fleet {
namespace {

/// Records by the groups that they met in: a group's id stands for the run until another one proves to be of
/// it.
class Runs {
 public:
  explicit Runs(const FleetRecords& records) : records_(records) {
    for (const NodeSummary& record : records.nodes) join(record);
    for (const NodeSummary& record : records.nodes) {
      if (const uint32_t run = of(record); run != kNone) {
        nodes_[record.fleetId][run].insert(record.nodeRank);
        counts_[run].insert(record.nodeCount);
      }
    }
  }

  [[nodiscard]] std::string name(const NodeSummary& record) {
    uint32_t run = of(record);
    if (run == kNone) run = likely(record);
    return run == kNone ? "" : records_.names->texts[run];
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  [[nodiscard]] bool isGroup(uint32_t id) const { return !records_.names->texts[id].empty(); }

  uint32_t first(uint32_t id) {
    while (first_.try_emplace(id, id).first->second != id) id = first_[id];
    return id;
  }
  uint32_t of(const NodeSummary& record) {
    for (const StageSummary& stage : record.stages)
      if (isGroup(stage.groupId)) return first(stage.groupId);
    return kNone;
  }
  void join(const NodeSummary& record) {
    for (const StageSummary& stage : record.stages)
      if (isGroup(stage.groupId)) first_[first(stage.groupId)] = of(record);
  }
  [[nodiscard]] uint32_t likely(const NodeSummary& record) const {
    const auto at = nodes_.find(record.fleetId);
    if (record.nodeCount <= 1 || at == nodes_.end()) return kNone;
    std::vector<uint32_t> runs;
    for (const auto& [run, nodes] : at->second) runs.push_back(run);
    const auto hasCount = [&](uint32_t run) { return counts_.at(run).contains(record.nodeCount); };
    if (std::any_of(runs.begin(), runs.end(), hasCount)) std::erase_if(runs, std::not_fn(hasCount));
    std::erase_if(runs, [&](uint32_t run) { return at->second.at(run).contains(record.nodeRank); });
    return runs.size() == 1 ? runs.front() : kNone;
  }

  const FleetRecords& records_;
  std::map<uint32_t, uint32_t> first_;  ///< of groups, by their number in FleetNames::texts
  std::map<std::string, std::map<uint32_t, std::set<int>>> nodes_;  ///< their numbers by fleet id and run
  std::map<uint32_t, std::set<int>> counts_;  ///< how many nodes a run had, as its nodes say
};

}  // namespace

std::vector<std::string> runsOf(const FleetRecords& records) {
  Runs runs(records);
  std::vector<std::string> names;
  names.reserve(records.nodes.size());
  for (const NodeSummary& record : records.nodes) names.push_back(runs.name(record));
  return names;
}

}  // namespace muster::fleet

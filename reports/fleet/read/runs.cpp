// SPDX-License-Identifier: Apache-2.0
// See runs.h.
#include "reports/fleet/read/runs.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace muster::fleet {
namespace {

/// Records by the groups that they met in: a group's id stands for the run until another one proves to be of
/// it.
class Runs {
 public:
  Runs(const FleetRecords& records, const std::set<std::string>& expected) : records_(records) {
    std::map<std::pair<uint32_t, uint32_t>, std::set<std::string>> bridges;  // two groups, the nodes in both
    for (const NodeSummary& record : records.nodes) {
      const std::vector<uint32_t> ids = groupsOf(record);
      for (const uint32_t id : ids) members_[first(id)].emplace(record.node, record.nodeRank);
      for (size_t i = 1; i < ids.size(); ++i)
        if (expected.empty() || expected.contains(record.node))
          bridges[std::minmax(ids[i - 1], ids[i])].insert(record.node);
    }
    for (const auto& [groups, nodes] : bridges)
      if (nodes.size() > 1) join(groups.first, groups.second);
    for (const NodeSummary& record : records.nodes) {
      if (const uint32_t run = of(record); run != kNone) {
        nodes_[record.fleetId][run].insert(record.nodeRank);
        ++counts_[run][record.nodeCount];
        for (const StageSummary& stage : record.stages)
          for (const NodeAround& around : stage.around) met_[run][around.number].insert(around.node);
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

  [[nodiscard]] std::vector<uint32_t> groupsOf(const NodeSummary& record) const {
    std::vector<uint32_t> ids;
    for (const StageSummary& stage : record.stages)
      if (stage.scope == Scope::kCluster && !records_.names->texts[stage.groupId].empty() &&
          (ids.empty() || ids.back() != stage.groupId))
        ids.push_back(stage.groupId);
    return ids;
  }

  uint32_t first(uint32_t id) {
    while (first_.try_emplace(id, id).first->second != id) id = first_[id];
    return id;
  }
  /// Of the runs whose groups it names, the one with most nodes.
  uint32_t of(const NodeSummary& record) {
    uint32_t most = kNone;
    for (const uint32_t id : groupsOf(record))
      if (const uint32_t run = first(id); most == kNone || members_.at(run).size() > members_.at(most).size())
        most = run;
    return most;
  }
  void join(uint32_t a, uint32_t b) {
    const uint32_t into = first(a), from = first(b);
    if (from == into) return;
    first_[from] = into;
    members_[into].merge(members_[from]);
  }
  /// Nodes whose records name the run's groups.
  [[nodiscard]] size_t tellers(uint32_t run) const {
    std::set<std::string> names;
    for (const auto& [node, number] : members_.at(run)) names.insert(node);
    return names.size();
  }
  /// By most of its records.
  [[nodiscard]] bool hadNodes(uint32_t run, int count) const {
    size_t all = 0, own = 0;
    for (const auto& [nodes, records] : counts_.at(run)) {
      all += records;
      own += nodes == count ? records : 0;
    }
    return 2 * own >= all;
  }
  /// Whether those who met took down other names for the number of the record, and not its own.
  [[nodiscard]] bool isOfAnother(uint32_t run, const NodeSummary& record) const {
    const auto numbers = met_.find(run);
    if (numbers == met_.end()) return false;
    const auto names = numbers->second.find(record.nodeRank);
    return names != numbers->second.end() &&
           std::none_of(names->second.begin(), names->second.end(),
                        [&](uint32_t name) { return records_.names->texts[name] == record.node; });
  }
  [[nodiscard]] uint32_t likely(const NodeSummary& record) const {
    const auto at = nodes_.find(record.fleetId);
    if (record.nodeCount <= 1 || at == nodes_.end()) return kNone;
    std::vector<uint32_t> runs;
    for (const auto& [run, nodes] : at->second) runs.push_back(run);
    std::erase_if(runs, [&](uint32_t run) {
      // One of several nodes that a single node tells may be its invention.
      return (record.nodeCount > 2 && tellers(run) < 2) || !hadNodes(run, record.nodeCount) ||
             at->second.at(run).contains(record.nodeRank) || isOfAnother(run, record);
    });
    return runs.size() == 1 ? runs.front() : kNone;
  }

  const FleetRecords& records_;
  std::map<uint32_t, uint32_t> first_;  ///< of groups, by their number in FleetNames::texts
  std::map<uint32_t, std::set<std::pair<std::string, int>>> members_;  ///< nodes of a run, with their numbers
  std::map<std::string, std::map<uint32_t, std::set<int>>> nodes_;     ///< their numbers by fleet id and run
  std::map<uint32_t, std::map<int, size_t>> counts_;  ///< how many nodes a run had, as so many records say
  std::map<uint32_t, std::map<int, std::set<uint32_t>>> met_;  ///< by run and number, the names taken down
};

}  // namespace

std::vector<std::string> runsOf(const FleetRecords& records, const std::set<std::string>& expected) {
  Runs runs(records, expected);
  std::vector<std::string> names;
  names.reserve(records.nodes.size());
  for (const NodeSummary& record : records.nodes) names.push_back(runs.name(record));
  return names;
}

}  // namespace muster::fleet

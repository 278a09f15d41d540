// SPDX-License-Identifier: Apache-2.0
// Reads sweeps over the number of nodes, and makes their stages.
#include "runner/plan/node_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/plan/cases.h"

namespace muster {
namespace {

constexpr int kAll = 0;
constexpr int kMostNodes = 65536;
constexpr size_t kMostGroups = 32;
constexpr const char* kWanted = "numbers of nodes in rising order, and then \"all\": [1, 2, 4, \"all\"]";

/// An entry of `nodes`; nothing where it is none.
std::optional<int> numberIn(const Json& entry) {
  if (entry == "all") return kAll;
  if (!entry.is_number_integer()) return std::nullopt;
  const auto number = entry.get<int64_t>();
  return number >= 1 && number <= kMostNodes ? std::optional(static_cast<int>(number)) : std::nullopt;
}

/// Whether each comes after a smaller one; "all" is the largest.
bool rises(const std::vector<int>& sweep) {
  for (size_t i = 1; i < sweep.size(); ++i)
    if (sweep[i - 1] == kAll || (sweep[i] != kAll && sweep[i] <= sweep[i - 1])) return false;
  return true;
}

std::string groupName(const std::string& stage, int nodes) {
  return fmt::format("{}-nodes-{}", stage, nodes == kAll ? "all" : std::to_string(nodes));
}

std::vector<std::string> namesOf(const Stage& stage) {
  std::vector<std::string> names;
  for (const int nodes : stage.sweep) names.push_back(groupName(stage.name, nodes));
  return names;
}

/// One stage of a sweep.
Stage groupStage(const Stage& written, int nodes) {
  Stage stage = written;
  stage.name = groupName(written.name, nodes);
  stage.nodes = nodes;
  for (Case& c : stage.cases) c.id.replace(0, written.name.size(), stage.name);
  return stage;
}

}  // namespace

void readSweep(TableReader& table, Stage& stage) {
  table.describe("nodes", [] {
    Json list = schema::list(schema::anyOf({schema::whole({1, kMostNodes}), {{"const", "all"}}}));
    list["uniqueItems"] = true;
    list["maxItems"] = kMostGroups;
    return list;
  }());
  const Json* nodes = table.list("nodes", "a list of " + std::string(kWanted));
  if (nodes == nullptr) return;
  if (nodes->empty() || nodes->size() > kMostGroups)
    return table.fail("nodes", fmt::format("found {} numbers; expected 1 to {}", nodes->size(), kMostGroups));
  if (stage.scope != Scope::kCluster)
    return table.fail("nodes",
                      fmt::format("found a stage of scope {}; expected scope = \"cluster\", whose group "
                                  "spans nodes",
                                  nameOf(stage.scope)));
  std::vector<int> sweep;
  for (const Json& entry : *nodes) {
    const auto number = numberIn(entry);
    if (!number) return table.fail("nodes", Mistake::value(shown(entry), kWanted));
    sweep.push_back(*number);
  }
  if (!rises(sweep)) return table.fail("nodes", fmt::format("expected {}", kWanted));
  stage.sweep = std::move(sweep);
}

std::vector<std::string> sweepNames(const std::string& stage, const Json& nodes) {
  std::vector<std::string> names;
  if (!isPlainName(stage) || (nodes.is_array() && nodes.size() > kMostGroups)) return {};
  for (const int number : sweepOf(nodes)) names.push_back(groupName(stage, number));
  return names.empty() ? std::vector<std::string>{stage} : names;
}

std::vector<int> sweepOf(const Json& nodes) {
  std::vector<int> sweep;
  if (nodes.is_array() && nodes.size() <= kMostGroups)
    for (const Json& entry : nodes)
      if (const auto number = numberIn(entry)) sweep.push_back(*number);
  return sweep;
}

void checkSweeps(const PlanDocument& document, const std::vector<Stage>& stages,
                 const std::vector<std::string>& pointers, size_t mostStages, Diagnostics& diagnostics) {
  std::set<std::string> taken;
  for (const Stage& stage : stages) taken.insert(stage.name);
  size_t count = 0, cases = 0;
  for (size_t i = 0; i < stages.size() && !diagnostics.full(); ++i) {
    const size_t groups = std::max<size_t>(1, stages[i].sweep.size());
    count += groups;
    cases += groups * stages[i].cases.size();
    const auto fail = [&](const std::string& message) {
      diagnostics.error(document.at(pointerTo(pointers[i], "nodes")),
                        fmt::format("stage \"{}\": nodes: {}", stages[i].name, message));
    };
    for (const std::string& name : namesOf(stages[i])) {
      if (!isPlainName(name))
        fail(fmt::format("it makes a stage \"{}\", whose name is too long; shorten the stage's name", name));
      else if (!taken.insert(name).second)
        fail(fmt::format("it makes a stage \"{}\", but the plan has one of this name; rename one of them",
                         name));
    }
  }
  if (count > mostStages || cases > CaseBudget{}.cases)
    diagnostics.error(
        document.at("/stage"),
        fmt::format("the lists of nodes make {} stages with {} cases; expected at most {} and {}", count,
                    cases, mostStages, CaseBudget{}.cases));
}

std::vector<Stage> withSweeps(const std::vector<Stage>& written) {
  std::map<std::string, std::vector<std::string>> names;
  for (const Stage& stage : written)
    names[stage.name] = stage.sweep.empty() ? std::vector{stage.name} : namesOf(stage);
  std::vector<Stage> stages;
  for (const Stage& one : written) {
    Stage stage = one;
    stage.needs.clear();
    for (const std::string& need : one.needs)
      stage.needs.insert(stage.needs.end(), names[need].begin(), names[need].end());
    if (stage.sweep.empty()) stages.push_back(stage);
    for (const int nodes : stage.sweep) stages.push_back(groupStage(stage, nodes));
  }
  return stages;
}

NodePart partOf(const Stage& stage, int nodeRank, int nodeCount) {
  const auto lists = [&](int nodes) {
    return std::find(stage.sweep.begin(), stage.sweep.end(), nodes) != stage.sweep.end();
  };
  using Kind = NodePart::Kind;
  if (stage.sweep.empty()) return {};
  if (stage.nodes == kAll && lists(nodeCount))
    return {Kind::kNoGroup, false, 0,
            fmt::format("all nodes of this run are {}: the same group as that of {}", nodeCount, nodeCount)};
  if (stage.nodes > nodeCount) {
    const bool blocks = !lists(kAll) && !lists(nodeCount);
    return {Kind::kNoGroup, blocks, stage.nodes,
            fmt::format("its group has {} nodes, and this run {}{}", stage.nodes, nodeCount,
                        blocks ? "; no group of the stage has all of them: add \"all\" to its nodes" : "")};
  }
  if (stage.nodes == kAll || nodeRank < stage.nodes) return {};
  const bool larger = lists(kAll) || std::any_of(stage.sweep.begin(), stage.sweep.end(), [&](int nodes) {
                        return nodes > stage.nodes && nodes <= nodeCount;
                      });
  return {Kind::kIdle, !larger, stage.nodes,
          (stage.nodes == 1 ? fmt::format("its group is the first of {} nodes alone", nodeCount)
                            : fmt::format("its group has the first {} of {} nodes", stage.nodes, nodeCount)) +
              (larger ? "" : "; no group of the stage has this one: add \"all\" to its nodes")};
}

bool canHaveNodes(const Stage& written, const std::string& nodes) {
  return written.sweep.empty() || written.sweep.back() == kAll ||
         std::any_of(written.sweep.begin(), written.sweep.end(),
                     [&](int listed) { return std::to_string(listed) == nodes; });
}

int groupNodes(const Stage& stage, int nodeCount) {
  return stage.nodes == kAll ? nodeCount : stage.nodes;
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// See needs.h; also the order in which stages run.
#include "runner/plan/needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "runner/core/text.h"

namespace muster {
namespace {

std::map<std::string, size_t> indexByName(const std::vector<Stage>& stages) {
  std::map<std::string, size_t> byName;
  for (size_t i = 0; i < stages.size(); ++i) byName.emplace(stages[i].name, i);
  return byName;
}

/// Stage indices that each stage needs; names that are no stage are left out.
std::vector<std::vector<size_t>> neededIndices(const std::vector<Stage>& stages) {
  const auto byName = indexByName(stages);
  std::vector<std::vector<size_t>> needed(stages.size());
  for (size_t i = 0; i < stages.size(); ++i)
    for (const std::string& name : stages[i].needs)
      if (const auto found = byName.find(name); found != byName.end()) needed[i].push_back(found->second);
  return needed;
}

/// Stages whose needs all come before them, in that order; what is left out stands in a circle or behind one.
std::vector<size_t> order(const std::vector<std::vector<size_t>>& needed) {
  std::vector<size_t> waiting(needed.size());
  std::vector<std::vector<size_t>> neededBy(needed.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < needed.size(); ++i) {
    waiting[i] = needed[i].size();
    for (const size_t other : needed[i]) neededBy[other].push_back(i);
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<size_t> sorted;
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    sorted.push_back(next);
    for (const size_t other : neededBy[next])
      if (--waiting[other] == 0) ready.push(other);
  }
  return sorted;
}

/// One circle among the stages that `sorted` left out, each followed by one that it needs.
std::vector<size_t> findCircle(const std::vector<std::vector<size_t>>& needed,
                               const std::vector<size_t>& sorted) {
  std::vector<bool> done(needed.size());
  for (const size_t i : sorted) done[i] = true;
  size_t at = static_cast<size_t>(std::find(done.begin(), done.end(), false) - done.begin());
  std::vector<size_t> path;
  // Each stage that is left needs another one that is left, so walking on must come back to a stage of the
  // path.
  for (;;) {
    const auto before = std::find(path.begin(), path.end(), at);
    if (before != path.end()) return {before, path.end()};
    path.push_back(at);
    at = *std::find_if(needed[at].begin(), needed[at].end(), [&](size_t other) { return !done[other]; });
  }
}

void checkNames(const PlanDocument& document, const Stage& stage, const std::string& pointer,
                const std::map<std::string, size_t>& byName, Diagnostics& diagnostics) {
  std::set<std::string> seen;
  std::vector<std::string> others;
  for (const auto& [name, index] : byName)
    if (name != stage.name) others.push_back(name);
  for (size_t i = 0; i < stage.needs.size() && !diagnostics.full(); ++i) {
    const std::string& name = stage.needs[i];
    if (name.empty()) continue;  // told by the stage's reader
    const SourcePosition at = document.at(pointerTo(pointerTo(pointer, "needs"), std::to_string(i)));
    if (byName.count(name) == 0)
      diagnostics.error(
          at, Mistake::name(fmt::format("stage \"{}\" needs \"{}\", which is not a stage of this plan",
                                        stage.name, printable(name, 80)),
                            name, others));
    else if (!seen.insert(name).second)
      diagnostics.error(at, fmt::format("stage \"{}\" needs \"{}\" twice; once is enough", stage.name, name));
  }
}

}  // namespace

void checkNeeds(const PlanDocument& document, const std::vector<Stage>& stages,
                const std::vector<std::string>& pointers, Diagnostics& diagnostics) {
  const auto byName = indexByName(stages);
  for (size_t i = 0; i < stages.size() && !diagnostics.full(); ++i)
    checkNames(document, stages[i], pointers[i], byName, diagnostics);
  const auto needed = neededIndices(stages);
  const auto sorted = order(needed);
  if (sorted.size() == stages.size()) return;
  const std::vector<size_t> circle = findCircle(needed, sorted);
  std::string names;
  for (const size_t i : circle) names += "\"" + stages[i].name + "\" needs ";
  diagnostics.error(document.at(pointerTo(pointers[circle.front()], "needs")),
                    fmt::format("circular dependency between stages: {}\"{}\"; remove one of these needs",
                                names, stages[circle.front()].name));
}

std::vector<size_t> executionOrder(const Plan& plan) {
  return order(neededIndices(plan.stages));
}

}  // namespace muster

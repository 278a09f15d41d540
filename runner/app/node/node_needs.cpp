// SPDX-License-Identifier: Apache-2.0
// Why a stage of a run does not begin: its prerequisites, an interruption, a problem with the inventory.
#include <fmt/format.h>

#include <algorithm>

#include "runner/app/node/node_run.h"
#include "runner/app/process/interrupt.h"

namespace muster {

bool satisfies(Outcome outcome) {
  return outcome == Outcome::kPass || outcome == Outcome::kWarn || outcome == Outcome::kUnjudged ||
         outcome == Outcome::kDeferred || outcome == Outcome::kWaived || outcome == Outcome::kElsewhere;
}

std::string NodeRun::whyNot(const Stage& stage) const {
  if (node_.cancelled->load()) {
    const std::string why = interruptionText();
    return (why.empty() ? "the run was interrupted" : why) + " before it";
  }
  if (!inventory_.problem.empty()) return inventory_.problem;
  for (const std::string& need : stage.needs) {
    // Its result is not known here; a run that leaves it out is no acceptance.
    if (leavesOut(need) || hasNoPart(need)) continue;
    const auto it = outcomes_.find(need);
    if (it == outcomes_.end()) return "prerequisite stage " + need + " did not run";
    if (!satisfies(it->second) && !(it->second == Outcome::kFlaky && planned(need)->allowFlaky))
      return fmt::format("prerequisite stage {} did not pass ({})", need, outcomeName(it->second));
  }
  return "";
}

const Stage* NodeRun::planned(const std::string& name) const {
  const auto& stages = setup_.plan.stages;
  const auto at = std::find_if(stages.begin(), stages.end(), [&](const Stage& s) { return s.name == name; });
  return at == stages.end() ? nullptr : &*at;
}

bool NodeRun::leavesOut(const std::string& name) const {
  const Stage* stage = planned(name);
  return stage != nullptr && !record_.selection.whyLeftOut(name, stage->scope).empty();
}

bool NodeRun::hasNoPart(const std::string& name) const {
  const Stage* stage = planned(name);
  return stage != nullptr && partOf(*stage, node_.nodeRank, node_.nodeCount).kind != NodePart::Kind::kMember;
}

/// A prerequisite that runs in another job, or that a partial run leaves out, does not block this stage; the
/// fleet checks both jobs, and a partial run accepts nothing.
void NodeRun::noteOpenNeeds(const Stage& stage, StageRecord& record) const {
  for (const std::string& need : stage.needs) {
    const bool leftOut = leavesOut(need), idle = hasNoPart(need);
    if (!leftOut && !idle && outcomes_.at(need) != Outcome::kElsewhere) continue;
    record.log.push_back(fmt::format("it needs {}, which {}; its result is not known here", need,
                                     leftOut ? "this partial run left out"
                                     : idle  ? "this node has no part in"
                                             : "runs in another job"));
  }
}

}  // namespace muster

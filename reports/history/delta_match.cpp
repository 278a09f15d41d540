// SPDX-License-Identifier: Apache-2.0
// Checks that a new record is comparable with the accepted ones.
#include "reports/history/delta_match.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster::history {
namespace {

using fleet::NodeSummary;
using fleet::StageSummary;

std::string nameAndDigest(const std::string& name, const std::string& sha256) {
  return fmt::format("{} (sha256 {})", name.empty() ? "(none)" : printable(name, 80),
                     sha256.empty() ? "(none)" : sha256.substr(0, 12));
}

std::string otherPlan(const KeptFleet& fleet, const NodeSummary& node) {
  if (node.planSha256 != fleet.planSha256)
    return fmt::format("of plan {}, but the fleet was accepted with {}",
                       nameAndDigest(node.planName, node.planSha256),
                       nameAndDigest(fleet.plan, fleet.planSha256));
  if (node.overrides != fleet.overrides)
    return fmt::format("run with --set \"{}\"; the fleet was accepted with \"{}\"",
                       printable(join(node.overrides, " "), 200), printable(join(fleet.overrides, " "), 200));
  if (node.simulated != fleet.simulated)
    return node.simulated ? "it is simulated, but the accepted fleet is not"
                          : "it is not simulated, but the accepted fleet is";
  return "";
}

/// What a node whose accepted record is lost is held against: any accepted one that was judged by this
/// profile.
const NodeSummary* likeOf(const DeltaInput& input, const NodeSummary& node) {
  for (size_t i = 0; i < input.uses.size(); ++i)
    if (input.uses[i] == RecordUse::kAccepted && input.records.nodes[i].profileSha256 == node.profileSha256)
      return &input.records.nodes[i];
  return nullptr;
}

/// Whether the run had no group of this stage that its node was in.
bool hadNoPart(const StageSummary& stage) {
  return stage.state == StageState::kIdle || (stage.state == StageState::kSkipped && stage.groupNodes > 0);
}

/// A stage over several nodes that now met nobody, or had no part in it, proves nothing of them.
std::string aloneInGroup(const DeltaInput& input, const NodeSummary& node,
                         const std::vector<size_t>& accepted) {
  for (const StageSummary& stage : node.stages) {
    const bool alone = stage.state == StageState::kRan && stage.groupNodes <= 1;
    if (stage.scope != Scope::kCluster || !(alone || hadNoPart(stage))) continue;
    for (const size_t i : accepted)
      for (const StageSummary& before : input.records.nodes[i].stages) {
        if (before.name != stage.name || before.state != StageState::kRan) continue;
        const std::string& name = input.records.names->texts[stage.name];
        if (hadNoPart(stage))
          return fmt::format(
              "stage {} had no group with this node, and one of {} nodes when the fleet was accepted; run it "
              "on as "
              "many nodes again, this one among the first",
              name, before.groupNodes);
        if (before.groupNodes > 1)
          return fmt::format(
              "stage {} met no other node, and {} nodes when the fleet was accepted; run it together with at "
              "least one more (`muster run PLAN --scope cluster`)",
              name, before.groupNodes);
      }
  }
  return "";
}

}  // namespace

double acceptedUntil(const DeltaInput& input, const std::vector<size_t>& accepted) {
  double until = 0;
  for (const size_t i : accepted) until = std::max(until, input.records.nodes[i].finished);
  return accepted.empty() ? input.accepted.finished : until;
}

std::string mismatchOf(const DeltaInput& input, const NodeSummary& node,
                       const std::vector<size_t>& accepted) {
  const KeptFleet& fleet = input.accepted;
  if (std::string other = otherPlan(fleet, node); !other.empty()) return other;
  if (node.rejudged && !fleet.allowRejudged)
    return "it was re-evaluated by `muster judge`, but the fleet was accepted with original records only";
  if (const double until = acceptedUntil(input, accepted); node.started <= until)
    return fmt::format(
        "of {}, before the node's accepted run ended ({}), so it cannot show a later "
        "replacement; if the node's clock was wrong then, accept the whole fleet again",
        formatUtc(node.started), formatUtc(until));
  const NodeSummary* before = accepted.empty() ? likeOf(input, node) : &input.records.nodes[accepted.front()];
  if (before == nullptr || node.profileSha256 != before->profileSha256)
    return fmt::format("evaluated with profile {}; {}; rerun the node with the profile of the acceptance",
                       nameAndDigest(node.profileName, node.profileSha256),
                       before == nullptr ? "no node was accepted with it"
                                         : "the node was accepted by " +
                                               nameAndDigest(before->profileName, before->profileSha256));
  if (node.backend != before->backend)
    return fmt::format("measured on backend {}, accepted on {}", node.backend, before->backend);
  if (before->strict && !node.strict) return "run without --strict, but the node was accepted with --strict";
  return aloneInGroup(input, node, accepted);
}

}  // namespace muster::history

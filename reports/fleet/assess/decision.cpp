// SPDX-License-Identifier: Apache-2.0
// What the states of nodes come to.
#include "reports/fleet/decision.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::fleet {
namespace {

void tell(std::vector<std::string>& reasons, size_t n, size_t of, const char* what) {
  if (n > 0) reasons.push_back(fmt::format("{} of {} nodes {} {}", n, of, n == 1 ? "is" : "are", what));
}

size_t namedTwice(const Fleet& fleet) {
  return static_cast<size_t>(
      std::count_if(fleet.findings.begin(), fleet.findings.end(), [](const RecordFinding& finding) {
        return finding.kind == FindingKind::kIdentity && finding.nodes.size() > 1;
      }));
}

/// What the counts say against the fleet.
std::vector<std::string> countReasons(const Fleet& fleet) {
  std::vector<std::string> reasons;
  const size_t all = fleet.nodes.size(), twice = namedTwice(fleet);
  const auto in = [&](NodeState state) { return fleet.states[static_cast<size_t>(state)]; };
  tell(reasons, in(NodeState::kRejected), all, "rejected");
  tell(reasons, in(NodeState::kIncomplete), all, "incomplete");
  tell(reasons, in(NodeState::kAffected), all, "affected by another component");
  tell(reasons, in(NodeState::kMissing), all, "missing: no record");
  tell(reasons, in(NodeState::kQuarantined), all, "without a usable record (quarantined)");
  tell(reasons, in(NodeState::kStale), all, "stale (another plan or run)");
  tell(reasons, in(NodeState::kDown), all, "down");
  tell(reasons, in(NodeState::kDrained), all, "drained");
  if (twice > 0)
    reasons.push_back(
        fmt::format("{} finding{} of a machine, part or run with two names", twice, twice == 1 ? "" : "s"));
  if (fleet.waiversUnmatched > 0)
    reasons.push_back(fmt::format("{} waiver{} nothing in the fleet", fleet.waiversUnmatched,
                                  fleet.waiversUnmatched == 1 ? " matches" : "s match"));
  return reasons;
}

}  // namespace

Status decide(Fleet& fleet) {
  fleet.states.fill(0);
  for (const FleetNode& node : fleet.nodes) ++fleet.states[static_cast<size_t>(node.state)];
  size_t placed = 0;
  for (const size_t count : fleet.states) placed += count;
  const Accounting& sum = fleet.accounting;
  if (placed != fleet.nodes.size() || !sum.balanced() ||
      sum.of(Outcome::kDeferred) + sum.of(Outcome::kElsewhere) > 0)
    return Error{ErrorCode::kInternal,
                 fmt::format("internal error: the fleet counts do not agree: {} nodes of {}, {} check "
                             "results of {}, {} deferred, {} elsewhere; please report this",
                             placed, fleet.nodes.size(), sum.total(), sum.expected,
                             sum.of(Outcome::kDeferred), sum.of(Outcome::kElsewhere)),
                 ""};
  const bool whole = fleet.reasons.empty();
  const std::vector<std::string> counted = countReasons(fleet);
  fleet.reasons.insert(fleet.reasons.end(), counted.begin(), counted.end());
  const auto in = [&](NodeState state) { return fleet.states[static_cast<size_t>(state)]; };
  // What a record fails is true of the fleet, whichever part it speaks against.
  // What is counted twice is a failure, whichever of its names is the wrong one.
  const bool rejected =
      in(NodeState::kRejected) > 0 || namedTwice(fleet) > 0 ||
      std::any_of(fleet.nodes.begin(), fleet.nodes.end(), [](const FleetNode& node) { return node.failed; });
  const bool accepted =
      in(NodeState::kAccepted) == fleet.nodes.size() && fleet.waiversUnmatched == 0 && whole;
  fleet.acceptance = rejected   ? Acceptance::kRejected
                     : accepted ? Acceptance::kAccepted
                                : Acceptance::kIncomplete;
  fleet.exitCode = rejected ? 1 : accepted ? 0 : 3;
  return {};
}

Status withhold(const std::map<std::string, std::string>& open, const std::vector<std::string>& lines,
                Fleet& fleet) {
  fleet.reasons.resize(fleet.reasons.size() - countReasons(fleet).size());
  fleet.reasons.insert(fleet.reasons.end(), lines.begin(), lines.end());
  for (FleetNode& node : fleet.nodes) {
    const auto why = open.find(node.name);
    if (why == open.end() || node.state != NodeState::kAccepted) continue;
    node.state = NodeState::kIncomplete;
    node.reason = why->second;
  }
  return decide(fleet);
}

}  // namespace muster::fleet

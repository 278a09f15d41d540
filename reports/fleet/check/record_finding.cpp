// SPDX-License-Identifier: Apache-2.0
// Adds findings about records and sets the states of their nodes.
#include "reports/fleet/check/record_finding.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster::fleet {
namespace {

constexpr size_t kMostInText = 4;
constexpr const char* kKindNames[] = {"identity", "sku", "limits", "rejudged", "binding"};

}  // namespace

const char* findingKindName(FindingKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

void blockNode(FleetNode& node, NodeState state, const std::string& reason) {
  const bool content = node.state == NodeState::kAccepted || node.state == NodeState::kAffected;
  const bool worse = content || (node.state == NodeState::kIncomplete && state == NodeState::kRejected);
  if (!worse) return;
  node.reason = node.state == NodeState::kAccepted ? reason : reason + "; " + node.reason;
  node.state = state;
}

NodeState stateOfOdd(size_t agree, size_t odd) {
  return agree > 1 && agree > odd ? NodeState::kRejected : NodeState::kIncomplete;
}

RecordFinding settled(RecordFinding finding, const std::vector<size_t>& about, NodeState state,
                      const FleetRecords& records, FleetNodes& nodes) {
  const bool named = !finding.nodes.empty(), listed = !finding.records.empty();
  for (const size_t n : about) {
    FleetNode& node = nodes[n];
    blockNode(node, state, finding.text);
    const bool claims = finding.kind == FindingKind::kIdentity || finding.kind == FindingKind::kSku ||
                        finding.kind == FindingKind::kRejudged;
    if (claims && node.claim.empty()) node.claim = finding.text;
    if (!named && finding.nodes.size() < kMostNamed) finding.nodes.push_back(node.name);
    for (const size_t i : node.records)
      if (!listed && finding.records.size() < kMostNamed) finding.records.push_back(records.nodes[i].path);
  }
  return finding;
}

std::string shortNames(const std::vector<std::string>& names) {
  if (names.size() <= kMostInText) return join(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kMostInText);
  return fmt::format("{} and {} more", join(first, ", "), names.size() - kMostInText);
}

}  // namespace muster::fleet

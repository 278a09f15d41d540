// SPDX-License-Identifier: Apache-2.0
// Checks re-judged records against their originals.
#include "reports/fleet/check/rejudged.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/fleet/check/record_finding.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

/// Whether `again` was judged from `record`: by its digest, or as a record of the same run.
bool isFrom(const NodeSummary& again, const NodeSummary& record) {
  const auto& from = again.rejudged->from;
  if (std::find(from.begin(), from.end(), record.sha256) != from.end()) return true;
  return again.runId == record.runId && !record.rejudged;
}

/// What `again`, a re-judged record, was judged from, of those that are here.
std::vector<size_t> originalsOf(const FleetRecords& records, const std::multimap<std::string, size_t>& byNode,
                                size_t again) {
  std::vector<size_t> found;
  const auto [begin, end] = byNode.equal_range(records.nodes[again].node);
  for (auto at = begin; at != end; ++at)
    if (at->second != again && isFrom(records.nodes[again], records.nodes[at->second]))
      found.push_back(at->second);
  return found;
}

std::multimap<std::string, size_t> placesByNode(const FleetRecords& records) {
  std::multimap<std::string, size_t> byNode;
  for (size_t i = 0; i < records.nodes.size(); ++i) byNode.emplace(records.nodes[i].node, i);
  return byNode;
}

std::string whatText(const NodeSummary& node) {
  const RejudgedSummary& again = *node.rejudged;
  return fmt::format("{} was re-evaluated on {} by Muster {} from the record with sha256 {}",
                     printable(node.path, 200), formatUtc(again.at), again.buildId,
                     again.from.front().substr(0, 12));
}

}  // namespace

std::map<size_t, std::string> supersededRecords(const FleetRecords& records, const FleetOptions& options) {
  std::map<size_t, std::string> superseded;
  if (!options.allowRejudged) return superseded;
  const auto byNode = placesByNode(records);
  for (size_t i = 0; i < records.nodes.size(); ++i) {
    if (!records.nodes[i].rejudged) continue;
    for (const size_t original : originalsOf(records, byNode, i))
      if (records.nodes[original].samplesHash == records.nodes[i].samplesHash)
        superseded[original] = "re-evaluated; using " + records.nodes[i].path;
  }
  return superseded;
}

RecordChecks checkRejudged(const FleetRecords& records, const FleetOptions& options, FleetNodes& nodes) {
  RecordChecks check;
  std::map<std::string, size_t> place;
  for (size_t n = 0; n < nodes.size(); ++n) place.emplace(nodes[n].name, n);
  const auto byNode = placesByNode(records);
  for (size_t i = 0; i < records.nodes.size(); ++i) {
    const NodeSummary& again = records.nodes[i];
    const auto at = place.find(again.node);
    if (!again.rejudged || at == place.end()) continue;
    RecordFinding finding;
    finding.kind = FindingKind::kRejudged;
    finding.nodes = {again.node};
    finding.records = {again.path};
    if (!options.allowRejudged) {
      finding.text = whatText(again) + "; re-evaluated records are not accepted";
      finding.next = "Use the original record, or --allow-rejudged.";
      check.findings.push_back(
          settled(std::move(finding), {at->second}, NodeState::kIncomplete, records, nodes));
      continue;
    }
    ++check.rejudged;
    for (const size_t original : originalsOf(records, byNode, i)) {
      if (records.nodes[original].samplesHash == again.samplesHash) continue;
      RecordFinding differs = finding;
      differs.records.push_back(records.nodes[original].path);
      differs.text = fmt::format("{}, but its samples differ from those of {}, a record of the same run",
                                 whatText(again), printable(records.nodes[original].path, 200));
      differs.next = "A sample was edited: use the original record, or retest the node.";
      check.findings.push_back(
          settled(std::move(differs), {at->second}, NodeState::kRejected, records, nodes));
    }
  }
  return check;
}

}  // namespace muster::fleet

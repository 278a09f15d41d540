// SPDX-License-Identifier: Apache-2.0
// Applies waivers to one record and recomputes its acceptance.
#include "reports/fleet/read/waived_record.h"

#include <algorithm>

#include "runner/core/clock.h"
#include "runner/judge/judge.h"

namespace muster::fleet {
namespace {

constexpr size_t kWaiverTextBytes = 300;
constexpr size_t kMostLabels = 100;  ///< that one waiver asks for
constexpr size_t kDateBytes = 10;    ///< "2026-12-31"

Waiver waiverOf(Fields& fields, Failures& failures) {
  Waiver waiver;
  const std::pair<const char*, std::string*> texts[] = {
      {"stage", &waiver.stage},   {"metric", &waiver.metric},     {"device", &waiver.device},
      {"serial", &waiver.serial}, {"node", &waiver.node},         {"reason", &waiver.reason},
      {"at", &waiver.at},         {"approver", &waiver.approver}, {"expires", &waiver.expires}};
  for (const auto& [key, text] : texts) *text = bounded(fields.text(key), kWaiverTextBytes);
  for (const auto& [key, value] : fields.object("where")) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) failures.fail("where", "must be texts by name");
    if (waiver.where.size() >= kMostLabels)
      failures.fail("where", fmt::format("holds more than {} labels", kMostLabels));
    if (!failures.ok()) return waiver;
    waiver.where.emplace(bounded(key, kWaiverTextBytes), bounded(text, kWaiverTextBytes));
  }
  if (waiver.node.empty() && waiver.serial.empty()) failures.fail("list", "a waiver names no node or serial");
  if (waiver.stage.empty() && waiver.serial.empty())
    failures.fail("list", "a waiver names no stage or serial");
  return waiver;
}

/// The record has settled it already, so that its counts are as few as say the same.
WaiverCount countOf(WaiverState state, uint32_t covered) {
  WaiverCount count;
  count.concerns = state != WaiverState::kElsewhere;
  count.ran = count.concerns && state != WaiverState::kUndecided;
  if (state == WaiverState::kApplied) count.matched = count.covered = covered;
  if (state == WaiverState::kUnexpectedPass) count.matched = count.passed = 1;
  return count;
}

void readOne(const dom::object& object, FleetNames& names, NodeSummary& node, Failures& failures) {
  Fields fields(object, failures);
  const Waiver waiver = waiverOf(fields, failures);
  const auto state = fields.named<WaiverState>("state");
  const int covered = fields.count("covered");
  if (failures.ok() && waiver.expires < formatUtc(node.started).substr(0, kDateBytes))
    failures.fail("list", fmt::format("a waiver expired on {}, before the run began",
                                      printable(waiver.expires, kDateBytes)));
  if (failures.ok() && !waiver.node.empty() && waiver.node != node.node && state != WaiverState::kElsewhere)
    failures.fail("list", fmt::format("a waiver for node {} is stated as {} in this record",
                                      printable(waiver.node, 64), nameOf(state)));
  if (!failures.ok()) return;
  WaiverCount count = countOf(state, static_cast<uint32_t>(covered));
  count.waiver = names.waiver(waiver);
  if (count.waiver >= names.givenWaivers.size()) node.waivers.push_back(count);
}

}  // namespace

void readOwnWaivers(const dom::object& record, FleetNames& names, NodeSummary& node, Failures& failures) {
  dom::object waivers;
  if (record.at_key("waivers").get(waivers) != simdjson::SUCCESS) return;
  failures.at("waivers");
  for (const dom::element item : Fields(waivers, failures).array("list")) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS) failures.fail("list", "has an entry that is not an object");
    if (node.waivers.size() >= kMostWaivers)
      failures.fail("list", fmt::format("holds more than {} waivers", kMostWaivers));
    if (!failures.ok()) return;
    readOne(object, names, node, failures);
  }
}

void decideWaived(NodeSummary& node, bool flakyAllowed) {
  Accounting sum = node.accounting;
  sum.counts.fill(0);
  for (const StageSummary& stage : node.stages)
    for (size_t i = 0; i < sum.counts.size(); ++i) sum.counts[i] += stage.accounting.counts[i];
  node.flakyAllowed = flakyAllowed;
  if (sum.counts == node.accounting.counts) return;
  node.accounting = sum;
  const Decision decision = decideAnew(node, sum);
  node.acceptance = decision.acceptance;
  node.exitCode = decision.exitCode;
  node.reasons = decision.reasons;
}

Decision decideAnew(const NodeSummary& node, const Accounting& sum) {
  DecisionInput input;
  input.accounting = sum;
  input.partial = node.partial;
  input.strict = node.strict;
  input.interrupted = wasInterrupted(node.acceptance, node.reasons);
  input.noGpuSkip = node.acceptance == Acceptance::kNoGpu;
  input.unknownSku = node.profileName.empty();
  input.allowUnknownSku = node.allowUnknownSku;
  input.flakyAllowed = node.flakyAllowed;
  return decide(input);
}

}  // namespace muster::fleet

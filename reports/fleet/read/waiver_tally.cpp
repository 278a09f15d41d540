// SPDX-License-Identifier: Apache-2.0
// Matches the verdicts of one record with the waivers of the fleet.
#include "reports/fleet/read/waiver_tally.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::fleet {
namespace {

bool concerns(const Waiver& waiver, const NodeSummary& node) {
  if (!waiver.node.empty()) return waiver.node == node.node;
  return std::any_of(node.devices.begin(), node.devices.end(),
                     [&](const DeviceIdentity& device) { return device.serial == waiver.serial; });
}

/// An error of a case or stage has no metric and fewer labels; it may be why nothing matched.
bool aboutSamePlace(const Waiver& waiver, const WaiverTarget& target) {
  if (!target.metric.empty() && target.metric != waiver.metric) return false;
  return waiver.device.empty() || target.device.empty() || target.device == waiver.device;
}

}  // namespace

void WaiverTally::begin(const NodeSummary& node) {
  counts_.clear();
  inStage_.clear();
  for (size_t i = 0; i < given_.size(); ++i)
    if (concerns(given_[i], node)) {
      WaiverCount& count = counts_.emplace_back();
      count.waiver = static_cast<uint32_t>(i);
      count.concerns = true;
    }
}

void WaiverTally::beginStage(std::string_view name, bool ran) {
  inStage_.clear();
  for (size_t i = 0; i < counts_.size(); ++i)
    if (const std::string& stage = given_[counts_[i].waiver].stage; stage.empty() || stage == name) {
      counts_[i].ran = counts_[i].ran || ran;
      inStage_.push_back(i);
    }
}

const Waiver* WaiverTally::settle(Outcome recorded, const WaiverTarget& target) {
  const Waiver* covering = nullptr;
  for (const size_t i : inStage_) {
    const Waiver& waiver = given_[counts_[i].waiver];
    if (countFor(waiver, recorded, target, counts_[i]) && covering == nullptr) covering = &waiver;
  }
  return covering;
}

bool countFor(const Waiver& waiver, Outcome recorded, const WaiverTarget& target, WaiverCount& count) {
  count.sawMetric = count.sawMetric || target.metric == waiver.metric;
  count.sawDevice = count.sawDevice || target.device == waiver.device;
  if (recorded == Outcome::kError && aboutSamePlace(waiver, target)) ++count.errors;
  if (!covers(waiver, target)) return false;
  ++count.matched;
  const bool failed = recorded == Outcome::kFail || recorded == Outcome::kFlaky;
  if (failed || recorded == Outcome::kWaived) ++count.covered;
  if (recorded == Outcome::kPass || recorded == Outcome::kWarn) ++count.passed;
  return failed;
}

std::string waivedText(Outcome recorded, const Waiver& waiver) {
  return fmt::format("; {}, waived: {} (approved by {}, until {})", outcomeName(recorded), waiver.reason,
                     waiver.approver, waiver.expires);
}

}  // namespace muster::fleet

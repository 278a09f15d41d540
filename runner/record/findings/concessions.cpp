// SPDX-License-Identifier: Apache-2.0
// Finds the waivers that were used.
#include "runner/record/findings/concessions.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/record/findings/parts.h"

namespace muster {
namespace {

std::string partOf(const Record& record, const WaiverRecord& waiver) {
  if (!waiver.device.empty()) return deviceOf(record, waiver.device).text();
  if (waiver.serial.empty()) return record.node;
  for (const DevicePart& part : devicesOf(record))
    if (part.serial == waiver.serial) return part.text();
  return "serial " + waiver.serial;
}

}  // namespace

std::string Concession::text() const {
  return fmt::format("{}, {}: approved by {}, until {}", part, what, approver, expires);
}

std::vector<Concession> concessionsOf(const Record& record) {
  std::vector<Concession> used;
  for (const WaiverRecord& waiver : record.waivers) {
    if (waiver.covered == 0) continue;
    std::string what = waiver.stage + (waiver.stage.empty() ? "" : " ") + waiver.metric;
    if (!waiver.where.empty()) what += " " + labelsText(waiver.where);
    used.push_back(
        {partOf(record, waiver), what, waiver.reason, waiver.approver, waiver.expires, waiver.covered});
  }
  return used;
}

std::string verdictText(const Record& record) {
  if (record.acceptance == Acceptance::kAccepted && record.accounting.of(Outcome::kWaived) > 0)
    return "ACCEPTED WITH CONCESSIONS";
  std::string text = upperCase(nameOf(record.acceptance));
  std::replace(text.begin(), text.end(), '-', ' ');
  return text;
}

}  // namespace muster

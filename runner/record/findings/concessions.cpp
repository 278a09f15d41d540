// SPDX-License-Identifier: Apache-2.0
// Finds the waivers that were used.
#include "runner/record/findings/concessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runner/core/text.h"
#include "runner/record/findings/parts.h"

namespace muster {
namespace {

/// The devices of a record by their ids and serial numbers.
class PartIndex {
 public:
  explicit PartIndex(const Record& record) {
    for (const DevicePart& part : devicesOf(record)) {
      byId_.emplace(part.id, part.text());
      bySerial_.emplace(part.serial, part.text());
    }
  }
  /// What a waiver speaks of: its device or serial number, else `node`.
  [[nodiscard]] std::string of(const WaiverRecord& waiver, const std::string& node) const {
    if (!waiver.device.empty()) return textOf(byId_, waiver.device, waiver.device);
    return waiver.serial.empty() ? node : textOf(bySerial_, waiver.serial, "serial " + waiver.serial);
  }

 private:
  using Texts = std::map<std::string, std::string>;
  static std::string textOf(const Texts& texts, const std::string& key, const std::string& unknown) {
    const auto found = texts.find(key);
    return found == texts.end() ? unknown : found->second;
  }
  Texts byId_, bySerial_;
};

}  // namespace

std::string Concession::text() const {
  return fmt::format("{}, {}: approved by {}, until {}", part, what, approver, expires);
}

std::vector<Concession> concessionsOf(const Record& record) {
  std::vector<Concession> used;
  const PartIndex parts(record);
  for (const WaiverRecord& waiver : record.waivers) {
    if (waiver.covered == 0) continue;
    std::string what = waiver.stage + (waiver.stage.empty() ? "" : " ") + waiver.metric;
    if (!waiver.where.empty()) what += " " + labelsText(waiver.where);
    used.push_back({parts.of(waiver, record.node), what, waiver.reason, waiver.approver, waiver.expires,
                    waiver.covered});
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

// SPDX-License-Identifier: Apache-2.0
// Stores shared texts and keys once and numbers them.
#include "reports/fleet/read/name_table.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster::fleet {

std::string FigureKey::text() const {
  const std::string with = labelsText(labels);
  return fmt::format("{}: {}{}", printable(stage), printable(metric), with.empty() ? "" : " (" + with + ")");
}

void FleetNames::give(const std::vector<Waiver>& list) {
  givenWaivers = list;
  for (const Waiver& each : list) waiver(each);
}

uint32_t FleetNames::waiver(const Waiver& waiver) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += fmt::format("{}:{}", part.size(), part); };
  for (const std::string* part : {&waiver.stage, &waiver.metric, &waiver.device, &waiver.serial, &waiver.node,
                                  &waiver.reason, &waiver.approver, &waiver.expires})
    add(*part);
  for (const auto& [name, value] : waiver.where) add(name), add(value);
  return waivers.number(text, [&] { return waiver; });
}

}  // namespace muster::fleet

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
  const std::string text = join({waiver.text(), waiver.reason, waiver.approver, waiver.expires}, "\n");
  return waivers.number(text, [&] { return waiver; });
}

}  // namespace muster::fleet

// SPDX-License-Identifier: Apache-2.0
// See name_table.h.
#include "reports/fleet/name_table.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster::fleet {

std::string FigureKey::text() const {
  const std::string with = labelsText(labels);
  return fmt::format("{}: {}{}", printable(stage), printable(metric), with.empty() ? "" : " (" + with + ")");
}

}  // namespace muster::fleet

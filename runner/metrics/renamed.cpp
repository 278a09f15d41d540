// SPDX-License-Identifier: Apache-2.0
// The table of renamed metrics and parameters.
#include "runner/metrics/renamed.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster {
namespace {

using Renamed = std::pair<std::string_view, std::string_view>;

constexpr std::array kRenamed{
    Renamed{"collective.own_time", "collective.local_compute_time"},
    Renamed{"collective.settings_unproven", "collective.unconfirmed_settings"},
    Renamed{"collective.unproven_settings", "collective.unconfirmed_settings"},
    Renamed{"own_time_probes", "local_compute_probes"},
};

}  // namespace

std::string nameHint(std::string_view name, const std::vector<std::string>& known, Suggester& suggester) {
  for (const auto& [former, current] : kRenamed)
    if (name == former && std::find(known.begin(), known.end(), current) != known.end())
      return "; it was renamed to \"" + std::string(current) + "\"";
  return suggester.didYouMean(name, known);
}

std::string nameHint(std::string_view name, const std::vector<std::string>& known) {
  Suggester suggester;
  return nameHint(name, known, suggester);
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// The table of renamed metrics and parameters.
#include "runner/metrics/renamed.h"

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

/// What `former` is called now; empty if it is no former name of one of `known`.
std::string newName(std::string_view former, const std::vector<std::string>& known) {
  for (const auto& [name, current] : kRenamed)
    if (name == former && contains(known, current)) return std::string(current);
  return "";
}

std::string renamedText(const std::string& current) {
  return "; it was renamed to \"" + current + "\"";
}

}  // namespace

std::string nameHint(std::string_view name, const std::vector<std::string>& known, Suggester& suggester) {
  const std::string current = newName(name, known);
  return current.empty() ? suggester.didYouMean(name, known) : renamedText(current);
}

Mistake unknownName(const std::string& sentence, std::string_view found,
                    const std::vector<std::string>& known) {
  const std::string current = newName(found, known);
  if (current.empty()) return Mistake::name(sentence, found, known);
  Mistake mistake(sentence + renamedText(current));
  mistake.found = printable(found, 80);
  mistake.suggestion = current;
  return mistake;
}

}  // namespace muster

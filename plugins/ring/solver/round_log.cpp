// SPDX-License-Identifier: Apache-2.0
// Stores the measured rounds of a ring.
#include "plugins/ring/solver/round_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::ring {
namespace {

double allPairs(int nodes) {
  return static_cast<double>(nodes) * (nodes - 1) / 2;
}

}  // namespace

size_t openingPairs(const RoundLog& log) {
  size_t pairs = 0;
  for (const Round& round : log.opening()) pairs += round.size();
  return pairs;
}

double pairCoverage(const RoundLog& log) {
  std::set<std::pair<int, int>> measured;
  for (const Meeting& meeting : log.meetings()) measured.insert({meeting.pair.a, meeting.pair.b});
  return static_cast<double>(measured.size()) / std::max(1.0, allPairs(log.nodes()));
}

std::string coverageText(size_t pairs, int nodes) {
  const double all = std::max(1.0, allPairs(nodes));
  return fmt::format("{} of {:.0f} pairs ({:.1f}%)", pairs, all, 100 * static_cast<double>(pairs) / all);
}

}  // namespace muster::ring

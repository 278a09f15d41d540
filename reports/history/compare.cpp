// SPDX-License-Identifier: Apache-2.0
// See compare.h.
#include "reports/history/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace muster::history {
namespace {

constexpr double kLeastChange = 0.02;
constexpr double kSigmas = 4;

using FigureId = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;

std::map<FigureId, Point> byFigure(const std::vector<Point>& points) {
  std::map<FigureId, Point> out;
  for (const Point& p : points)
    out.insert_or_assign(FigureId{p.stage, p.caseId, p.metric, p.labels, p.unit, p.device}, p);
  return out;
}

/// The standard error of a point's median as a share, from its own samples.
double errorOf(const Point& point) {
  return point.n > 0 ? point.cv / std::sqrt(static_cast<double>(point.n)) : 0;
}

void compareFigures(const std::map<FigureId, Point>& before, const std::map<FigureId, Point>& after,
                    Comparison& out) {
  for (const auto& [id, old] : before) {
    const auto found = after.find(id);
    if (found == after.end()) {
      ++out.onlyBefore;
      continue;
    }
    const Point& now = found->second;
    const double change = (now.median - old.median) / std::fabs(old.median);
    const double noise = std::hypot(errorOf(old), errorOf(now));
    if (!(std::fabs(change) > std::max(kLeastChange, kSigmas * noise))) {
      ++out.alike;
      continue;
    }
    const bool worse = (now.direction == Direction::kHigher && change < 0) ||
                       (now.direction == Direction::kLower && change > 0);
    out.figures.push_back({old, now, change, worse});
  }
  for (const auto& [id, now] : after) out.onlyAfter += before.count(id) == 0 ? 1 : 0;
  std::stable_sort(out.figures.begin(), out.figures.end(), [](const FigureChange& a, const FigureChange& b) {
    return a.worse != b.worse ? a.worse : std::fabs(a.change) > std::fabs(b.change);
  });
}

std::map<std::pair<std::string, std::string>, std::string> byName(const std::vector<KeptFact>& facts) {
  std::map<std::pair<std::string, std::string>, std::string> out;
  for (const KeptFact& fact : facts) {
    std::string& value = out[{fact.device, fact.name}];
    value += (value.empty() ? "" : ", ") + fact.value;
  }
  return out;
}

}  // namespace

Result<Comparison> compareRuns(Store& store, const Run& before, const Run& after) {
  Comparison out;
  out.before = before;
  out.after = after;
  MUSTER_TRY(const auto oldPoints, store.pointsOf(before));
  MUSTER_TRY(const auto newPoints, store.pointsOf(after));
  compareFigures(byFigure(oldPoints), byFigure(newPoints), out);
  MUSTER_TRY(const auto oldFacts, store.facts(before));
  MUSTER_TRY(const auto newFacts, store.facts(after));
  const auto was = byName(oldFacts), is = byName(newFacts);
  const auto valueIn = [](const auto& facts, const auto& key) {
    const auto found = facts.find(key);
    return found == facts.end() ? std::string() : found->second;
  };
  for (const auto& [key, value] : was)
    if (valueIn(is, key) != value) out.facts.push_back({key.first, key.second, value, valueIn(is, key)});
  for (const auto& [key, value] : is)
    if (was.count(key) == 0) out.facts.push_back({key.first, key.second, "", value});
  return out;
}

}  // namespace muster::history

// SPDX-License-Identifier: Apache-2.0
// Compares parts, facts and values of two runs.
#include "reports/history/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "reports/fleet/read/parameter_reader.h"
#include "reports/history/series_reader.h"
#include "runner/core/statistics.h"

namespace muster::history {
namespace {

using FigureId = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;

/// How much the figures of one node vary from run to run, by their numbers.
using NodeNoise = std::map<int64_t, Noise>;

/// From all runs of the node of `run` but one.
Result<NodeNoise> noiseOfNode(Store& store, const Run& run, int64_t without) {
  NodeNoise noise;
  MUSTER_TRY(SeriesReader reader, SeriesReader::open(store, {run.node}, without));
  MUSTER_CHECK_OK(reader.each([&](const std::vector<Series>& figure) {
    const Noises found = noisesOf(figure, TrendOptions().noiseFloor);
    const auto own = found.find({run.node, run.simulated});
    if (own != found.end()) noise[figure.front().figure->number] = own->second;
  }));
  return noise;
}

std::map<FigureId, Point> byFigure(const std::vector<Point>& points) {
  std::map<FigureId, Point> out;
  for (const Point& p : points)
    out.insert_or_assign(FigureId{p.figure.stage, p.figure.caseId, p.figure.metric, p.figure.labels,
                                  p.figure.unit, p.device.name},
                         p);
  return out;
}

/// The standard error of a point's median as a share, from its own samples.
double errorOf(const Point& point) {
  return point.n > 0 ? point.cv / std::sqrt(static_cast<double>(point.n)) : 0;
}

/// How far two healthy runs may be apart, as a share.
struct Scatter {
  double limit = 0;
  bool known = false;  ///< from other runs, or from samples of which there are several
};

Scatter scatterOf(const Point& old, const Point& now, const NodeNoise& kept, double p) {
  Scatter scatter;
  const auto found = kept.find(old.figure.number);
  if (found != kept.end() && found->second.differences >= TrendOptions().leastDifferences) {
    const Noise& noise = found->second;
    scatter.known = true;
    scatter.limit =
        studentQuantile(p, static_cast<double>(noise.differences) / 2) * std::sqrt(2.0) * noise.sigma;
  }
  // What follows its surroundings, such as a temperature, differs by more than its samples within one run.
  if (old.n < 2 || now.n < 2) return scatter;
  scatter.known = scatter.known || !onIntervalScale(old.figure);
  scatter.limit = std::max(scatter.limit, studentQuantile(p, static_cast<double>(old.n + now.n - 2)) *
                                              std::hypot(errorOf(old), errorOf(now)));
  return scatter;
}

void compareFigures(const std::map<FigureId, Point>& before, const std::map<FigureId, Point>& after,
                    const NodeNoise& kept, Comparison& out) {
  const double p = kFalseAlarms / static_cast<double>(2 * std::max<size_t>(1, before.size()));
  for (const auto& [id, old] : before) {
    const auto found = after.find(id);
    if (found == after.end()) {
      ++out.onlyBefore;
      continue;
    }
    if (out.otherStages.contains(old.figure.stage)) {
      ++out.underOther;
      continue;
    }
    const Point& now = found->second;
    const double change = (now.median - old.median) / std::fabs(old.median);
    const Scatter scatter = scatterOf(old, now, kept, p);
    const double least = onIntervalScale(old.figure) ? kLeastDegrees / std::fabs(old.median) : kLeastChange;
    if (!(std::fabs(change) > std::max(least, scatter.limit))) {
      ++out.alike;
      continue;
    }
    out.figures.push_back({old, now, change, !onIntervalScale(old.figure),
                           scatter.known && isWorse(now.figure.direction, change)});
  }
  for (const auto& [id, now] : after) out.onlyAfter += before.count(id) == 0 ? 1 : 0;
  std::stable_sort(out.figures.begin(), out.figures.end(), [](const FigureChange& a, const FigureChange& b) {
    return a.worse != b.worse ? a.worse : std::fabs(a.change) > std::fabs(b.change);
  });
}

/// Values by device and name.
using Facts = std::map<std::pair<std::string, std::string>, std::string>;

Facts byName(const std::vector<KeptFact>& facts) {
  Facts out;
  for (const KeptFact& fact : facts) {
    std::string& value = out[{fact.device, fact.name}];
    value += (value.empty() ? "" : ", ") + fact.value;
  }
  return out;
}

void compareFacts(const Facts& before, const Facts& after, Comparison& out) {
  Facts all = after;
  all.insert(before.begin(), before.end());
  for (const auto& [key, any] : all) {
    const auto& [device, name] = key;
    const auto was = before.find(key), is = after.find(key);
    const bool onBoth = was != before.end() && is != after.end();
    if (onBoth && was->second == is->second) continue;
    if (name.starts_with(fleet::kStageFact)) {
      if (!onBoth) continue;  // older versions keep no parameters
      out.otherStages.insert(
          name.substr(fleet::kStageFact.size(), name.rfind(": ") - fleet::kStageFact.size()));
    }
    out.facts.push_back(
        {device, name, was == before.end() ? "" : was->second, is == after.end() ? "" : is->second});
  }
}

}  // namespace

Result<Comparison> compareRuns(Store& store, const Run& before, const Run& after) {
  Comparison out;
  out.before = before;
  out.after = after;
  MUSTER_TRY(const auto oldFacts, store.facts(before));
  MUSTER_TRY(const auto newFacts, store.facts(after));
  compareFacts(byName(oldFacts), byName(newFacts), out);
  MUSTER_TRY(const auto oldPoints, store.pointsOf(before));
  MUSTER_TRY(const auto newPoints, store.pointsOf(after));
  MUSTER_TRY(const NodeNoise kept, noiseOfNode(store, before, after.number));
  compareFigures(byFigure(oldPoints), byFigure(newPoints), kept, out);
  return out;
}

bool measuredAlike(const std::vector<int64_t>& one, const std::vector<int64_t>& other) {
  if (one.empty() || other.empty()) return one.empty() == other.empty();
  const std::set<int64_t> figures(one.begin(), one.end());
  const auto common =
      std::count_if(other.begin(), other.end(), [&](int64_t figure) { return figures.contains(figure); });
  return 2 * static_cast<size_t>(common) >= std::min(one.size(), other.size());
}

}  // namespace muster::history

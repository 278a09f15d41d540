// SPDX-License-Identifier: Apache-2.0
// What learned limits are worth, over made fleets of 1,000 nodes: learned on half of them, judged on the
// other half. A table; exit code 1 where a goal is missed.
//   learn-bench [FLEETS [FIRST_SEED]]
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "tests/runner/sku/made_fleet.h"

namespace muster::testing {
namespace {

constexpr int kNodes = 1000;
constexpr double kMostFalse = 1e-3;  ///< of healthy nodes
constexpr double kFivePercent = 0.95;
constexpr double kSurely = 0.99;
constexpr double kMostShift = 0.01;  ///< of limits, by 10% sick nodes
/// A 5% loss is beyond the healthy spread up to this sigma (five sigmas and more); above it, only peers can
/// tell.
constexpr double kTellable = 0.01;

struct Tally {
  int judged = 0;
  int wrong = 0;
  int caught = 0;
  double tolerance = 0;
  int limits = 0;
};

/// The half that was learned on is nodes 0 to 499; the others are judged, well and with a GPU at 95%.
Tally judgeOtherHalf(FleetModel model, int fleets, uint64_t firstSeed) {
  Tally tally;
  for (int i = 0; i < fleets; ++i) {
    model.seed = firstSeed + static_cast<uint64_t>(i);
    model.nodes = kNodes / 2;
    const auto learned = learnLimits(fleetOf(model), {});
    if (!learned.ok()) {
      fmt::print(stderr, "{}\n", learned.error().text());
      std::exit(4);
    }
    for (const LearnedLimit& limit : learned->limits) {
      tally.tolerance += limit.tolerance;
      ++tally.limits;
    }
    for (int node = kNodes / 2; node < kNodes; ++node) {
      ++tally.judged;
      tally.wrong += rejects(*learned, model, node, 1) ? 1 : 0;
      tally.caught += rejects(*learned, model, node, kFivePercent) ? 1 : 0;
    }
  }
  return tally;
}

bool halves(int fleets, uint64_t firstSeed) {
  bool good = true;
  fmt::print(
      "Learned on 500 nodes, judged on 500 others, {} fleets; 8 GPUs, 10 metrics, of them 5 compute-bound\n",
      fleets);
  fmt::print("{:<8} {:>6} {:>10} {:>24} {:>22}\n", "spread", "sigma", "tolerance", "healthy nodes rejected",
             "5% slow GPU rejected");
  for (const bool skewed : {false, true}) {
    for (const double sigma : {0.006, 0.01, 0.02}) {
      FleetModel model;
      model.sigma = sigma;
      model.skewed = skewed;
      const Tally t = judgeOtherHalf(model, fleets, firstSeed);
      const double wrong = static_cast<double>(t.wrong) / t.judged;
      const double caught = static_cast<double>(t.caught) / t.judged;
      const bool miss = wrong > kMostFalse || (sigma < kTellable && caught < kSurely);
      fmt::print("{:<8} {:>5.1f}% {:>9.2f}% {:>12} of {:>8} {:>21.2f}%{}\n", skewed ? "skewed" : "normal",
                 100 * sigma, 100 * t.tolerance / t.limits, t.wrong, t.judged, 100 * caught,
                 miss ? "  MISSED" : "");
      good = good && !miss;
    }
  }
  return good;
}

/// The largest change of a limit by sick nodes, as a share of the limit from the healthy ones alone.
double shiftBySick(const FleetModel& model) {
  FleetModel healthy = model;
  healthy.sickNodes = 0;
  LearnInput part = fleetOf(healthy);
  for (LearnGroup& group : part.groups)
    std::erase_if(group.figures, [&](const LearnFigure& f) { return sickFactor(model, f.node) < 1; });
  const auto from = learnLimits(part, {});
  LearnOptions many;
  many.mostSick = 0.3;  // beside the tenth that is sick, healthy ones that look odd
  const auto all = learnLimits(fleetOf(model), many);
  if (!from.ok() || !all.ok()) {
    fmt::print(stderr, "{}\n", (from.ok() ? all : from).error().text());
    return INFINITY;
  }
  double worst = 0;
  for (size_t i = 0; i < from->limits.size(); ++i)
    worst = std::max(worst, std::fabs(floorOf(all->limits[i]) / floorOf(from->limits[i]) - 1));
  return worst;
}

bool sickFleets(int fleets, uint64_t firstSeed) {
  bool good = true;
  fmt::print("\nWith 10% sick nodes among 500 (3% to 20% slow): the largest shift of a limit, {} fleets\n",
             fleets);
  fmt::print("{:<8} {:>6} {:>14} {:>14}\n", "spread", "sigma", "one GPU sick", "node sick");
  for (const bool skewed : {false, true}) {
    for (const double sigma : {0.006, 0.01, 0.02}) {
      double worst[2] = {0, 0};
      for (int i = 0; i < fleets; ++i) {
        for (const bool whole : {false, true}) {
          FleetModel model;
          model.sigma = sigma;
          model.skewed = skewed;
          model.sickNodes = 0.1;
          model.wholeNodes = whole;
          model.seed = firstSeed + 1000 + static_cast<uint64_t>(i);
          worst[whole] = std::max(worst[whole], shiftBySick(model));
        }
      }
      const bool miss = sigma <= kTellable && std::max(worst[0], worst[1]) > kMostShift;
      fmt::print("{:<8} {:>5.1f}% {:>13.2f}% {:>13.2f}%{}\n", skewed ? "skewed" : "normal", 100 * sigma,
                 100 * worst[0], 100 * worst[1], miss ? "  MISSED" : "");
      good = good && !miss;
    }
  }
  return good;
}

}  // namespace
}  // namespace muster::testing

int main(int argc, char** argv) {
  const int fleets = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  const uint64_t firstSeed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 7'000'000;
  const bool halvesGood = muster::testing::halves(fleets, firstSeed);
  const bool sickGood = muster::testing::sickFleets(std::max(1, fleets / 4), firstSeed);
  fmt::print(
      "\ngoals (at most 1 in 1,000 healthy nodes rejected; a 5% slow GPU caught in 99% at sigma 0.6%; limits "
      "within "
      "1% up to sigma 1%): {}\n",
      halvesGood && sickGood ? "met" : "MISSED");
  return halvesGood && sickGood ? 0 : 1;
}

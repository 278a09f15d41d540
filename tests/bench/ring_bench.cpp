// SPDX-License-Identifier: Apache-2.0
// ring-bench: how surely the ring names planted faults, and in how many rounds, over simulated clusters.
//
// ring-bench [--seed N] [--trials N] [--nodes N] [--harder 1]: the seed is of the trials; figures that count
// are taken with seeds that nobody developed with. Exit 0: every goal below is met.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/plugins/ring/ring_world.h"

namespace muster::ring::testing {
namespace {

constexpr double kNamedGoal = 0.995;
constexpr double kGoalSeverity = 0.15;
constexpr double kWrongGoal = 1e-3;  ///< trials that name anything healthy
constexpr int kRoundsHealthy = 2;
constexpr int kRoundsSingle = 4;

struct Options {
  uint64_t seed = 1;
  int trials = 1000;
  int nodes = 0;  ///< 0: all sizes
  bool harder = false;
};

/// All trials of one world.
struct Tally {
  WorldSpec spec;
  long trials = 0, faults = 0, named = 0, wrongTrials = 0, open = 0, rounds = 0;
  int mostRounds = 0;
  long slowTrials = 0;  ///< took more rounds than the goal

  void add(const TrialResult& r, int allowed) {
    ++trials;
    faults += r.faults;
    named += r.named;
    wrongTrials += r.wrong > 0 ? 1 : 0;
    open += r.unattributable;
    rounds += r.rounds;
    mostRounds = std::max(mostRounds, r.rounds);
    slowTrials += r.rounds > allowed ? 1 : 0;
  }
  [[nodiscard]] double namedShare() const {
    return faults == 0 ? 1 : static_cast<double>(named) / static_cast<double>(faults);
  }
};

bool isSingle(Plant plant) {
  return plant == Plant::kOneNode || plant == Plant::kLink || plant == Plant::kNodeRail ||
         plant == Plant::kUplink;
}

int allowedRounds(const WorldSpec& spec) {
  if (spec.plant == Plant::kNothing) return kRoundsHealthy + spec.nodes % 2;
  return isSingle(spec.plant) ? kRoundsSingle : kMostRounds;
}

Tally runWorld(const WorldSpec& spec, const Options& options) {
  Tally tally;
  tally.spec = spec;
  std::mutex mutex;
  std::atomic<int> next{0};
  const auto work = [&] {
    Tally own;
    for (int i = next++; i < options.trials; i = next++)
      own.add(runTrial(spec, options.seed * 1000003 + static_cast<uint64_t>(i)), allowedRounds(spec));
    const std::lock_guard lock(mutex);
    tally.trials += own.trials;
    tally.faults += own.faults;
    tally.named += own.named;
    tally.wrongTrials += own.wrongTrials;
    tally.open += own.open;
    tally.rounds += own.rounds;
    tally.mostRounds = std::max(tally.mostRounds, own.mostRounds);
    tally.slowTrials += own.slowTrials;
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return tally;
}

/// Noise that is drawn once for all samples of a meeting is a harder world than the goals speak of.
bool harder(Noise noise) {
  return noise == Noise::kPersistentNormal || noise == Noise::kPersistentSkewed;
}

/// What a tally misses of the goals; empty: nothing. Faults below the severity of the goals are only tabled
/// here; what is wrongly named for them counts over all trials.
std::string missed(const Tally& tally) {
  std::string text;
  if (tally.spec.severity < kGoalSeverity && tally.spec.plant != Plant::kNothing) return text;
  if (tally.namedShare() < kNamedGoal) text += " NAMED";
  if (static_cast<double>(tally.wrongTrials) >= kWrongGoal * static_cast<double>(tally.trials))
    text += " WRONG";
  if (tally.slowTrials * 1000 > tally.trials) text += " ROUNDS";
  return text;
}

bool report(const Tally& tally) {
  const std::string misses = missed(tally);
  fmt::print("{:<24}{:>6}  {:<15}{:>5.0f}%{:>10.2f}%{:>10.2f}%{:>8}{:>8.2f}{:>6}{}\n",
             noiseName(tally.spec.noise), tally.spec.nodes, plantName(tally.spec.plant),
             100 * tally.spec.severity, 100 * tally.namedShare(),
             100.0 * static_cast<double>(tally.wrongTrials) / static_cast<double>(tally.trials), tally.open,
             static_cast<double>(tally.rounds) / static_cast<double>(tally.trials), tally.mostRounds,
             misses.empty() ? "" : (harder(tally.spec.noise) ? "  beyond the goals:" : "  MISSED:") + misses);
  std::fflush(stdout);
  return misses.empty() || harder(tally.spec.noise);
}

std::vector<WorldSpec> worlds(const Options& options) {
  std::vector<WorldSpec> all;
  for (const Noise noise :
       {Noise::kNormal, Noise::kSkewed, Noise::kPersistentNormal, Noise::kPersistentSkewed})
    for (const int nodes : {8, 9, 64, 232, 1023, 4096}) {
      if ((options.nodes != 0 && nodes != options.nodes) || (harder(noise) && !options.harder)) continue;
      all.push_back({nodes, Plant::kNothing, 0, noise});
      for (const Plant plant : {Plant::kOneNode, Plant::kThreeNodes, Plant::kPercentOfNodes, Plant::kLink,
                                Plant::kNodeRail, Plant::kUplink})
        for (const double severity : {0.05, 0.10, 0.15, 0.20, 0.30, 0.50, 0.90})
          if (plant != Plant::kPercentOfNodes || nodes >= 100) all.push_back({nodes, plant, severity, noise});
    }
  return all;
}

/// Rounds against the schedules of others (FACTS of the field): round robin measures each pair once.
void compareSchedules(const Options& options) {
  fmt::print("\nRounds that name what is wrong     nodes   healthy   1 node 30%   link 30%   others\n");
  for (const int nodes : {8, 9, 64, 232, 1023, 4096}) {
    if (options.nodes != 0 && nodes != options.nodes) continue;
    const auto mean = [&](Plant plant, double severity) {
      const Tally tally = runWorld({nodes, plant, severity, Noise::kNormal}, {options.seed, 100, 0, false});
      return static_cast<double>(tally.rounds) / static_cast<double>(tally.trials);
    };
    fmt::print("{:>40}{:>10.2f}{:>13.2f}{:>11.2f}   round robin {}, random matchings 15{}\n", nodes,
               mean(Plant::kNothing, 0), mean(Plant::kOneNode, 0.3), mean(Plant::kLink, 0.3),
               nodes % 2 == 0 ? nodes - 1 : nodes,
               nodes == 232 ? ", Cluster Readiness Engine 7 (3 healthy)" : "");
  }
}

int run(const Options& options) {
  fmt::print(
      "seed {}, {} trials a line, sigma 2%. Goals: a fault of 15% or more named rightly in 99.5%, anything "
      "healthy named in fewer than 0.1% of trials, rounds: healthy 2 (3 if odd), a single fault 4\n\n",
      options.seed, options.trials);
  fmt::print("{:<24}{:>6}  {:<15}{:>6}{:>11}{:>11}{:>8}{:>8}{:>6}\n", "noise", "nodes", "planted", "costs",
             "named", "wrong", "open", "rounds", "most");
  bool good = true;
  long trials = 0;
  long wrong = 0;
  for (const WorldSpec& spec : worlds(options)) {
    const Tally tally = runWorld(spec, options);
    good = report(tally) && good;
    if (harder(spec.noise)) continue;
    trials += tally.trials;
    wrong += tally.wrongTrials;
  }
  good = good && static_cast<double>(wrong) < kWrongGoal * static_cast<double>(trials);
  fmt::print("\nanything healthy named (noise per sample, all severities): {} of {} trials\n", wrong, trials);
  compareSchedules(options);
  fmt::print("\nring: {}\n", good ? "every goal is met" : "some goals are MISSED, see above");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace muster::ring::testing

int main(int argc, char** argv) {
  muster::ring::testing::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seed") == 0)
      options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    else if (std::strcmp(argv[i], "--trials") == 0)
      options.trials = std::atoi(argv[i + 1]);
    else if (std::strcmp(argv[i], "--harder") == 0)
      options.harder = std::strcmp(argv[i + 1], "0") != 0;
    else if (std::strcmp(argv[i], "--nodes") == 0)
      options.nodes = std::atoi(argv[i + 1]);
    else
      return fmt::print(stderr, "usage: ring-bench [--seed N] [--trials N] [--nodes N] [--harder 1]\n"), 2;
  }
  return muster::ring::testing::run(options);
}

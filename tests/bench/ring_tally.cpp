// SPDX-License-Identifier: Apache-2.0
// Runs trials on all cores.
#include "tests/bench/ring_tally.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace muster::ring::testing {
namespace {

constexpr double kNamedGoal = 0.995;
constexpr int kRoundsHealthy = 2;
constexpr int kRoundsSingle = 4;

int allowedRounds(const WorldSpec& spec) {
  if (spec.plant == Plant::kNothing) return kRoundsHealthy + spec.nodes % 2;
  return isSingle(spec.plant) ? kRoundsSingle : kMostRounds;
}

}  // namespace

bool isSingle(Plant plant) {
  return plant == Plant::kOneNode || plant == Plant::kLink || plant == Plant::kNodeRail ||
         plant == Plant::kUplink;
}

Tally runWorld(const WorldSpec& spec, const Options& options) {
  Tally tally;
  tally.spec = spec;
  std::mutex mutex;
  std::atomic<int> next{0};
  const auto work = [&] {
    Tally own;
    for (int i = next++; i < options.trialsOf(spec.nodes); i = next++)
      own.add(runTrial(spec, options.seed * 1000003 + static_cast<uint64_t>(i)), allowedRounds(spec));
    const std::lock_guard lock(mutex);
    tally.add(own);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return tally;
}

bool harder(Noise noise) {
  return noise == Noise::kPersistentNormal || noise == Noise::kPersistentSkewed;
}

std::string missed(const Tally& tally) {
  std::string text;
  if (tally.spec.severity < kGoalSeverity && tally.spec.plant != Plant::kNothing) return text;
  if (tally.namedShare() < kNamedGoal) text += " NAMED";
  if (static_cast<double>(tally.wrongTrials) >= kWrongGoal * static_cast<double>(tally.trials))
    text += " WRONG";
  if (tally.slowTrials * 1000 > tally.trials) text += " ROUNDS";
  return text;
}

}  // namespace muster::ring::testing

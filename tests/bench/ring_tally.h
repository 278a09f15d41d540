// SPDX-License-Identifier: Apache-2.0
// Many trials of one simulated cluster, added up and held against the goals.
#pragma once

#include <algorithm>
#include <string>

#include "tests/bench/ring_options.h"
#include "tests/plugins/ring/ring_world.h"

namespace muster::ring::testing {

constexpr double kGoalSeverity = 0.15;
constexpr double kWrongGoal = 1e-3;  ///< trials that name anything healthy

/// All trials of one world.
struct Tally {
  WorldSpec spec;
  long trials = 0, faults = 0, named = 0, wrongTrials = 0, open = 0, rounds = 0, looks = 0;
  int mostRounds = 0;
  long slowTrials = 0;  ///< took more rounds than the goal

  void add(const TrialResult& r, int allowed) {
    ++trials;
    faults += r.faults;
    named += r.named;
    wrongTrials += r.wrong > 0 ? 1 : 0;
    open += r.unattributable;
    rounds += r.rounds;
    looks += r.looks;
    mostRounds = std::max(mostRounds, r.rounds);
    slowTrials += r.rounds > allowed ? 1 : 0;
  }
  void add(const Tally& other) {
    trials += other.trials;
    faults += other.faults;
    named += other.named;
    wrongTrials += other.wrongTrials;
    open += other.open;
    rounds += other.rounds;
    looks += other.looks;
    mostRounds = std::max(mostRounds, other.mostRounds);
    slowTrials += other.slowTrials;
  }
  [[nodiscard]] double namedShare() const {
    return faults == 0 ? 1 : static_cast<double>(named) / static_cast<double>(faults);
  }
};

Tally runWorld(const WorldSpec& spec, const Options& options);

/// Whether the plant is one fault.
bool isSingle(Plant plant);
/// Noise that is drawn once for all samples of a meeting is a harder world than the goals speak of.
bool harder(Noise noise);
/// What a tally misses of the goals; empty: nothing. Faults below the severity of the goals are only tabled
/// here; what is wrongly named for them counts over all trials.
std::string missed(const Tally& tally);

}  // namespace muster::ring::testing

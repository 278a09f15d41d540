// SPDX-License-Identifier: Apache-2.0
// What the rounds of a ring measured: the only input of its decisions, so that every rank decides alike.
#pragma once

#include <string>
#include <vector>

#include "plugins/ring/solver/pairing.h"

namespace muster::ring {

enum class Quantity { kBandwidth, kLatency };

/// One figure that every pair has: of one rail, or of all rails at once.
struct Lane {
  Quantity quantity = Quantity::kBandwidth;
  std::string rail;  ///< "0", "1" ... or "all"
  double noiseFloor =
      0.02;  ///< sigma that healthy figures may have, as a share; less is not believed of few pairs
};

struct Meeting {
  int round = 0;  ///< from 0
  Pair pair;
  int looks = 1;  ///< how often it was measured within its round
};

/// A pair that was measured again some time after the rounds, because something is about to be named.
struct Visit {
  int number = 0;  ///< from 0; pairs of one visit were measured right after each other
  Pair pair;
  double after = 0;  ///< seconds of pauses since the rounds
};

/// Meetings in the order in which they were held, with one speed per lane: B/s, or 1/s for latency; so that
/// more is always better. `spread` is the sigma of the samples behind a speed, as a share of it; 0 if
/// unknown. `excuse` is a logarithm: how much of a loss may be due to other processes on the pair's hosts;
/// nullptr: none.
class RoundLog {
 public:
  RoundLog(int nodes, Topology topology, std::vector<Lane> lanes, Coverage coverage = Coverage::kQuick)
      : nodes_(nodes),
        topology_(std::move(topology)),
        lanes_(std::move(lanes)),
        opening_(coverage == Coverage::kAll || nodes <= kAllMeet ? tournamentRounds(nodes)
                                                                 : openingRounds(nodes, topology_)) {}

  /// `speed`, `spread` and `excuse` have one value per lane.
  void add(int round, const Pair& pair, const double* speed, const double* spread,
           const double* excuse = nullptr) {
    meetings_.push_back({round, pair});
    speed_.insert(speed_.end(), speed, speed + lanes_.size());
    spread_.insert(spread_.end(), spread, spread + lanes_.size());
    append(excuse_, excuse);
    rounds_ = round >= rounds_ ? round + 1 : rounds_;
  }

  /// Another look at a pair of the round that is being held. In each lane the best look counts: what slows a
  /// pair down for good is there in all of them.
  void addLook(const Pair& pair, const double* speed, const double* spread, const double* excuse = nullptr) {
    size_t meeting = meetings_.size();
    while (!(meetings_[--meeting].pair == pair)) {
    }
    ++meetings_[meeting].looks;
    for (size_t lane = 0, at = meeting * lanes_.size(); lane < lanes_.size(); ++lane, ++at) {
      if (speed[lane] <= speed_[at]) continue;
      speed_[at] = speed[lane];
      spread_[at] = spread[lane];
      excuse_[at] = excuse == nullptr ? 0 : excuse[lane];
    }
  }

  void addVisit(const Visit& visit, const double* speed, const double* excuse = nullptr) {
    visits_.push_back(visit);
    visitSpeed_.insert(visitSpeed_.end(), speed, speed + lanes_.size());
    append(visitExcuse_, excuse);
  }

  /// Which machine each node is on, where several may share one; unless it is called, each has its own.
  void setMachines(std::vector<int> machineOf) { machineOf_ = std::move(machineOf); }
  [[nodiscard]] bool shareMachine(int x, int y) const {
    return !machineOf_.empty() && machineOf_[static_cast<size_t>(x)] == machineOf_[static_cast<size_t>(y)];
  }
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const std::vector<Lane>& lanes() const { return lanes_; }
  [[nodiscard]] const std::vector<Round>& opening() const {
    return opening_;
  }  ///< what every run begins with
  [[nodiscard]] const std::vector<Meeting>& meetings() const { return meetings_; }
  [[nodiscard]] double speed(size_t meeting, size_t lane) const {
    return speed_[meeting * lanes_.size() + lane];
  }
  [[nodiscard]] double spread(size_t meeting, size_t lane) const {
    return spread_[meeting * lanes_.size() + lane];
  }
  [[nodiscard]] double excuse(size_t meeting, size_t lane) const {
    return excuse_[meeting * lanes_.size() + lane];
  }
  [[nodiscard]] int rounds() const { return rounds_; }  ///< held so far

  [[nodiscard]] const std::vector<Visit>& visits() const { return visits_; }
  [[nodiscard]] double visitSpeed(size_t visit, size_t lane) const {
    return visitSpeed_[visit * lanes_.size() + lane];
  }
  [[nodiscard]] double visitExcuse(size_t visit, size_t lane) const {
    return visitExcuse_[visit * lanes_.size() + lane];
  }
  [[nodiscard]] int visitsHeld() const { return visits_.empty() ? 0 : visits_.back().number + 1; }

 private:
  void append(std::vector<double>& to, const double* values) const {
    if (values == nullptr)
      to.resize(to.size() + lanes_.size());
    else
      to.insert(to.end(), values, values + lanes_.size());
  }

  int nodes_;
  Topology topology_;
  std::vector<Lane> lanes_;
  std::vector<Round> opening_;
  std::vector<Meeting> meetings_;
  std::vector<double> speed_;
  std::vector<double> spread_;
  std::vector<double> excuse_;
  int rounds_ = 0;
  std::vector<int> machineOf_;
  std::vector<Visit> visits_;
  std::vector<double> visitSpeed_;
  std::vector<double> visitExcuse_;
};

/// Pairs that the opening rounds measure.
size_t openingPairs(const RoundLog& log);
/// Share of all pairs of the group that were measured.
double pairCoverage(const RoundLog& log);
/// "8 of 28 pairs (28.6%)".
std::string coverageText(size_t pairs, int nodes);

}  // namespace muster::ring

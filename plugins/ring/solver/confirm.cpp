// SPDX-License-Identifier: Apache-2.0
// See confirm.h and nextVisit() of solver.h.
#include "plugins/ring/solver/confirm.h"
#include "runner/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace muster::ring {
namespace {

constexpr double kStays = 1.0 / 3;  ///< of its loss that a culprit must show in each visit
constexpr double kComparable =
    0.5;  ///< of a culprit's loss: a healthy pair that lost so much had a transient
constexpr size_t kFewestForDrift = 3;
// Transients before any was counted: one figure in 40 is believed to be one, with the weight of 20 figures;
// and half of them to last for 4 seconds, a tenth for 36, with the weight of 4 observations.
constexpr double kPriorTransients = 0.5;
constexpr double kPriorVisits = 20;
constexpr double kHalfLast = 4;
constexpr double kPriorMoves = 4;

/// Whether more visits can make it a fault: the confidence of what is named grows with them.
bool mayBeFault(const Culprit& culprit) {
  return isNamed(culprit) || !culprit.undecided;
}

/// Whether the pair would show it again: a node is not seen where the way across leaves is no faster.
bool shows(const Culprit& culprit, const Pair& pair, const Topology& topology) {
  if (culprit.shownBy.empty()) return slowsDown(culprit, pair, topology);
  return std::find(culprit.shownBy.begin(), culprit.shownBy.end(), pair) != culprit.shownBy.end();
}

/// Whether nothing is known against the pair. What is not located is no example of a healthy pair, but where
/// it comes and goes, of a transient: `open` counts it as healthy.
bool healthy(const std::vector<Culprit>& culprits, const Pair& pair, const Topology& topology,
             bool open = false) {
  return std::none_of(culprits.begin(), culprits.end(), [&](const Culprit& culprit) {
    return !(open && !isNamed(culprit)) && slowsDown(culprit, pair, topology);
  });
}

/// Pairs that were measured, each once.
std::vector<Pair> measuredPairs(const RoundLog& log) {
  std::vector<Pair> pairs;
  std::set<std::pair<int, int>> seen;
  for (const Meeting& meeting : log.meetings())
    if (seen.insert({meeting.pair.a, meeting.pair.b}).second) pairs.push_back(meeting.pair);
  return pairs;
}

/// One visit: rounds right after each other, until each culprit was measured once, with healthy pairs beside
/// it.
class VisitPlan {
 public:
  VisitPlan(const RoundLog& log, const std::vector<Culprit>& culprits)
      : log_(log), culprits_(culprits), pairs_(measuredPairs(log)) {}

  std::vector<Round> build() {
    std::vector<const Culprit*> left;
    for (const Culprit& culprit : culprits_)
      if (mayBeFault(culprit)) left.push_back(&culprit);
    while (!left.empty()) {
      begin();
      std::erase_if(left, [&](const Culprit* culprit) { return holdOneOf(*culprit); });
      if (rounds_.back().empty()) {  // nothing can be measured for those that are left
        rounds_.pop_back();
        break;
      }
      fill();
    }
    // What the healthy reach at about the same time, where they could not be measured beside it.
    begin();
    fill();
    if (rounds_.back().empty()) rounds_.pop_back();
    return std::move(rounds_);
  }

 private:
  void begin() {
    rounds_.emplace_back();
    busy_.assign(static_cast<size_t>(log_.nodes()), false);
  }
  [[nodiscard]] bool free(const Pair& pair) const {
    return !busy_[static_cast<size_t>(pair.a)] && !busy_[static_cast<size_t>(pair.b)];
  }
  void hold(const Pair& pair) {
    busy_[static_cast<size_t>(pair.a)] = busy_[static_cast<size_t>(pair.b)] = true;
    rounds_.back().push_back(pair);
  }

  /// Another of its pairs in each visit, and rather one that no other culprit concerns.
  bool holdOneOf(const Culprit& culprit) {
    const auto first = static_cast<size_t>(log_.visitsHeld());
    for (const bool alone : {true, false})
      for (size_t i = 0; i < pairs_.size(); ++i) {
        const Pair& pair = pairs_[(first + i) % pairs_.size()];
        if (!free(pair) || !shows(culprit, pair, log_.topology())) continue;
        const auto all = std::count_if(culprits_.begin(), culprits_.end(), [&](const Culprit& other) {
          return slowsDown(other, pair, log_.topology());
        });
        if (alone && all > 1) continue;
        hold(pair);
        return true;
      }
    return false;
  }

  void fill() {
    const auto first = static_cast<size_t>(log_.visitsHeld()) * 7 + rounds_.size();
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const Pair& pair = pairs_[(first + i) % pairs_.size()];
      if (free(pair) && healthy(culprits_, pair, log_.topology())) hold(pair);
    }
  }

  const RoundLog& log_;
  const std::vector<Culprit>& culprits_;
  const std::vector<Pair> pairs_;
  std::vector<Round> rounds_;
  std::vector<bool> busy_;
};

/// The visits of one lane, as losses against what the healthy pairs did at the same time.
class LaneVisits {
 public:
  LaneVisits(const RoundLog& log, const LaneFigures& figures, size_t lane,
             const std::vector<Culprit>& culprits)
      : log_(log), figures_(figures), lane_(lane), culprits_(culprits) {
    for (size_t m = 0; m < log.meetings().size(); ++m) {
      const Pair& pair = log.meetings()[m].pair;
      auto& [sum, count] = before_[{pair.a, pair.b}];
      sum += figures.loss[m];
      ++count;
    }
    std::vector<std::vector<double>> drifts(static_cast<size_t>(log.visitsHeld()));
    for (size_t v = 0; v < log.visits().size(); ++v) {
      const Visit& visit = log.visits()[v];
      if (healthyPair(visit.pair)) drifts[at(visit)].push_back(raw(v) - usual(visit.pair));
    }
    for (const auto& drift : drifts) {
      // Of one or two, nobody can say whether they or all the others drift.
      drift_.push_back(drift.size() < kFewestForDrift ? 0 : medianOf(drift));
    }
  }

  [[nodiscard]] bool healthyPair(const Pair& pair, bool open = false) const {
    return healthy(culprits_, pair, log_.topology(), open);
  }
  [[nodiscard]] double loss(size_t v) const { return raw(v) - drift_[at(log_.visits()[v])]; }
  [[nodiscard]] double excuse(size_t v) const { return log_.visitExcuse(v, lane_); }

 private:
  static size_t at(const Visit& visit) { return static_cast<size_t>(visit.number); }
  [[nodiscard]] double raw(size_t v) const {
    const bool crosses = log_.topology().crosses(log_.visits()[v].pair);
    return figures_.baseline(crosses).center - std::log(log_.visitSpeed(v, lane_));
  }
  [[nodiscard]] double usual(const Pair& pair) const {
    const auto known = before_.find({pair.a, pair.b});
    return known == before_.end() ? 0 : known->second.first / known->second.second;
  }

  const RoundLog& log_;
  const LaneFigures& figures_;
  size_t lane_;
  const std::vector<Culprit>& culprits_;
  std::map<std::pair<int, int>, std::pair<double, int>>
      before_;                 ///< sum of losses in the rounds, and how many
  std::vector<double> drift_;  ///< by visit
};

/// How often healthy components were transiently as slow as `loss`, and how often they still were in the next
/// visit.
struct Transients {
  double figures = 0, slow = 0, moves = 0, stays = 0;

  [[nodiscard]] double chance() const { return (slow + kPriorTransients) / (figures + kPriorVisits + 1); }
  /// That one lasts through `visits`, the last of them so many seconds after the rounds. Many that were short
  /// say nothing of the long ones, which are the ones that look like a fault.
  [[nodiscard]] double lasts(int visits, double seconds) const {
    if (visits == 0) return 1;
    const double prior = 1 / (1 + seconds / kHalfLast);
    const double each = std::pow(prior, 1.0 / visits);
    return std::max(prior, std::pow((stays + kPriorMoves * each) / (moves + kPriorMoves), visits));
  }
};

Transients transientsOf(const RoundLog& log, const LaneFigures& figures, const LaneVisits& visits,
                        double loss) {
  Transients seen;
  for (size_t m = 0; m < log.meetings().size(); ++m) {
    if (!visits.healthyPair(log.meetings()[m].pair, true)) continue;
    ++seen.figures;
    seen.slow += figures.loss[m] > kComparable * loss ? 1 : 0;
  }
  std::vector<std::set<int>> met(static_cast<size_t>(log.visitsHeld())), slow(met);
  for (size_t v = 0; v < log.visits().size(); ++v) {
    const Visit& visit = log.visits()[v];
    if (!visits.healthyPair(visit.pair, true)) continue;
    const bool transient = visits.loss(v) > kComparable * loss;
    ++seen.figures;
    seen.slow += transient ? 1 : 0;
    for (const int node : {visit.pair.a, visit.pair.b}) {
      met[static_cast<size_t>(visit.number)].insert(node);
      if (transient) slow[static_cast<size_t>(visit.number)].insert(node);
    }
  }
  for (size_t number = 0; number + 1 < met.size(); ++number)
    for (const int node : slow[number]) {
      if (met[number + 1].count(node) == 0) continue;
      ++seen.moves;
      seen.stays += slow[number + 1].count(node) > 0 ? 1 : 0;
    }
  return seen;
}

/// How many healthy components of the culprit's kind could have been named by chance.
double candidates(const RoundLog& log, const Culprit& culprit) {
  switch (culprit.kind) {
    case Culprit::Kind::kLink:
      return static_cast<double>(measuredPairs(log).size());
    case Culprit::Kind::kLeafUplink:
      return static_cast<double>(log.topology().names.size());
    default:
      return log.nodes();
  }
}

}  // namespace

Support supportOf(const RoundLog& log, const LaneFigures& figures, size_t lane, const Culprit& culprit,
                  const std::vector<Culprit>& culprits) {
  const LaneVisits visits(log, figures, lane, culprits);
  const double loss = -std::log(1 - culprit.loss);
  double seconds = 0;
  std::map<int, std::pair<double, double>> least;  // visit -> loss and excuse of the pair that lost least
  for (size_t v = 0; v < log.visits().size(); ++v) {
    const Visit& visit = log.visits()[v];
    if (!shows(culprit, visit.pair, log.topology())) continue;
    seconds = visit.after;
    const std::pair seen = {visits.loss(v), visits.excuse(v)};
    const auto [it, fresh] = least.try_emplace(visit.number, seen);
    if (!fresh) it->second = std::min(it->second, seen);
  }
  Support support;
  for (const auto& [number, seen] : least) {
    const auto& [lost, excuse] = seen;
    if (lost > kStays * loss && lost - excuse <= kStays * loss) {
      ++support.disturbed;
      continue;
    }
    ++support.visits;
    support.slow += lost > kStays * loss ? 1 : 0;
  }
  const Transients transients = transientsOf(log, figures, visits, loss);
  support.transient = std::min(1.0, candidates(log, culprit) * transients.chance()) *
                      transients.lasts(support.slow, support.slow > 0 ? seconds : 0);
  return support;
}

bool hasCommonCause(const RoundLog& log, const Culprit& culprit, const std::vector<Culprit>& culprits) {
  const auto isNode = [](const Culprit& c) {
    return c.kind == Culprit::Kind::kNode || c.kind == Culprit::Kind::kNodeRail;
  };
  return isNode(culprit) && std::any_of(culprits.begin(), culprits.end(), [&](const Culprit& other) {
           return isNode(other) && other.nodes[0] != culprit.nodes[0] &&
                  log.shareMachine(other.nodes[0], culprit.nodes[0]);
         });
}

std::vector<Round> nextVisit(const RoundLog& log) {
  if (log.visitsHeld() >= kVisits) return {};
  const std::vector<Culprit> culprits = solve(log);
  if (std::none_of(culprits.begin(), culprits.end(), mayBeFault)) return {};
  return VisitPlan(log, culprits).build();
}

double visitTime(int visit, double whole) {
  return whole * (std::exp2(visit + 1) - 1) / (std::exp2(kVisits) - 1);
}

}  // namespace muster::ring

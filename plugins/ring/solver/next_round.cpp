// SPDX-License-Identifier: Apache-2.0
// The schedule: opening rounds, then the meetings that would answer open questions.
#include <algorithm>
#include <set>

#include "plugins/ring/solver/lane_analysis.h"
#include "plugins/ring/solver/solver.h"

namespace muster::ring {
namespace {

/// Fills one round with wishes.
class Matchmaker {
 public:
  Matchmaker(const RoundLog& log, const MeetingsByNode& meetingsByNode, Round round)
      : log_(log),
        meetingsByNode_(meetingsByNode),
        busy_(size(log)),
        suspect_(size(log)),
        wanted_(size(log)),
        round_(std::move(round)) {
    for (const Pair& pair : round_) busy_[at(pair.a)] = busy_[at(pair.b)] = true;
  }

  void suspect(const std::vector<int>& nodes) {
    for (int node : nodes) suspect_[at(node)] = true;
  }

  /// Inconclusive pairs are remeasured if both nodes are idle in a round that is held anyway, before another
  /// round's figures make them slow.
  Round serve(std::vector<Wish> wishes, const std::vector<Pair>& inconclusive) {
    std::stable_sort(wishes.begin(), wishes.end(),
                     [](const Wish& x, const Wish& y) { return x.weight > y.weight; });
    for (const Wish& wish : wishes)
      for (int node : {wish.pair.a, wish.pair.b})
        if (node >= 0) wanted_[at(node)] = true;
    // Distinct healthy partners first; who finds none may meet a node that is only accused through others.
    for (const bool healthy : {true, false})
      for (const Wish& wish : wishes) serveOne(wish, healthy);
    if (round_.empty()) return {};
    for (const Pair& pair : inconclusive) serveOne({Wish::Kind::kAgain, pair, 0}, true);
    return std::move(round_);
  }

 private:
  static size_t size(const RoundLog& log) { return static_cast<size_t>(log.nodes()); }
  static size_t at(int node) { return static_cast<size_t>(node); }

  void serveOne(const Wish& wish, bool healthy) {
    const int node = wish.pair.a;
    if (busy_[at(node)]) return;
    if (wish.kind == Wish::Kind::kAgain) {
      if (!busy_[at(wish.pair.b)]) hold(wish.pair);
      return;
    }
    const int partner = findPartner(node, wish.kind == Wish::Kind::kHealthyCrossLeaf, healthy);
    if (partner >= 0) hold(makePair(node, partner));
  }

  void hold(const Pair& pair) {
    busy_[at(pair.a)] = busy_[at(pair.b)] = true;
    round_.push_back(pair);
  }

  [[nodiscard]] bool isFree(int node, int partner) const {
    return partner != node && !busy_[at(partner)] && !meetingsByNode_.met(log_, node, partner);
  }
  [[nodiscard]] bool fits(int node, int partner, bool healthy) const {
    return isFree(node, partner) && !wanted_[at(partner)] && (!healthy || !suspect_[at(partner)]);
  }

  /// Of nodes that are named in the order of their cabling, those behind one uplink are on one side.
  [[nodiscard]] bool metFewerBelow(int node) const {
    int below = 0, all = 0;
    for (size_t m : meetingsByNode_.of(node)) {
      const Pair& pair = log_.meetings()[m].pair;
      below += isBelow(node, pair.a == node ? pair.b : pair.a, log_.nodes()) ? 1 : 0;
      ++all;
    }
    return 2 * below <= all;
  }

  /// Inside the leaf where that is possible, though with another suspect, so that no uplink has a say; across
  /// where the wish asks for it. Without a topology the nearest, on that side where it has met fewer.
  [[nodiscard]] int findPartner(int node, bool across, bool healthy) const {
    const int sign = !log_.topology().known() && metFewerBelow(node) ? -1 : 1;
    int ofLeaf = -1, otherwise = -1;
    for (int step = 1; step < log_.nodes(); ++step) {
      const int partner = (node + sign * step + log_.nodes()) % log_.nodes();
      const bool crosses = log_.topology().crosses(makePair(node, partner));
      if (ofLeaf < 0 && log_.topology().known() && !crosses && isFree(node, partner)) ofLeaf = partner;
      if (!fits(node, partner, healthy)) continue;
      if (crosses == across) return partner;
      if (otherwise < 0) otherwise = partner;
    }
    if (across) return -1;
    return ofLeaf >= 0 ? ofLeaf : otherwise;
  }

  const RoundLog& log_;
  const MeetingsByNode& meetingsByNode_;
  std::vector<bool> busy_;
  std::vector<bool> suspect_;
  std::vector<bool> wanted_;  ///< waits for a partner, so it is none
  Round round_;
};

/// The same wish of several lanes is one meeting; the heaviest counts.
void merge(std::vector<Wish>& all, const std::vector<Wish>& more) {
  for (const Wish& wish : more) {
    const auto it = std::find_if(all.begin(), all.end(), [&](const Wish& known) {
      return known.kind == wish.kind && known.pair == wish.pair;
    });
    if (it == all.end())
      all.push_back(wish);
    else
      it->weight = std::max(it->weight, wish.weight);
  }
}

}  // namespace

Round nextRound(const RoundLog& log) {
  const std::vector<Round>& opening = log.opening();
  const auto held = static_cast<size_t>(log.rounds());
  if (held >= opening.size() + kMostRounds) return {};
  Round round = held < opening.size() ? opening[held] : Round();
  if (held < 2 || 2 * round.size() + 1 >= static_cast<size_t>(log.nodes())) return round;  // nobody is idle
  const MeetingsByNode meetingsByNode(log);
  Matchmaker matchmaker(log, meetingsByNode, std::move(round));
  std::vector<Wish> wishes;
  std::vector<Pair> inconclusive;
  for (const LaneFindings& found : analyseLanes(log, meetingsByNode)) {
    matchmaker.suspect(found.suspects);
    merge(wishes, found.wishes);
    inconclusive.insert(inconclusive.end(), found.inconclusive.begin(), found.inconclusive.end());
  }
  return matchmaker.serve(std::move(wishes), inconclusive);
}

}  // namespace muster::ring

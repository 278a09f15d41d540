// SPDX-License-Identifier: Apache-2.0
// The reasoning, one lane at a time. A pair is slow when its loss is no chance. A slow pair accuses its link
// and both its nodes; a node is cleared by pairs that are fine, condemned by three partners with whom it is
// slow.
#include "plugins/ring/lane_analysis.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace muster::ring {
namespace {

constexpr double kMostEvidence = 12;   ///< of one figure: log odds, so that no single one decides against two
constexpr double kClearsOne = 10;      ///< evidence that clears a node with one slow pair
constexpr double kClearsMany = 16;     ///< and with several: no single fine figure is enough
constexpr double kSecondFault = 6.9;   ///< log odds against one more fault: one in a thousand
constexpr int kCondemning = 3;         ///< slow partners
constexpr size_t kMostMeetings = 9;    ///< of a node, before its question is left open
constexpr double kUplinkShare = 0.75;  ///< of a leaf's pairs across
constexpr int kUplinkWishes = 4;
constexpr int kMostAcross = 64;     ///< meetings of a leaf, before its question is left open
constexpr double kSlowAgain = 3.5;  ///< sigmas that a figure must lose to confirm what another one said
constexpr size_t kFewestForBaseline = 4;

/// A pair that was slow whenever it was measured.
struct SlowPair {
  Pair pair;
  double loss = 0;  ///< mean
  int times = 0;
  bool explained = false;
};

/// What is known of an accused node, beside what others explain.
struct Testimony {
  double loss = 0;  ///< the least of its slow pairs'
  std::vector<int> slowWith;
  std::vector<int> fineWith;
  double fine = 0;  ///< log odds that it has not this loss
  size_t meetings = 0;

  [[nodiscard]] bool cleared() const { return fine >= (slowWith.size() > 1 ? kClearsMany : kClearsOne); }
};

/// Log odds that a figure which lost `lost` has not the loss `loss`.
double fineEvidence(double loss, double lost, double sigma) {
  return std::min(kMostEvidence, loss * (loss - 2 * std::max(0.0, lost)) / (2 * sigma * sigma));
}

/// What is known of an accused uplink.
struct LeafTestimony {
  double loss = 0;  ///< mean of the slow pairs across
  double fine = 0;  ///< log odds that it has not the loss it is accused of
  int across = 0, slowAcross = 0, inside = 0, slowInside = 0;
  std::set<int> members, partners, rounds;  ///< of the slow pairs across
};

class LaneAnalysis {
 public:
  LaneAnalysis(const RoundLog& log, const Encounters& encounters, size_t lane, size_t openingMeetings)
      : log_(log), encounters_(encounters), lane_(lane) {
    findBaselines(openingMeetings);
  }

  LaneFindings run() {
    findSlowPairs();
    if (slow_.empty() && found_.unrepeated.empty()) return std::move(found_);
    findSuspects();
    judgeLeaves();
    condemnNodes();
    judgeRest();
    return std::move(found_);
  }

 private:
  [[nodiscard]] const Meeting& meeting(size_t m) const { return log_.meetings()[m]; }
  [[nodiscard]] const Baseline& baseline(const Pair& pair) const {
    return log_.topology().crosses(pair) ? found_.crossLeaf : found_.sameLeaf;
  }
  [[nodiscard]] double loss(size_t m) const { return loss_[m]; }

  void findBaselines(size_t openingMeetings);
  void findSlowPairs();
  void findSuspects();
  void judgeLeaves();
  void judgeLeaf(int leaf, const std::vector<size_t>& slowPairs);
  [[nodiscard]] LeafTestimony hearLeaf(int leaf, double loss, const Pair* without) const;
  void wishAcross(int leaf, const std::set<int>& members);
  bool uplinksCleared(const SlowPair& slow);
  void condemnNodes();
  void judgeRest();
  void judgePair(const SlowPair& slow);
  void wishFor(int node, const Testimony& testimony);

  [[nodiscard]] bool explainedMeeting(size_t m, int node) const;
  [[nodiscard]] Testimony hear(int node) const;
  [[nodiscard]] bool condemned(int node) const { return condemned_.count(node) == 1; }
  [[nodiscard]] double evidence(double loss, double sigma) const {
    return std::min(kMostEvidence, loss * loss / (2 * sigma * sigma));
  }

  const RoundLog& log_;
  const Encounters& encounters_;
  size_t lane_;
  std::vector<double> loss_;  ///< by meeting
  std::vector<SlowPair> slow_;
  std::map<int, std::vector<size_t>> slowOf_;  ///< node -> its slow pairs
  std::set<int> condemned_;
  std::set<int> badLeaves_;
  std::set<int> wished_;
  std::set<int> wishedLeaves_;
  LaneFindings found_;
};

void LaneAnalysis::findBaselines(size_t openingMeetings) {
  const size_t count = log_.meetings().size();
  std::vector<double> logs(count);
  std::vector<double> spreads;
  std::vector<double> same, cross;
  for (size_t m = 0; m < count; ++m) {
    logs[m] = std::log(log_.speed(m, lane_));
    if (m >= openingMeetings) continue;
    (log_.topology().crosses(meeting(m).pair) ? cross : same).push_back(logs[m]);
    spreads.push_back(log_.spread(m, lane_));
  }
  double floor = log_.lanes()[lane_].noiseFloor;
  if (!spreads.empty()) {
    const auto half = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() / 2);
    std::nth_element(spreads.begin(), half, spreads.end());
    floor = std::max(floor, *half);
  }
  const auto lanes = std::count_if(log_.lanes().begin(), log_.lanes().end(), [&](const Lane& lane) {
    return lane.quantity == log_.lanes()[lane_].quantity;
  });
  const size_t family = (same.size() + cross.size()) * static_cast<size_t>(lanes);
  if (same.size() < kFewestForBaseline || cross.size() < kFewestForBaseline) {
    same.insert(same.end(), cross.begin(), cross.end());
    found_.sameLeaf = found_.crossLeaf = findBaseline(std::move(same), floor, family);
  } else {
    found_.sameLeaf = findBaseline(std::move(same), floor, family);
    found_.crossLeaf = findBaseline(std::move(cross), floor, family);
  }
  loss_.resize(count);
  for (size_t m = 0; m < count; ++m) loss_[m] = baseline(meeting(m).pair).center - logs[m];
}

/// A pair that was slow and, measured again, was not, is noted and accuses nobody.
void LaneAnalysis::findSlowPairs() {
  std::set<std::pair<int, int>> seen;
  for (size_t m = 0; m < loss_.size(); ++m) {
    const Pair& pair = meeting(m).pair;
    if (loss(m) <= baseline(pair).threshold || !seen.insert({pair.a, pair.b}).second) continue;
    double sum = 0;
    double least = loss(m);
    double most = loss(m);
    int times = 0;
    for (size_t other : encounters_.of(pair.a)) {
      if (!(meeting(other).pair == pair)) continue;
      sum += loss(other);
      least = std::min(least, loss(other));
      most = std::max(most, loss(other));
      ++times;
    }
    if (least > std::max(most / 2, kSlowAgain * baseline(pair).sigma))
      slow_.push_back({pair, sum / times, times, false});
    else
      found_.unrepeated.push_back(pair);
  }
}

void LaneAnalysis::findSuspects() {
  for (size_t i = 0; i < slow_.size(); ++i)
    for (int node : {slow_[i].pair.a, slow_[i].pair.b}) slowOf_[node].push_back(i);
  for (const auto& [node, pairs] : slowOf_) found_.suspects.push_back(node);
}

/// Whether something else than `node` accounts for this meeting.
bool LaneAnalysis::explainedMeeting(size_t m, int node) const {
  const Pair& pair = meeting(m).pair;
  const int other = pair.a == node ? pair.b : pair.a;
  if (condemned(other) && !condemned(node)) return true;
  if (!log_.topology().crosses(pair)) return false;
  return badLeaves_.count(log_.topology().leaf(node)) == 1 ||
         badLeaves_.count(log_.topology().leaf(other)) == 1;
}

Testimony LaneAnalysis::hear(int node) const {
  Testimony testimony;
  testimony.loss = 1e9;
  for (size_t i : slowOf_.at(node))
    if (!slow_[i].explained) testimony.loss = std::min(testimony.loss, slow_[i].loss);
  for (size_t m : encounters_.of(node)) {
    ++testimony.meetings;
    if (explainedMeeting(m, node)) continue;
    const Pair& pair = meeting(m).pair;
    const Baseline& base = baseline(pair);
    const int other = pair.a == node ? pair.b : pair.a;
    const double lost = std::max(0.0, loss(m));
    const bool slow = lost > base.threshold || lost > std::max(testimony.loss / 2, kSlowAgain * base.sigma);
    if (!slow && lost > testimony.loss / 2) continue;  // says neither
    auto& list = slow ? testimony.slowWith : testimony.fineWith;
    if (std::find(list.begin(), list.end(), other) == list.end()) list.push_back(other);
    if (!slow) testimony.fine += fineEvidence(testimony.loss, lost, base.sigma);
  }
  return testimony;
}

void LaneAnalysis::judgeLeaves() {
  if (!log_.topology().known()) return;
  std::map<int, std::vector<size_t>> byLeaf;
  for (size_t i = 0; i < slow_.size(); ++i) {
    if (!log_.topology().crosses(slow_[i].pair)) continue;
    for (int node : {slow_[i].pair.a, slow_[i].pair.b}) byLeaf[log_.topology().leaf(node)].push_back(i);
  }
  for (const auto& [leaf, pairs] : byLeaf) judgeLeaf(leaf, pairs);
  for (SlowPair& slow : slow_)
    for (int node : {slow.pair.a, slow.pair.b})
      slow.explained |=
          log_.topology().crosses(slow.pair) && badLeaves_.count(log_.topology().leaf(node)) == 1;
}

/// Pairs of a leaf's nodes, seen under the suspicion that its uplink costs `loss`.
LeafTestimony LaneAnalysis::hearLeaf(int leaf, double loss, const Pair* without) const {
  const Topology& topology = log_.topology();
  LeafTestimony t;
  double sum = 0;
  for (size_t m = 0; m < loss_.size(); ++m) {
    const Pair& pair = meeting(m).pair;
    const bool a = topology.leaf(pair.a) == leaf;
    const bool b = topology.leaf(pair.b) == leaf;
    if ((!a && !b) || (without != nullptr && pair == *without)) continue;
    const double sigma = baseline(pair).sigma;
    const bool slow = this->loss(m) > loss / 2;  // many pairs judge together: half is enough for each
    if (a && b) {
      ++t.inside;
      t.slowInside += slow ? 1 : 0;
      continue;
    }
    ++t.across;
    if (!slow) {
      t.fine += fineEvidence(loss, this->loss(m), sigma);
      continue;
    }
    ++t.slowAcross;
    sum += this->loss(m);
    t.members.insert(a ? pair.a : pair.b);
    t.partners.insert(topology.leaf(a ? pair.b : pair.a));
    t.rounds.insert(meeting(m).round);
  }
  t.loss = t.slowAcross > 0 ? sum / t.slowAcross : 0;
  return t;
}

/// An uplink is to blame when nearly all pairs across are slow, of two nodes or more and with two leaves or
/// more, while pairs inside the leaf are fine.
void LaneAnalysis::judgeLeaf(int leaf, const std::vector<size_t>& slowPairs) {
  double loss = 1e9;
  for (size_t i : slowPairs) loss = std::min(loss, slow_[i].loss);
  const LeafTestimony t = hearLeaf(leaf, loss, nullptr);
  if (t.members.size() < 2 || t.partners.size() < 2 || t.inside == 0) return;
  if (t.slowAcross < kUplinkShare * t.across || t.slowInside > (1 - kUplinkShare) * t.inside) return;
  badLeaves_.insert(leaf);
  if (t.rounds.size() > 1 && t.slowAcross > 2) {
    const double strength =
        std::min(t.slowAcross * evidence(t.loss, found_.crossLeaf.sigma), (t.slowAcross - 1) * kSecondFault);
    found_.leaves.push_back({leaf, t.loss, strength, t.slowAcross, t.across});
    return;
  }
  wishAcross(leaf, t.members);
}

void LaneAnalysis::wishAcross(int leaf, const std::set<int>& members) {
  if (!wishedLeaves_.insert(leaf).second) return;
  int wishes = 0;
  for (int node : members)
    if (wishes++ < kUplinkWishes) found_.wishes.push_back({Wish::Kind::kHealthyCrossLeaf, {node, -1}, 2});
}

/// Whether the uplink of neither node's leaf can be what makes a pair across slow; asks for more meetings of
/// their leaves where that is open.
bool LaneAnalysis::uplinksCleared(const SlowPair& slow) {
  const Topology& topology = log_.topology();
  if (!topology.crosses(slow.pair)) return true;
  bool cleared = true;
  for (int node : {slow.pair.a, slow.pair.b}) {
    const int leaf = topology.leaf(node);
    const auto size = std::count(topology.leafOf.begin(), topology.leafOf.end(), leaf);
    const LeafTestimony t = hearLeaf(leaf, slow.loss, &slow.pair);
    const bool fine = t.fine >= kClearsOne && t.slowAcross <= (1 - kUplinkShare) * t.across;
    if (size < 2 || fine) continue;
    cleared = false;
    if (t.across > kMostAcross) continue;  // enough was asked: it stays open
    std::set<int> members;
    for (int other = 0; other < log_.nodes(); ++other)
      if (topology.leaf(other) == leaf) members.insert(other);
    wishAcross(leaf, members);
  }
  return cleared;
}

/// Names nodes that are slow with three partners (with all, where there are fewer), one of whom is himself
/// well. Two adjacent bad links look like a bad node until the node meets a third partner.
void LaneAnalysis::condemnNodes() {
  const int needed = std::min(kCondemning, log_.nodes() - 1);
  std::vector<NodeFault> found;
  for (const auto& [suspect, pairs] : slowOf_) {
    if (std::all_of(pairs.begin(), pairs.end(), [&](size_t i) { return slow_[i].explained; })) continue;
    const int node = suspect;  // C++20 lets a lambda see a structured binding, clang 14 does not
    Testimony t = hear(node);
    const auto slow = static_cast<int>(t.slowWith.size());
    const auto fine = static_cast<int>(t.fineWith.size());
    // A bad node is slow inside its leaf too; one that is slow across only may hang on a bad uplink.
    const bool fineInside = std::any_of(t.fineWith.begin(), t.fineWith.end(), [&](int partner) {
      return log_.topology().known() && !log_.topology().crosses(makePair(node, partner));
    });
    if (needed < 2 || slow < needed + 2 * fine || fineInside) continue;
    const bool vouched = std::any_of(t.slowWith.begin(), t.slowWith.end(), [&](int partner) {
      return slowOf_.count(partner) == 0 || hear(partner).fine >= kClearsOne ||
             slowOf_.at(partner).size() == 1;
    });
    if (!vouched) continue;
    const double strength =
        std::min(slow * evidence(t.loss, found_.sameLeaf.sigma), (slow - 1) * kSecondFault) -
        fine * kSecondFault;
    double sum = 0;
    for (size_t i : pairs) sum += slow_[i].loss;
    found.push_back({node, sum / static_cast<double>(pairs.size()), strength, t.slowWith, t.fineWith});
  }
  for (const NodeFault& fault : found) condemned_.insert(fault.node);
  found_.nodes = std::move(found);
  for (SlowPair& slow : slow_) slow.explained |= condemned(slow.pair.a) || condemned(slow.pair.b);
}

void LaneAnalysis::judgeRest() {
  for (const SlowPair& slow : slow_)
    if (!slow.explained) judgePair(slow);
}

void LaneAnalysis::wishFor(int node, const Testimony& testimony) {
  if (!wished_.insert(node).second) return;
  found_.wishes.push_back(
      {Wish::Kind::kHealthyPartner, {node, -1}, static_cast<int>(testimony.slowWith.size())});
}

/// A slow pair that no node and no leaf explains: its link, once both nodes are cleared and it is slow again.
void LaneAnalysis::judgePair(const SlowPair& slow) {
  const Testimony a = hear(slow.pair.a);
  const Testimony b = hear(slow.pair.b);
  const double sigma = baseline(slow.pair).sigma;
  const bool cleared = a.cleared() && b.cleared() && uplinksCleared(slow);
  if (cleared && slow.times > 1) {
    const double strength = std::min({slow.times * evidence(slow.loss, sigma), a.fine, b.fine});
    found_.links.push_back({slow.pair, slow.loss, strength, slow.times});
    return;
  }
  OpenFault open{slow.pair, slow.loss, {}};
  if (a.cleared() && b.cleared() && slow.times < 2)
    found_.wishes.push_back({Wish::Kind::kAgain, slow.pair, 1});
  for (const auto& [node, testimony] : {std::pair{slow.pair.a, &a}, {slow.pair.b, &b}}) {
    if (testimony->cleared()) continue;
    open.suspects.push_back(node);
    if (testimony->meetings < kMostMeetings) wishFor(node, *testimony);
  }
  found_.open.push_back(std::move(open));
}

}  // namespace

LaneFindings analyseLane(const RoundLog& log, const Encounters& encounters, size_t lane,
                         size_t openingMeetings) {
  return LaneAnalysis(log, encounters, lane, openingMeetings).run();
}

}  // namespace muster::ring

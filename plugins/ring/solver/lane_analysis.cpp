// SPDX-License-Identifier: Apache-2.0
// The reasoning, one lane at a time. A pair is slow when its loss is no chance. A slow pair accuses its link
// and both its nodes; a node is cleared by pairs that are fine, condemned by three partners with whom it is
// slow.
#include "plugins/ring/solver/lane_analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plugins/ring/solver/evidence.h"
#include "plugins/ring/solver/slow_pairs.h"
#include "plugins/ring/solver/uplinks.h"

namespace muster::ring {
namespace {

constexpr double kClearsMany = 16;   ///< evidence that clears a node with several slow pairs
constexpr int kCondemning = 3;       ///< slow partners
constexpr int kOnEachSide = 2;       ///< of them, where an uplink that is not known may be slow, too
constexpr int kHasSides = 12;        ///< nodes, of which so many can be asked beside other suspects
constexpr size_t kMostMeetings = 9;  ///< of a node, before its question is left open

/// Evidence about an accused node, without what other faults explain.
struct NodeEvidence {
  double loss = 0;       ///< the least of its slow pairs'
  double lossInAll = 0;  ///< the same, against pairs of one leaf, which may be faster than those across
  std::vector<int> slowWith;
  std::vector<int> fineWith;
  double fine = 0;  ///< log odds that it has not this loss
  size_t meetings = 0;
  bool isSlowInside = false, isFineInside = false;  ///< with a node of its leaf; no uplink has a say there

  [[nodiscard]] bool cleared() const { return fine >= (slowWith.size() > 1 ? kClearsMany : kClearsOne); }
  [[nodiscard]] bool onlyOnce() const { return slowWith.size() == 1 && !fineWith.empty(); }
};

class LaneAnalysis {
 public:
  LaneAnalysis(const RoundLog& log, const MeetingsByNode& meetingsByNode, const LaneFigures& figures)
      : log_(log), meetingsByNode_(meetingsByNode), figures_(figures), uplinks_(log, figures, found_) {}

  LaneFindings run() {
    SlowPairs pairs = findSlowPairs(log_, meetingsByNode_, figures_);
    slow_ = std::move(pairs.slow);
    found_.unrepeated = std::move(pairs.unrepeated);
    found_.inconclusive = std::move(pairs.inconclusive);
    found_.disturbed = std::move(pairs.disturbed);
    for (size_t i = 0; i < slow_.size(); ++i)
      for (int node : {slow_[i].pair.a, slow_[i].pair.b}) slowOf_[node].push_back(i);
    uplinks_.judge(slow_, condemned_);
    condemnNodes();
    for (const auto& [node, of] : slowOf_)
      if (condemned(node) || std::any_of(of.begin(), of.end(), [&](size_t i) { return !slow_[i].explained; }))
        found_.suspects.push_back(node);
    for (const SlowPair& slow : slow_)
      if (!slow.explained) judgePair(slow);
    askUntried();
    return std::move(found_);
  }

 private:
  [[nodiscard]] const Baseline& baseline(const Pair& pair) const {
    return figures_.baseline(log_.topology().crosses(pair));
  }

  /// By how much healthy pairs like this one are slower than those of one leaf.
  [[nodiscard]] double slowerWay(const Pair& pair) const {
    return std::max(0.0, figures_.sameLeaf.center - baseline(pair).center);
  }
  /// Whether no uplink has a say in the pair.
  [[nodiscard]] bool isInside(const Pair& pair) const {
    return log_.topology().known() && !log_.topology().crosses(pair);
  }
  /// Whether it shares its leaf with other nodes of this run.
  [[nodiscard]] bool hasLeaf(int node) const {
    if (!log_.topology().known()) return false;
    const std::vector<int>& leafOf = log_.topology().leafOf;
    return std::count(leafOf.begin(), leafOf.end(), log_.topology().leaf(node)) > 1;
  }

  [[nodiscard]] bool explainedMeeting(const Pair& pair, int node) const;
  [[nodiscard]] NodeEvidence collect(int node) const;
  [[nodiscard]] bool condemned(int node) const { return condemned_.count(node) == 1; }
  [[nodiscard]] bool hasHealthyPartner(const NodeEvidence& evidence) const;
  [[nodiscard]] bool sharesItsFault(int node, const NodeEvidence& evidence, int needed) const;
  [[nodiscard]] bool mayBeItsUplink(int node, const NodeEvidence& evidence) const;
  [[nodiscard]] bool mayBeAnUplink(int node, const NodeEvidence& evidence) const;
  [[nodiscard]] bool canMeetOthers(int node) const;
  [[nodiscard]] bool standsBesideCondemned(const NodeFault& fault) const;
  [[nodiscard]] double expectedLoss(const Pair& pair, const NodeEvidence& evidence) const;
  [[nodiscard]] int neededOf(int node, const NodeEvidence& evidence) const;
  [[nodiscard]] double lossOf(int node) const;
  void condemnNodes();
  void judgePair(const SlowPair& slow);
  void askUntried();
  void wishFor(int node, const NodeEvidence& evidence);

  const RoundLog& log_;
  const MeetingsByNode& meetingsByNode_;
  const LaneFigures& figures_;
  LaneFindings found_;
  Uplinks uplinks_;
  std::vector<SlowPair> slow_;
  std::map<int, std::vector<size_t>> slowOf_;  ///< node -> its slow pairs
  std::set<int> condemned_;
  std::set<int> wished_;
};

/// Whether something else than `node` accounts for what the pair shows.
bool LaneAnalysis::explainedMeeting(const Pair& pair, int node) const {
  const int other = pair.a == node ? pair.b : pair.a;
  return (condemned(other) && !condemned(node)) || uplinks_.explain(pair);
}

NodeEvidence LaneAnalysis::collect(int node) const {
  NodeEvidence evidence;
  evidence.loss = evidence.lossInAll = 1e9;
  if (const auto pairs = slowOf_.find(node); pairs != slowOf_.end())
    for (size_t i : pairs->second) {
      if (slow_[i].explained) continue;
      evidence.loss = std::min(evidence.loss, slow_[i].loss);
      evidence.lossInAll = std::min(evidence.lossInAll, slow_[i].loss + slowerWay(slow_[i].pair));
    }
  for (size_t m : meetingsByNode_.of(node)) {
    ++evidence.meetings;
    const Pair& pair = log_.meetings()[m].pair;
    if (explainedMeeting(pair, node)) continue;
    const Baseline& base = baseline(pair);
    const int other = pair.a == node ? pair.b : pair.a;
    const double lost = std::max(0.0, figures_.loss[m]);
    const double expected = expectedLoss(pair, evidence);
    const bool slow =
        figures_.slow(log_, m) || figures_.sure[m] > std::max(expected / 2, base.limits.confirms);
    if (!slow && (lost > expected / 2 || expected < base.limits.confirms)) continue;  // says neither
    auto& list = slow ? evidence.slowWith : evidence.fineWith;
    if (std::find(list.begin(), list.end(), other) == list.end()) list.push_back(other);
    if (!slow) evidence.fine += fineEvidence(expected, lost, base.sigma);
    (slow ? evidence.isSlowInside : evidence.isFineInside) |= isInside(pair);
  }
  return evidence;
}

/// True if at least one slow partner is otherwise healthy.
bool LaneAnalysis::hasHealthyPartner(const NodeEvidence& evidence) const {
  return std::any_of(evidence.slowWith.begin(), evidence.slowWith.end(), [&](int partner) {
    const auto slow = slowOf_.find(partner);
    return slow == slowOf_.end() || slow->second.size() == 1 || collect(partner).fine >= kClearsOne;
  });
}

/// Whether it is fine with a node that is slow with as many others: then neither is at fault, but what both
/// hang on, as an uplink of which no topology is known. Of two bad nodes the pair is slow, too.
bool LaneAnalysis::sharesItsFault(int node, const NodeEvidence& evidence, int needed) const {
  return std::any_of(evidence.fineWith.begin(), evidence.fineWith.end(), [&](int partner) {
    if (slowOf_.count(partner) == 0) return false;
    const NodeEvidence other = collect(partner);
    const auto& fine = other.fineWith;
    return static_cast<int>(other.slowWith.size()) >= needed &&
           std::find(fine.begin(), fine.end(), node) != fine.end();
  });
}

/// A bad node is slow inside its leaf, too; one that is slow across only may hang on a bad uplink.
bool LaneAnalysis::mayBeItsUplink(int node, const NodeEvidence& evidence) const {
  return evidence.isFineInside || (hasLeaf(node) && !evidence.isSlowInside);
}

/// Whether an uplink that is not known may account for most of its slow partners: it makes other pairs slow,
/// too, and the node is fine with one, or slow on one side alone.
bool LaneAnalysis::mayBeAnUplink(int node, const NodeEvidence& evidence) const {
  if (log_.topology().known() || log_.nodes() < kHasSides) return false;
  if (std::all_of(slow_.begin(), slow_.end(), [&](const SlowPair& slow) {
        return slow.explained || slow.pair.a == node || slow.pair.b == node;
      }))
    return false;
  const std::vector<int>& slow = evidence.slowWith;
  const auto below =
      std::count_if(slow.begin(), slow.end(), [&](int other) { return isBelow(node, other, log_.nodes()); });
  return evidence.fine >= kClearsOne || std::min(below, std::ssize(slow) - below) < kOnEachSide;
}

/// Whether there is a node that it has not met.
bool LaneAnalysis::canMeetOthers(int node) const {
  for (int other = 0; other < log_.nodes(); ++other)
    if (other != node && !meetingsByNode_.met(log_, node, other)) return true;
  return false;
}

/// Whether too little speaks against it without the nodes that are condemned by now, and it can meet others.
bool LaneAnalysis::standsBesideCondemned(const NodeFault& fault) const {
  const NodeEvidence left = collect(fault.node);
  const auto slow = static_cast<std::ptrdiff_t>(left.slowWith.size());
  const auto fine = static_cast<std::ptrdiff_t>(left.fineWith.size());
  if (left.slowWith.empty() || mayBeItsUplink(fault.node, left)) return true;
  return left.slowWith.size() < fault.slowWith.size() &&
         (slow < neededOf(fault.node, left) + 2 * fine || mayBeAnUplink(fault.node, left)) &&
         canMeetOthers(fault.node);
}

/// The mean of its slow pairs, without those that condemned nodes or uplinks explain, if there are others.
double LaneAnalysis::lossOf(int node) const {
  double sum = 0, all = 0;
  size_t count = 0;
  const std::vector<size_t>& pairs = slowOf_.at(node);
  for (size_t i : pairs) {
    all += slow_[i].loss;
    if (explainedMeeting(slow_[i].pair, node)) continue;
    sum += slow_[i].loss;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : all / static_cast<double>(pairs.size());
}

/// What a pair would show of a node's loss: a way across leaves that is no faster than the node hides it.
double LaneAnalysis::expectedLoss(const Pair& pair, const NodeEvidence& evidence) const {
  return std::min(evidence.loss, evidence.lossInAll - slowerWay(pair));
}

/// Slow partners that condemn a node: three, or all, where fewer can tell.
int LaneAnalysis::neededOf(int node, const NodeEvidence& evidence) const {
  int partners = 0;
  for (int other = 0; other < log_.nodes(); ++other) {
    const Pair pair = makePair(node, other);
    if (other != node && !uplinks_.explain(pair) &&
        expectedLoss(pair, evidence) >= baseline(pair).limits.confirms)
      ++partners;
  }
  return std::min(kCondemning, partners);
}

/// Names nodes that are slow with as many partners as are needed, one of whom is otherwise healthy. Two
/// adjacent bad links look like a bad node until the node meets a third partner, and a bad link and a bad
/// neighbour until those that have most against them are named.
void LaneAnalysis::condemnNodes() {
  std::vector<NodeFault> found;
  for (const auto& [node, pairs] : slowOf_) {
    if (std::all_of(pairs.begin(), pairs.end(), [&](size_t i) { return slow_[i].explained; })) continue;
    NodeEvidence t = collect(node);
    const auto slow = static_cast<int>(t.slowWith.size());
    const auto fine = static_cast<int>(t.fineWith.size());
    const int needed = neededOf(node, t);
    if (needed < 2 || slow < needed + 2 * fine || mayBeItsUplink(node, t) || !hasHealthyPartner(t) ||
        sharesItsFault(node, t, needed) || mayBeAnUplink(node, t))
      continue;
    const double strength =
        std::min(slow * slowEvidence(t.loss, figures_.sameLeaf.sigma), (slow - 1) * kSecondFault) -
        fine * kSecondFault;
    found.push_back({node, lossOf(node), strength, t.slowWith, t.fineWith});
  }
  std::stable_sort(found.begin(), found.end(), [](const NodeFault& a, const NodeFault& b) {
    return std::tuple(-a.strength, a.fineWith.size(), -a.loss) <
           std::tuple(-b.strength, b.fineWith.size(), -b.loss);
  });
  for (NodeFault& fault : found) {
    if (standsBesideCondemned(fault)) continue;
    fault.loss = lossOf(fault.node);
    condemned_.insert(fault.node);
    found_.nodes.push_back(std::move(fault));
    uplinks_.judge(slow_, condemned_);
  }
  std::sort(found_.nodes.begin(), found_.nodes.end(),
            [](const NodeFault& a, const NodeFault& b) { return a.node < b.node; });
  for (SlowPair& slow : slow_) slow.explained |= condemned(slow.pair.a) || condemned(slow.pair.b);
}

void LaneAnalysis::wishFor(int node, const NodeEvidence& evidence) {
  if (!wished_.insert(node).second) return;
  found_.wishes.push_back(
      {Wish::Kind::kHealthyPartner, {node, -1}, static_cast<int>(evidence.slowWith.size())});
}

/// A slow pair that no node and no leaf explains: its link, once both nodes are cleared and it is slow again.
/// Where it is all that speaks against its nodes, it is measured again before anybody else is asked: most
/// figures that are rare but possible by chance end there.
void LaneAnalysis::judgePair(const SlowPair& slow) {
  const NodeEvidence a = collect(slow.pair.a);
  const NodeEvidence b = collect(slow.pair.b);
  const bool nodesCleared = a.cleared() && b.cleared();
  if (nodesCleared && uplinks_.cleared(slow) && slow.settled()) {
    const double evidence = slow.times * slowEvidence(slow.loss, baseline(slow.pair).sigma);
    found_.links.push_back({slow.pair, slow.loss, std::min({evidence, a.fine, b.fine}), slow.times});
    return;
  }
  found_.open.push_back({slow.pair, slow.loss});
  if (!slow.settled() && (nodesCleared || (a.onlyOnce() && b.onlyOnce()))) {
    found_.wishes.push_back({Wish::Kind::kAgain, slow.pair, 1});
    return;
  }
  for (const auto& [node, evidence] : {std::pair{slow.pair.a, &a}, {slow.pair.b, &b}})
    if (!evidence->cleared() && evidence->meetings < kMostMeetings) wishFor(node, *evidence);
}

/// Nodes that met only what is slow for other reasons, as another node or the way across leaves, and would
/// look slow themselves.
void LaneAnalysis::askUntried() {
  for (int node = 0; node < log_.nodes(); ++node) {
    const MeetingsByNode::Range range = meetingsByNode_.of(node);
    const bool isUntried = std::none_of(range.begin(), range.end(), [&](size_t m) {
      return figures_.loss[m] + slowerWay(log_.meetings()[m].pair) <= figures_.sameLeaf.limits.slow;
    });
    if (isUntried && !condemned(node) && range.size() < kMostMeetings) wishFor(node, collect(node));
  }
}

}  // namespace

std::vector<LaneFindings> analyseLanes(const RoundLog& log, const MeetingsByNode& meetingsByNode) {
  std::vector<LaneFindings> all;
  for (const LaneFigures& figures : readLanes(log))
    all.push_back(LaneAnalysis(log, meetingsByNode, figures).run());
  return all;
}

}  // namespace muster::ring

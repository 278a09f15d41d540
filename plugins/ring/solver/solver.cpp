// SPDX-License-Identifier: Apache-2.0
// From the findings of all lanes to culprits: one cause is named once.
#include "plugins/ring/solver/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "plugins/ring/solver/confirm.h"
#include "plugins/ring/solver/lane_analysis.h"
#include "plugins/ring/solver/slow_rails.h"

namespace muster::ring {
namespace {

constexpr const char* kAllRails = "all";
constexpr double kLeastToName = 0.5;
constexpr double kLeastToReject = 0.9;
constexpr double kMostOfSharedMachine = 0.6;
constexpr double kMostCertain = 0.999;  ///< more than any model of noise deserves

double share(double logLoss) {
  return 1 - std::exp(-logLoss);
}

double confidence(double strength) {
  return strength <= 0 ? 0 : std::min(kMostCertain, 1 - std::exp(-strength));
}

std::string percent(double part) {
  return fmt::format("{:.1f}%", 100 * part);
}

std::string list(const std::vector<int>& nodes) {
  std::vector<std::string> names;
  for (int node : nodes) names.push_back(fmt::format("#{}", node));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// One finding in one lane, whatever it accuses.
struct Accusation {
  const Lane* lane = nullptr;
  double loss = 0;
  double strength = 0;
  std::string text;
  std::vector<Pair> shownBy{};  ///< see Culprit
};

/// Accusations of one node, link or leaf over all lanes of one quantity.
using Accusations = std::vector<Accusation>;

std::string howSlow(const Lane& lane, double loss) {
  const std::string where = lane.rail == kAllRails ? "over all rails" : "on rail " + lane.rail;
  return lane.quantity == Quantity::kBandwidth
             ? fmt::format("{} below its peers {}", percent(share(loss)), where)
             : fmt::format("latency {} above its peers {}", percent(std::exp(loss) - 1), where);
}

class Solver {
 public:
  explicit Solver(const RoundLog& log) : log_(log) {
    for (const Lane& lane : log.lanes())
      if (lane.rail != kAllRails && lane.quantity == Quantity::kBandwidth) rails_.insert(lane.rail);
  }

  std::vector<Culprit> run() {
    const std::vector<LaneFindings> found = analyseLanes(log_, MeetingsByNode(log_));
    for (size_t i = 0; i < found.size(); ++i) collect(log_.lanes()[i], found[i]);
    for (const auto& [leaf, said] : leaves_) nameLeaf(leaf, said);
    for (const auto& [node, said] : nodes_) nameNode(node, said);
    for (const auto& [pair, said] : links_) nameLink({pair.first, pair.second}, said);
    nameOpen();
    nameDisturbed(found);
    if (tooMany()) nameWholeGroup();
    confirm();
    nameSlowRails();
    return std::move(culprits_);
  }

 private:
  void collect(const Lane& lane, const LaneFindings& found) {
    for (const NodeFault& f : found.nodes) {
      std::vector<Pair> shownBy;
      for (int partner : f.slowWith) shownBy.push_back(makePair(f.node, partner));
      nodes_[f.node].push_back(
          {&lane, f.loss, f.strength,
           fmt::format("slow with all of {}{}", list(f.slowWith),
                       f.fineWith.empty() ? "" : ", though not with " + list(f.fineWith)),
           std::move(shownBy)});
    }
    for (const LinkFault& f : found.links)
      links_[{f.pair.a, f.pair.b}].push_back(
          {&lane, f.loss, f.strength,
           fmt::format("slow in all {} measurements, both are normal with others", f.times)});
    for (const LeafFault& f : found.leaves)
      leaves_[f.leaf].push_back(
          {&lane, f.loss, f.strength,
           fmt::format("{} of {} pairs across leaves are slow, pairs within the leaf are normal", f.slowPairs,
                       f.pairs)});
    for (const OpenFault& f : found.open) open_.emplace_back(&lane, f);
  }

  /// The lanes that say most: those of single rails if there are any, for they cannot hide behind each other.
  [[nodiscard]] static Accusations telling(const Accusations& said) {
    for (const Quantity quantity : {Quantity::kBandwidth, Quantity::kLatency})
      for (const bool single : {true, false}) {
        Accusations some;
        std::copy_if(said.begin(), said.end(), std::back_inserter(some), [&](const Accusation& a) {
          return a.lane->quantity == quantity && (a.lane->rail != kAllRails) == single;
        });
        if (!some.empty()) return some;
      }
    return {};
  }

  /// A fault of more than half of the rails is one of the whole.
  [[nodiscard]] bool concernsAllRails(const Accusations& said) const {
    return said.front().lane->rail == kAllRails || rails_.size() < 2 || 2 * said.size() > rails_.size();
  }

  static const Accusation& worst(const Accusations& said) {
    return *std::max_element(said.begin(), said.end(), [](const Accusation& x, const Accusation& y) {
      return x.strength < y.strength;
    });
  }

  Culprit& add(Culprit::Kind kind, std::vector<int> nodes, const Accusation& by, const std::string& who) {
    Culprit culprit;
    culprit.kind = kind;
    culprit.nodes = std::move(nodes);
    culprit.quantity = by.lane->quantity;
    culprit.loss = share(by.loss);
    culprit.shownBy = by.shownBy;
    lanes_.push_back(static_cast<size_t>(by.lane - log_.lanes().data()));
    culprit.confidence = confidence(by.strength);
    culprit.evidence = fmt::format("{} is {}: {}", who, howSlow(*by.lane, by.loss), by.text);
    culprits_.push_back(std::move(culprit));
    return culprits_.back();
  }

  void nameLeaf(int leaf, const Accusations& said) {
    const Accusations some = telling(said);
    add(Culprit::Kind::kLeafUplink, {}, worst(some), fmt::format("the uplink of leaf {}", leafName(leaf)))
        .leaf = leaf;
  }

  void nameNode(int node, const Accusations& said) {
    const Accusations some = telling(said);
    namedNodes_.insert(node);
    if (concernsAllRails(some)) {
      add(Culprit::Kind::kNode, {node}, worst(some), fmt::format("#{}", node));
      return;
    }
    for (const Accusation& by : some)
      add(Culprit::Kind::kNodeRail, {node}, by, fmt::format("#{}", node)).rail = by.lane->rail;
  }

  /// What a named node explains in one lane explains the same pair in the lane of all rails.
  void nameLink(const Pair& pair, const Accusations& said) {
    const Accusations some = telling(said);
    if (some.front().lane->rail == kAllRails && touchesNamed(pair)) return;
    Culprit& link = add(Culprit::Kind::kLink, {pair.a, pair.b}, worst(some),
                        fmt::format("the link #{} - #{}", pair.a, pair.b));
    namedLinks_.insert({pair.a, pair.b});
    if (concernsAllRails(some)) return;
    std::vector<std::string> rails;
    for (const Accusation& by : some) rails.push_back(by.lane->rail);
    link.rail = fmt::format("{}", fmt::join(rails, ","));
  }

  void nameOpen() {
    for (const auto& [lane, open] : open_) {
      if (touchesNamed(open.pair) || namedLinks_.count({open.pair.a, open.pair.b}) == 1) continue;
      if (!namedOpen_.insert({open.pair.a, open.pair.b}).second) continue;
      Culprit& culprit = add(Culprit::Kind::kUnattributable, {open.pair.a, open.pair.b},
                             {lane, open.loss, 0, "the measurements cannot separate the link from its nodes"},
                             fmt::format("the pair #{} - #{}", open.pair.a, open.pair.b));
      culprit.confidence = 0;
    }
  }

  /// What other processes may account for is neither good nor slow.
  void nameDisturbed(const std::vector<LaneFindings>& found) {
    for (size_t i = 0; i < found.size(); ++i)
      for (const Pair& pair : found[i].disturbed) {
        if (touchesNamed(pair) || !namedOpen_.insert({pair.a, pair.b}).second) continue;
        Culprit culprit;
        culprit.nodes = {pair.a, pair.b};
        culprit.quantity = log_.lanes()[i].quantity;
        culprit.undecided = true;
        culprit.evidence = fmt::format(
            "the pair #{} - #{} was slow whenever it was measured, but its ranks waited for a CPU that other "
            "processes used, or its slowness varied",
            pair.a, pair.b);
        culprits_.push_back(std::move(culprit));
        lanes_.push_back(i);
      }
  }

  /// What the visits say: leaves open what did not stay, and sets each confidence.
  void confirm() {
    const std::vector<LaneFigures> figures = readLanes(log_);
    const auto support = [&](size_t i) {
      return supportOf(log_, figures[lanes_[i]], lanes_[i], culprits_[i], culprits_);
    };
    // Those that did not stay first: they show how often that happens.
    std::vector<Support> all(culprits_.size());
    for (size_t i = 0; i < all.size(); ++i)
      if (!culprits_[i].undecided) all[i] = support(i);
    for (size_t i = 0; i < all.size(); ++i) {
      if (culprits_[i].undecided || all[i].visits == 0) continue;
      culprits_[i].evidence +=
          fmt::format("; slow in {} of {} later measurements", all[i].slow, all[i].visits);
      if (all[i].slow < all[i].visits) leaveOpen(culprits_[i]);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      Culprit& culprit = culprits_[i];
      if (!isNamed(culprit)) {  // the same certainty that it is one at all, whoever it is
        if (!culprit.undecided && all[i].visits > 0)
          culprit.undecided = kMostCertain - support(i).transient < kLeastToReject;
        continue;
      }
      culprit.confidence = std::clamp(culprit.confidence - support(i).transient, 0.0, kMostCertain);
      if (all[i].disturbed > 0)
        culprit.evidence +=
            fmt::format("; {} later measurements were disturbed by other processes", all[i].disturbed);
      if (hasCommonCause(log_, culprit, culprits_)) {
        culprit.confidence = std::min(culprit.confidence, kMostOfSharedMachine);
        culprit.evidence += "; another node of the same machine is slow too";
      }
      culprit.undecided = culprit.confidence < kLeastToReject;
      // Of a thousand nodes one is slow by chance: no more visits would be held, which alone can tell.
      if (culprit.confidence < kLeastToName && log_.visitsHeld() >= kVisits) leaveOpen(culprit);
    }
  }

  void nameSlowRails() {
    for (const SlowRail& rail : findSlowRails(log_)) {
      Culprit culprit;
      culprit.kind = Culprit::Kind::kRail;
      culprit.rail = rail.rail;
      culprit.loss = share(rail.loss);
      culprit.confidence = kMostCertain;
      culprit.evidence =
          fmt::format("rail {} is {} below the others: {} of {} nodes are slow with all that they met",
                      rail.rail, percent(culprit.loss), rail.nodes, log_.nodes());
      if (rail.visits > 0)
        culprit.evidence +=
            fmt::format("; slow in {} of {} later measurements", rail.slowVisits, rail.visits);
      if (rail.slowVisits < rail.visits) leaveOpen(culprit);
      culprits_.push_back(std::move(culprit));
    }
  }

  void leaveOpen(Culprit& culprit) {
    if (culprit.kind == Culprit::Kind::kLeafUplink)
      for (int node = 0; node < log_.nodes(); ++node)
        if (log_.topology().leaf(node) == culprit.leaf) culprit.nodes.push_back(node);
    if (culprit.kind == Culprit::Kind::kRail)
      for (int node = 0; node < log_.nodes(); ++node) culprit.nodes.push_back(node);
    culprit.kind = Culprit::Kind::kUnattributable;
    culprit.leaf = -1;
    culprit.confidence = 0;
    culprit.undecided = true;
  }

  [[nodiscard]] bool touchesNamed(const Pair& pair) const {
    return namedNodes_.count(pair.a) == 1 || namedNodes_.count(pair.b) == 1;
  }

  [[nodiscard]] std::string leafName(int leaf) const {
    return log_.topology().names[static_cast<size_t>(leaf)];
  }

  /// When most nodes would be named, it is not they that are odd.
  [[nodiscard]] bool tooMany() const { return 2 * namedNodes_.size() > static_cast<size_t>(log_.nodes()); }

  void nameWholeGroup() {
    Culprit culprit;
    culprit.nodes.assign(namedNodes_.begin(), namedNodes_.end());
    culprit.loss = culprits_.front().loss;
    culprit.evidence = fmt::format(
        "{} of {} nodes are slower than the fastest pairs, so peer comparison is unreliable: check the "
        "absolute values",
        namedNodes_.size(), log_.nodes());
    culprits_ = {std::move(culprit)};
    lanes_.resize(1);
  }

  const RoundLog& log_;
  std::set<std::string> rails_;
  std::map<int, Accusations> nodes_;
  std::map<std::pair<int, int>, Accusations> links_;
  std::map<int, Accusations> leaves_;
  std::vector<std::pair<const Lane*, OpenFault>> open_;
  std::set<int> namedNodes_;
  std::set<std::pair<int, int>> namedLinks_;
  std::set<std::pair<int, int>> namedOpen_;
  std::vector<Culprit> culprits_;
  std::vector<size_t> lanes_;  ///< of each culprit: the lane that says most
};

}  // namespace

const char* culpritKindName(Culprit::Kind kind) {
  switch (kind) {
    case Culprit::Kind::kLink:
      return "link";
    case Culprit::Kind::kNode:
      return "node";
    case Culprit::Kind::kNodeRail:
      return "node-rail";
    case Culprit::Kind::kRail:
      return "rail";
    case Culprit::Kind::kLeafUplink:
      return "leaf-uplink";
    case Culprit::Kind::kUnattributable:
      return "unattributable";
  }
  return "unattributable";
}

bool slowsDown(const Culprit& culprit, const Pair& pair, const Topology& topology) {
  const auto has = [&](int node) {
    return std::find(culprit.nodes.begin(), culprit.nodes.end(), node) != culprit.nodes.end();
  };
  switch (culprit.kind) {
    case Culprit::Kind::kLeafUplink:
      return topology.crosses(pair) &&
             (topology.leaf(pair.a) == culprit.leaf || topology.leaf(pair.b) == culprit.leaf);
    case Culprit::Kind::kRail:
      return false;
    default:
      return culprit.nodes.size() > 1 ? has(pair.a) && has(pair.b) : has(pair.a) || has(pair.b);
  }
}

std::vector<Culprit> solve(const RoundLog& log) {
  return Solver(log).run();
}

void doubtInNoise(const Resolution& resolution, std::vector<Culprit>& culprits) {
  if (!resolution.blind) return;
  for (Culprit& culprit : culprits) {
    if (culprit.quantity != Quantity::kBandwidth || culprit.loss >= resolution.loss) continue;
    culprit.undecided = true;
    culprit.evidence += fmt::format("; a loss of {:.0f}% may be noise in this run", 100 * resolution.loss);
  }
}

}  // namespace muster::ring

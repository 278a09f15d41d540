// SPDX-License-Identifier: Apache-2.0
// See cluster_evidence.h: how node 0 names the culprit. Pure.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <tuple>

#include "runner/cluster/cluster_evidence.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr double kStuck = 2;       // seconds in state D after which a process counts as stuck
constexpr double kBusy = 0.5;      // share of looks of one that works
constexpr double kWaiting = 0.5;   // of that share, at most: those who wait for it
constexpr size_t kMostNames = 20;  // in one line

struct Place {
  const NodeReport* node = nullptr;
  const RankReport* rank = nullptr;
};

std::vector<Place> allRanks(const std::vector<NodeReport>& nodes) {
  std::vector<Place> all;
  for (const NodeReport& node : nodes)
    for (const RankReport& rank : node.ranks) all.push_back({&node, &rank});
  return all;
}

std::string nameOf(const Place& place) {
  const std::string device = place.rank->device.empty() ? "" : place.rank->device + " of ";
  return fmt::format("rank {} ({}{})", place.rank->rank, device, place.node->name);
}

std::string joinNames(std::vector<std::string> names) {
  const size_t count = names.size();
  if (count > kMostNames) names.resize(kMostNames);
  std::string text = join(names, ", ");
  if (count > kMostNames) text += fmt::format(" and {} more", count - kMostNames);
  return text;
}

/// Signals from outside come first: whoever aborts or exits at the same time does so because a peer went.
int victimClass(const RankReport& rank) {
  return rank.signal != 0 && rank.signal != SIGABRT ? 0 : 1;
}

Culprit firstFailure(const std::vector<NodeReport>& nodes) {
  const std::vector<Place> all = allRanks(nodes);
  const Place* first = nullptr;
  const auto key = [](const Place& p) {
    // A failure that no order was drawn for (its node could not ask) comes after those with one.
    const int64_t order = p.rank->order > 0 ? p.rank->order : INT64_MAX;
    return std::make_tuple(victimClass(*p.rank), order, p.rank->rank);
  };
  for (const Place& place : all)
    if (!place.rank->failure.empty() && (first == nullptr || key(place) < key(*first))) first = &place;
  if (first == nullptr) return {};
  return {nameOf(*first) + " " + first->rank->failure, {first->rank->rank}};
}

bool isLost(const NodeReport& node) {
  return node.silent || node.mute || node.cutOff;
}

/// What speaks for it that these nodes are lost.
std::string howLost(const std::vector<NodeReport>& nodes) {
  double silence = -1;
  bool mute = false, cutOff = false;
  for (const NodeReport& node : nodes) {
    mute = mute || (node.mute && !node.silent);
    cutOff = cutOff || node.cutOff;
    if (node.silent && node.silence >= 0)
      silence = silence < 0 ? node.silence : std::min(silence, node.silence);
  }
  if (silence >= 0) return fmt::format("no heartbeat for {:.0f} s", silence);
  if (mute) return "it sent heartbeats, but no answer";
  return cutOff ? "it got no answers itself" : "it never sent a heartbeat";
}

Culprit silentNodes(const std::vector<NodeReport>& nodes) {
  std::vector<std::string> names;
  std::vector<NodeReport> lost;
  double stop = 0;
  for (const NodeReport& node : nodes) {
    if (!isLost(node)) continue;
    names.push_back(node.name);
    lost.push_back(node);
    stop = std::max(stop, node.lostInStop);
  }
  if (names.empty()) return {};
  if (stop > 0) return {stoppedNode(nodes.front().name, stop), {}};
  if (nodes.size() == 2) return {lostEachOther(howLost(lost)), {}};
  if (names.size() > 1 && names.size() + 1 == nodes.size())
    return {fmt::format("{} lost every other node: its own link is at fault, or the network as a whole",
                        nodes.front().name),
            {}};
  return {fmt::format("{} {} lost: {}", joinNames(names), names.size() == 1 ? "was" : "were", howLost(lost)),
          {}};
}

/// Ranks that `what` holds for, with `said` behind their names; empty when there is none.
template <typename Which, typename Said>
Culprit ranksThat(const std::vector<NodeReport>& nodes, const Which& which, const Said& said) {
  std::vector<std::string> names;
  std::set<int> ranks;
  for (const Place& place : allRanks(nodes)) {
    if (!which(*place.rank)) continue;
    if (names.size() < kMostNames) ranks.insert(place.rank->rank);
    names.push_back(nameOf(place) + " " + said(*place.rank));
  }
  return {joinNames(std::move(names)), std::move(ranks)};
}

/// Who left, and the ranks that failed by themselves, whoever was interrupted meanwhile: a signal ended them
/// which nobody sends, or, on a node that has not left, SIGKILL.
Culprit withCrashes(Culprit gone, const std::vector<NodeReport>& nodes) {
  constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
  std::set<const RankReport*> crashed;
  for (const Place& place : allRanks(nodes)) {
    const int signal = place.rank->signal;
    const bool isCrash = std::find(kCrashes.begin(), kCrashes.end(), signal) != kCrashes.end() ||
                         (signal == SIGKILL && place.node->gone.empty());
    if (!place.rank->failure.empty() && isCrash) crashed.insert(place.rank);
  }
  Culprit own = ranksThat(
      nodes, [&](const RankReport& rank) { return crashed.contains(&rank); },
      [](const RankReport& rank) { return rank.failure; });
  if (own.text.empty()) return gone;
  return {own.text + ", " + gone.text, std::move(own.ranks)};
}

/// Nodes that were interrupted or started again.
Culprit goneNodes(const std::vector<NodeReport>& nodes) {
  std::vector<std::string> names;
  bool isInterruption = true;
  for (const NodeReport& node : nodes) {
    if (!node.gone.empty()) names.push_back(node.name + " " + node.gone);
    isInterruption =
        isInterruption && (node.gone.empty() ? !node.silent && !node.cutOff : node.gone == kInterrupted);
  }
  if (names.empty()) return {};
  return withCrashes({joinNames(std::move(names)), {}, isInterruption}, nodes);
}

Culprit stoppedOrStuck(const std::vector<NodeReport>& nodes) {
  const auto stopped = [](const RankReport& r) { return r.state == 'T' || r.state == 't'; };
  const auto stuck = [](const RankReport& r) { return r.state == 'D' && r.stateFor >= kStuck; };
  Culprit found = ranksThat(nodes, stopped, [](const RankReport& r) {
    return fmt::format("is stopped (state {} for {:.0f} s)", r.state, r.stateFor);
  });
  if (!found.text.empty()) return found;
  return ranksThat(nodes, stuck, [](const RankReport& r) {
    return fmt::format("is stuck in the kernel (state D for {:.0f} s)", r.stateFor);
  });
}

/// Whether the ranks by which one is odd are of its own node, or of two others: one other node could make
/// them up, or they hang.
bool isVouchedFor(const Place& odd, const std::vector<Place>& all,
                  const std::function<bool(const RankReport&)>& isWitness) {
  std::set<const NodeReport*> nodes;
  for (const Place& place : all)
    if (isWitness(*place.rank)) nodes.insert(place.node);
  return nodes.contains(odd.node) || nodes.size() > 1;
}

/// A rank that is cases behind all others, or at work while all others wait.
Culprit straggler(const std::vector<NodeReport>& nodes) {
  const std::vector<Place> all = allRanks(nodes);
  if (all.size() < 2) return {};
  std::vector<Place> behind;
  const auto byCases = [](const Place& a, const Place& b) { return a.rank->casesEnded < b.rank->casesEnded; };
  const int most = std::max_element(all.begin(), all.end(), byCases)->rank->casesEnded;
  for (const Place& place : all)
    if (place.rank->casesEnded < most) behind.push_back(place);
  const auto isAhead = [&](const RankReport& r) { return r.casesEnded > behind[0].rank->casesEnded; };
  if (behind.size() == 1 && isVouchedFor(behind[0], all, isAhead))
    return {fmt::format("{} is behind: it ended {} cases where all others ended {}", nameOf(behind[0]),
                        behind[0].rank->casesEnded, most),
            {behind[0].rank->rank}};

  const auto byActivity = [](const Place& a, const Place& b) { return a.rank->active > b.rank->active; };
  std::vector<Place> busiest = all;
  std::partial_sort(busiest.begin(), busiest.begin() + 2, busiest.end(), byActivity);
  const double mostActive = busiest[0].rank->active, next = busiest[1].rank->active;
  const bool known = std::all_of(all.begin(), all.end(), [](const Place& p) { return p.rank->active >= 0; });
  const auto waits = [&](const RankReport& r) { return &r != busiest[0].rank; };
  if (known && mostActive >= kBusy && next <= mostActive * kWaiting && isVouchedFor(busiest[0], all, waits))
    return {fmt::format(
                "{} is running while all others wait for it: not asleep in {:.0f}% of the samples, the next "
                "one in {:.0f}%",
                nameOf(busiest[0]), mostActive * 100, next * 100),
            {busiest[0].rank->rank}};
  return {};
}

Culprit failedWithout(const std::vector<NodeReport>& nodes, const std::set<int>& without) {
  const auto failed = [&](const RankReport& r) {
    return !r.caseFailures.empty() && !without.contains(r.rank);
  };
  const std::vector<Place> all = allRanks(nodes);
  const auto first = std::find_if(all.begin(), all.end(), [&](const Place& p) { return failed(*p.rank); });
  const Culprit found = ranksThat(nodes, failed, [](const RankReport&) { return "failed"; });
  const auto count = std::count_if(all.begin(), all.end(), [&](const Place& p) { return failed(*p.rank); });
  if (count == 0 || 2 * static_cast<size_t>(count) > all.size()) return {};
  return {fmt::format("{}: {}", found.text, first->rank->caseFailures.begin()->second), found.ranks};
}

}  // namespace

Culprit failedByThemselves(const std::vector<NodeReport>& nodes) {
  return failedWithout(nodes, {});
}

Culprit withOwnFailures(Culprit known, const std::vector<NodeReport>& nodes) {
  Culprit own = failedWithout(nodes, known.ranks);
  if (own.text.empty()) return known;
  const size_t words = own.text.find(": ");
  known.text = fmt::format("{}, {}; {}", own.text.substr(0, words), known.text, own.text.substr(words + 2));
  known.ranks.merge(own.ranks);
  known.isInterruption = false;
  return known;
}

Culprit knownCulprit(const std::vector<NodeReport>& nodes) {
  for (const auto& look : {goneNodes, firstFailure, silentNodes})
    if (Culprit found = look(nodes); !found.text.empty()) return found;
  return {};
}

std::string stoppedNode(const std::string& name, double seconds) {
  return fmt::format(
      "{} did not run for {:.0f} s: it was stopped or got no CPU time, so the others declared it lost", name,
      seconds);
}

std::string lostEachOther(const std::string& how) {
  return "it is not known which of the two nodes failed, or whether the network between them did: " + how;
}

Culprit culpritAtDeadline(const std::vector<NodeReport>& nodes) {
  for (const auto& look : {knownCulprit, stoppedOrStuck, failedByThemselves, straggler})
    if (Culprit found = look(nodes); !found.text.empty()) return found;
  return {
      "no faulty component found: no rank failed, stopped, fell behind or worked alone, and all nodes "
      "answered",
      {}};
}

}  // namespace muster

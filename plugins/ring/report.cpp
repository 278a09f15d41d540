// SPDX-License-Identifier: Apache-2.0
// Measurements and the artifact of a ring.
#include "plugins/ring/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "plugins/ring/culprit_figures.h"
#include "plugins/ring/solver/lane_analysis.h"
#include "plugins/ring/solver/lane_figures.h"

namespace muster::ring {
namespace {

constexpr int kMostForAllPairs = 32;  ///< members; a record stays small

std::string name(const Members& members, int member) {
  return members.names[static_cast<size_t>(member)];
}

class Reporter {
 public:
  Reporter(const sdk::Host& host, const Members& members, int rank, const Findings& findings, double now)
      : host_(host), members_(members), rank_(rank), found_(findings), now_(now) {}

  Status run(const std::string& implementation) {
    MUSTER_CHECK_OK(ownFigures());
    MUSTER_CHECK_OK(culprits("culprits", false));
    MUSTER_CHECK_OK(culprits("undecided", true));
    MUSTER_CHECK_OK(
        host_.measurement("rounds", "count", {static_cast<double>(found_.log->rounds())}, {}, now_));
    const Resolution& resolution = found_.resolution;
    MUSTER_CHECK_OK(host_.measurement("smallest_detectable_loss", "ratio", {resolution.loss}, {}, now_));
    MUSTER_CHECK_OK(host_.measurement("confirmations", "count",
                                      {static_cast<double>(found_.log->visitsHeld())}, {}, now_));
    MUSTER_CHECK_OK(host_.measurement("pair_coverage", "ratio", {pairCoverage(*found_.log)}, {}, now_));
    MUSTER_CHECK_OK(host_.measurement("looks_again", "count", {furtherLooks()}, {}, now_));
    MUSTER_CHECK_OK(host_.fact("implementation", implementation));
    if (rank_ == 0) {
      MUSTER_CHECK_OK(pairs());
      MUSTER_CHECK_OK(unrepeated());
      MUSTER_CHECK_OK(artifact());
    }
    if (!resolution.blind) return {};
    return Error{
        ErrorCode::kTimeout,
        fmt::format("the bandwidths of healthy pairs vary so much, or other processes slow them down so "
                    "much, that a loss of {:.0f}% may hide in it, so passing "
                    "pairs are not proven healthy: check for other workloads on these hosts and their "
                    "network (env.health), or increase samples and bytes",
                    100 * resolution.loss),
        ""};
  }

 private:
  [[nodiscard]] const Topology& topology() const { return found_.log->topology(); }

  /// With its best partner: what another's fault takes away is not this rank's. Of two nodes it is a figure
  /// of both, so it names the other one.
  Status ownFigures() {
    sdk::Host::LabelList peer;
    if (members_.areNodes && members_.count() == 2) peer = {{"peer", std::to_string(1 - members_.own)}};
    std::map<std::string, std::pair<double, double>> best;  // rail -> bandwidth, latency
    const std::string ownRail = fmt::format("{}", members_.ownRail);
    for (const PairFigures& f : found_.figures) {
      if (f.pair.a != members_.own && f.pair.b != members_.own) continue;
      if (f.rail != "all" && f.rail != ownRail) continue;
      auto [it, fresh] = best.try_emplace(f.rail, std::min(f.forward, f.backward), f.latency);
      if (fresh) continue;
      it->second.first = std::max(it->second.first, std::min(f.forward, f.backward));
      it->second.second = std::min(it->second.second, f.latency);
    }
    if (!best.empty()) {
      const auto all = best.find("all");
      const double devices = all == best.end() ? 1 : members_.rails();
      const double bandwidth = all == best.end() ? best.begin()->second.first : all->second.first;
      MUSTER_CHECK_OK(host_.measurement("device_bandwidth", "B/s", {bandwidth / devices}, peer, now_));
    }
    for (const auto& [rail, figures] : best) {
      sdk::Host::LabelList labels = {{"rail", rail}};
      labels.insert(labels.end(), peer.begin(), peer.end());
      MUSTER_CHECK_OK(host_.measurement("bandwidth", "B/s", {figures.first}, labels, now_));
      MUSTER_CHECK_OK(host_.measurement("latency", "s", {figures.second}, {{"rail", rail}}, now_));
    }
    return {};
  }

  /// Reports the undecided culprits, or the others.
  Status culprits(const char* metric, bool undecided) {
    bool any = false;
    for (const Culprit& culprit : found_.culprits) {
      if (culprit.undecided != undecided || !concerns(culprit, members_, topology(), rank_)) continue;
      any = true;
      const sdk::Host::LabelList labels = {{"culprit", culpritText(culprit, members_, topology())},
                                           {"kind", culpritKindName(culprit.kind)}};
      MUSTER_CHECK_OK(host_.measurement(metric, "count", {1}, labels, now_));
      MUSTER_CHECK_OK(host_.fact("culprit_evidence", withNames(culprit.evidence, members_), labels));
      MUSTER_CHECK_OK(host_.measurement("culprit_loss", "ratio", {culprit.loss}, labels, now_));
      MUSTER_CHECK_OK(figures(culprit, labels));
      MUSTER_CHECK_OK(host_.measurement("culprit_confidence", "ratio", {culprit.confidence}, labels, now_));
    }
    if (any) return {};
    return host_.measurement(metric, "count", {0}, {{"culprit", "none"}, {"kind", "none"}}, now_);
  }

  Status figures(const Culprit& culprit, const sdk::Host::LabelList& labels) {
    const auto found = figuresOf(culprit, found_.culprits, topology(), found_.figures);
    if (!found) return {};
    const bool isLatency = culprit.quantity == Quantity::kLatency;
    const std::string name = isLatency ? "latency" : "bandwidth";
    const char* unit = isLatency ? "s" : "B/s";
    MUSTER_CHECK_OK(host_.measurement("culprit_" + name, unit, {found->measured}, labels, now_));
    return host_.measurement("culprit_peer_" + name, unit, {found->peers}, labels, now_);
  }

  [[nodiscard]] double furtherLooks() const {
    int looks = 0;
    for (const Meeting& meeting : found_.log->meetings()) looks += meeting.looks - 1;
    return looks;
  }

  [[nodiscard]] bool accused(const Pair& pair) const {
    return std::any_of(found_.culprits.begin(), found_.culprits.end(), [&](const Culprit& culprit) {
      return std::any_of(culprit.nodes.begin(), culprit.nodes.end(),
                         [&](int node) { return node == pair.a || node == pair.b; });
    });
  }

  Status pairs() {
    std::map<std::tuple<int, int, std::string>, std::vector<double>> byPair;
    for (const PairFigures& f : found_.figures) {
      if (members_.count() > kMostForAllPairs && !accused(f.pair)) continue;
      auto& samples = byPair[{f.pair.a, f.pair.b, f.rail}];
      samples.push_back(f.forward);
      samples.push_back(f.backward);
    }
    for (const auto& [key, samples] : byPair) {
      const auto& [a, b, rail] = key;
      MUSTER_CHECK_OK(host_.measurement("pair_bandwidth", "B/s", samples,
                                        {{"a", name(members_, a)}, {"b", name(members_, b)}, {"rail", rail}},
                                        now_));
    }
    return {};
  }

  Status unrepeated() {
    const std::vector<LaneFindings> findings = analyseLanes(*found_.log, MeetingsByNode(*found_.log));
    for (size_t lane = 0; lane < findings.size(); ++lane)
      for (const Pair& pair : findings[lane].unrepeated) {
        const Lane& of = found_.log->lanes()[lane];
        MUSTER_CHECK_OK(
            host_.fact("unrepeated",
                       fmt::format("{} was slow once, but not when remeasured",
                                   of.quantity == Quantity::kBandwidth ? "bandwidth" : "latency"),
                       {{"a", name(members_, pair.a)}, {"b", name(members_, pair.b)}, {"rail", of.rail}}));
      }
    return {};
  }

  Status artifact() {
    Json json = {{"schema", 1},
                 {"nodes", members_.names},
                 {"rounds", found_.log->rounds()},
                 {"pair_coverage", pairCoverage(*found_.log)}};
    if (topology().known()) {
      json["leaves"] = topology().names;
      json["leaf_of_node"] = topology().leafOf;
    }
    Json pairs = Json::array();
    for (const PairFigures& f : found_.figures)
      pairs.push_back({{"round", f.round},
                       {"look", f.look},
                       {"confirmation", f.visit},
                       {"a", f.pair.a},
                       {"b", f.pair.b},
                       {"rail", f.rail},
                       {"bandwidth_a_to_b", f.forward},
                       {"bandwidth_b_to_a", f.backward},
                       {"latency", f.latency}});
    json["pairs"] = std::move(pairs);
    Json culprits = Json::array();
    for (const Culprit& culprit : found_.culprits)
      culprits.push_back({{"kind", culpritKindName(culprit.kind)},
                          {"culprit", culpritText(culprit, members_, topology())},
                          {"nodes", culprit.nodes},
                          {"rail", culprit.rail},
                          {"loss", culprit.loss},
                          {"confidence", culprit.confidence},
                          {"undecided", culprit.undecided},
                          {"evidence", withNames(culprit.evidence, members_)}});
    json["culprits"] = std::move(culprits);
    return host_.artifact("ring.json", "application/json", dumpJson(json));
  }

  const sdk::Host& host_;
  const Members& members_;
  int rank_;
  const Findings& found_;
  double now_;
};

}  // namespace

std::string culpritText(const Culprit& culprit, const Members& members, const Topology& topology) {
  std::vector<std::string> names;
  for (int node : culprit.nodes) names.push_back(name(members, node));
  const std::string rail = culprit.rail.empty() ? "" : ", rail " + culprit.rail;
  switch (culprit.kind) {
    case Culprit::Kind::kLink:
      return fmt::format("link {}{}", fmt::join(names, " - "), rail);
    case Culprit::Kind::kNode:
      return fmt::format("node {}", names.front());
    case Culprit::Kind::kNodeRail:
      return fmt::format("node {}{}", names.front(), rail);
    case Culprit::Kind::kRail:
      return "rail " + culprit.rail;
    case Culprit::Kind::kLeafUplink:
      return fmt::format("uplink of {}", topology.names[static_cast<size_t>(culprit.leaf)]);
    case Culprit::Kind::kUnattributable:
      break;
  }
  constexpr size_t kMost = 8;
  const size_t more = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(std::min(names.size(), kMost));
  return fmt::format("{}{}", fmt::join(names, " or "), more > 0 ? fmt::format(" or {} more", more) : "");
}

std::string withNames(const std::string& evidence, const Members& members) {
  std::string text;
  for (size_t i = 0; i < evidence.size(); ++i) {
    if (evidence[i] != '#') {
      text += evidence[i];
      continue;
    }
    size_t member = 0;
    size_t end = i + 1;
    for (; end < evidence.size() && evidence[end] >= '0' && evidence[end] <= '9'; ++end)
      member = member * 10 + static_cast<size_t>(evidence[end] - '0');
    text += end > i + 1 && member < members.names.size() ? members.names[member] : "#";
    if (end > i + 1) i = end - 1;
  }
  return text;
}

bool concerns(const Culprit& culprit, const Members& members, const Topology& topology, int rank) {
  if (rank == 0) return true;
  if (culprit.kind == Culprit::Kind::kLeafUplink)
    return topology.leaf(members.own) == culprit.leaf && members.ownRail == 0;
  const bool ofAll = culprit.kind == Culprit::Kind::kRail;
  if (!ofAll && std::find(culprit.nodes.begin(), culprit.nodes.end(), members.own) == culprit.nodes.end())
    return false;
  if (culprit.rail.empty()) return members.ownRail == 0;
  const std::string rails = "," + culprit.rail + ",";
  return rails.find(fmt::format(",{},", members.ownRail)) != std::string::npos;
}

Status reportFindings(const sdk::Host& host, const Members& members, const Communicator& communicator,
                      const Findings& findings, double now) {
  return Reporter(host, members, communicator.rank(), findings, now).run(communicator.implementation());
}

}  // namespace muster::ring

// SPDX-License-Identifier: Apache-2.0
// Tracks heartbeats and statuses of the other nodes and compares identities.
#include "runner/cluster/cluster_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/core/json.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kMostNodes = 20;

/// "node 1 (n1), node 2 (n2) and 5 more".
struct NodeList {
  template <typename Name>
  void add(const Name& name) {
    if (++count <= kMostNodes) names.push_back(name());
  }
  [[nodiscard]] std::string text() const {
    return join(names, ", ") + (count > kMostNodes ? fmt::format(" and {} more", count - kMostNodes) : "");
  }

  std::vector<std::string> names;
  size_t count = 0;
};

std::string shortNameOf(const std::string& host) {
  return host.substr(0, host.find('.'));
}

}  // namespace

double heartbeatInterval(int nodes, double lostAfter) {
  constexpr double kNodesPerSecond = 2000;
  return std::min(std::max(0.5, nodes / kNodesPerSecond), lostAfter / 5);
}

std::string statusText(const NodeStatus& status) {
  Json json = {{"nonce", status.nonce}, {"host", status.host}, {"identity", status.identity}};
  if (!status.finished.empty()) json["finished"] = status.finished;
  if (!status.declined.empty()) json["declined"] = status.declined;
  if (!status.round.empty()) json["round"] = status.round;
  for (const RankReport& report : status.failures) json["failures"].push_back(toJson(report));
  if (status.interrupted) json["interrupted"] = true;
  if (status.ended) json["ended"] = true;
  return dumpJson(json);
}

Result<NodeStatus> statusFromText(std::string_view text) {
  MUSTER_TRY(const Json json, parseJson(text));
  if (!json.is_object()) return Error{ErrorCode::kProtocol, "a node status that is not an object", ""};
  NodeStatus status;
  JsonReader reader(json, "node status");
  reader.read("nonce", status.nonce);
  reader.read("host", status.host);
  reader.read("identity", status.identity);
  reader.optional("finished", status.finished);
  reader.optional("declined", status.declined);
  reader.optional("round", status.round);
  reader.optional("interrupted", status.interrupted);
  reader.optional("ended", status.ended);
  if (reader.has("failures"))
    reader.each("failures", [&](const Json& entry, const std::string& path) -> Status {
      MUSTER_TRY(RankReport report, rankReportFromJson(entry, path));
      status.failures.push_back(std::move(report));
      return {};
    });
  MUSTER_CHECK_OK(reader.status());
  return status;
}

ClusterPeers::ClusterPeers(const ClusterOptions& options)
    : options_(options),
      claims_{{shortNameOf(options.host), 1}},
      peers_(options.nodeRank == 0 ? static_cast<size_t>(options.nodeCount) : 1),
      finished_(options.finished),
      declined_(options.declined) {}

void ClusterPeers::takeStatus(int rank, std::optional<NodeStatus> status, double now) {
  Peer& peer = at(rank);
  peer.seenAt = now;
  peer.statusGiven = true;
  if (status)
    for (auto* stages : {&status->finished, &status->declined})
      std::erase_if(*stages, [&](const auto& stage) { return !options_.stages.contains(stage.first); });
  if (rank != options_.nodeRank) {
    if (peer.status && --claims_[shortNameOf(peer.status->host)] == 0)
      claims_.erase(shortNameOf(peer.status->host));
    if (status) ++claims_[shortNameOf(status->host)];
  }
  peer.status = std::move(status);
  ++changes_;
}

void ClusterPeers::hold(Members members, double now) {
  members_ = std::move(members);
  heldSince_ = now;
}

/// Names stand in texts that are read again: no node may take another one's, or more than a name. "n2.x" is
/// read as n2.
std::string ClusterPeers::hostOf(int rank) const {
  if (const auto index = static_cast<size_t>(rank); index < options_.nodes.size())
    return options_.nodes[index];
  const NodeStatus* const theirs = status(rank);
  const std::string host = rank == options_.nodeRank ? options_.host : theirs == nullptr ? "" : theirs->host;
  return isPlainName(host) && claims_.at(shortNameOf(host)) == 1 ? host : "";
}

std::string ClusterPeers::name(int rank) const {
  const std::string host = hostOf(rank);
  return host.empty() ? fmt::format("node {}", rank) : fmt::format("node {} ({})", rank, host);
}

int ClusterPeers::seenCount() const {
  return static_cast<int>(
      std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.seenAt >= 0; }));
}

bool ClusterPeers::silent(int rank, double now) const {
  return !seen(rank) || now - at(rank).seenAt > options_.lostAfter;
}

bool ClusterPeers::mayStillAnswer(int rank, double now) const {
  if (startedAgain(rank)) return false;  // it knows nothing of the question
  if (!silent(rank, now)) return true;
  // One that never sent a status may only be late; one that fell silent, or was waited for before, is lost.
  return !seen(rank) && !at(rank).givenUp;
}

/// What was seen before the stage says nothing: the new start may send its own first status, which comes
/// before its first heartbeat, a moment after its first answer.
bool ClusterPeers::startedAgain(int rank) const {
  const auto index = static_cast<size_t>(rank);
  const Peer& peer = at(rank);
  return index < members_.size() && peer.seenAt > heldSince_ && peer.status &&
         peer.status->nonce != members_[index].start;
}

std::string ClusterPeers::gone(int rank) const {
  if (startedAgain(rank)) return "was started again in the middle of this stage";
  return at(rank).status && at(rank).status->interrupted ? kInterrupted : "";
}

int64_t ClusterPeers::liveOthers(double now) const {
  int64_t count = 0;
  for (int rank = 0; rank < options_.nodeCount; ++rank)
    if (rank != options_.nodeRank && !silent(rank, now)) ++count;
  return count;
}

int64_t ClusterPeers::othersAtWork(double now) const {
  int64_t count = 0;
  for (int rank = 0; rank < options_.nodeCount; ++rank)
    if (rank != options_.nodeRank && !silent(rank, now) && !(at(rank).status && at(rank).status->ended))
      ++count;
  return count;
}

std::string ClusterPeers::identityProblem(int rank, bool theyLead) const {
  if (rank == options_.nodeRank || !at(rank).statusGiven) return "";
  const std::string theirName = name(rank);
  if (!at(rank).status || at(rank).status->identity.empty())
    return theirName + " sends heartbeats without an identity; is it another version of Muster?";
  const auto& theirs = at(rank).status->identity;
  for (const auto& [what, value] : options_.identity) {
    const auto found = theirs.find(what);
    const std::string other = found == theirs.end() ? "(none)" : found->second;
    if (other == value) continue;
    const std::string me = name(options_.nodeRank);
    const std::string shown = namesParts(other) ? "another value" : printable(other, 100);
    return fmt::format(
        "{} has {} {}, and {} has {}; all nodes of a run must have the same{}", theyLead ? me : theirName,
        what, theyLead ? printable(value, 100) : shown, theyLead ? theirName : me,
        theyLead ? shown : printable(value, 100),
        what == "nodes" ? " number of nodes: correct --nnodes, or what the launcher states" : "");
  }
  return "";
}

void ClusterPeers::noteFinished(const std::string& stage, const std::string& outcome) {
  finished_[stage] = outcome;
  ++changes_;
}

void ClusterPeers::noteDeclined(const std::string& stage, const std::string& why) {
  declined_[stage] = why;
  ++changes_;
}

std::string ClusterPeers::whyDeclined(int rank, const std::string& stage) const {
  const NodeStatus* known = status(rank);
  if (known == nullptr || !known->declined.contains(stage)) return "";
  return fmt::format("{}{}{}", name(rank), kDeclines, reasonText(known->declined.at(stage)));
}

std::optional<std::string> ClusterPeers::finished(int rank, const std::string& stage) const {
  const bool own = rank == options_.nodeRank;
  if (!own && !at(rank).status) return std::nullopt;
  const auto& all = own ? finished_ : at(rank).status->finished;
  const auto found = all.find(stage);
  return found == all.end() ? "" : printable(found->second, 20);
}

std::string ClusterPeers::disagreement(const std::string& stage) const {
  NodeList done, open, absent;
  for (int rank = 0; rank < options_.nodeCount; ++rank) {
    const auto state = finished(rank, stage);
    if (!state)
      absent.add([&] { return name(rank); });
    else if (state->empty())
      open.add([&] { return name(rank); });
    else
      done.add([&] { return fmt::format("{} ({})", name(rank), *state); });
  }
  if (done.count == 0) return "";
  std::string text = "it is on " + done.text();
  if (open.count > 0) text += ", and not on " + open.text();
  if (absent.count > 0) text += "; not there: " + absent.text();
  return text;
}

std::map<std::string, std::string> ClusterPeers::disagreements() const {
  std::set<std::string> stages;
  for (const auto& [stage, outcome] : finished_) stages.insert(stage);
  for (const Peer& peer : peers_)
    if (peer.status)
      for (const auto& [stage, outcome] : peer.status->finished) stages.insert(stage);
  std::map<std::string, std::string> all;
  for (const std::string& stage : stages) all[stage] = disagreement(stage);
  return all;
}

bool ClusterPeers::givenUpFor(const RunningTime::Stop& stop, double heardAt) const {
  return stop.seconds >= options_.lostAfter - 2 * options_.beat && heardAt < stop.until + options_.lostAfter;
}

std::vector<NodeReport> ClusterPeers::reports(const std::string& round, const RunningTime::Stop& stop,
                                              double now) const {
  std::vector<NodeReport> all;
  all.reserve(peers_.size());
  for (int rank = 0; rank < options_.nodeCount; ++rank) {
    const Peer& peer = at(rank);
    NodeReport node;
    node.node = rank;
    node.name = name(rank);
    node.silent = rank != 0 && silent(rank, now);
    node.silence = peer.seenAt < 0 ? -1 : now - peer.seenAt;
    // One that gave this node up may go on sending heartbeats; one that fell silent later did not.
    if (rank != 0 && stop.seconds > 0 && peer.seenAt >= 0)
      node.lostInStop = givenUpFor(stop, node.silent ? peer.seenAt : stop.until) ? stop.seconds : 0;
    node.gone = gone(rank);
    if (const auto index = static_cast<size_t>(rank); index < members_.size()) {
      node.firstRank = members_[index].firstRank;
      node.rankCount = members_[index].rankCount;
    }
    if (peer.status && peer.status->round == round) node.take(peer.status->failures);
    all.push_back(std::move(node));
  }
  return all;
}

}  // namespace muster

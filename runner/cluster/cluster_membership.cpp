// SPDX-License-Identifier: Apache-2.0
// Claims a rank, joins, follows who has finished which stage, and leaves. See cluster_membership.h.
#include "runner/cluster/cluster_membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/core/json.h"

namespace muster {
namespace {

constexpr int kFinishedTurns = 6;
const std::string kFinishedKey = leaderKey("finished");

}  // namespace

Status ClusterMembership::join(double patience) {
  const double end = node_.time.now() + patience;
  std::unique_lock lock(node_.mutex);
  while (!node_.joined && node_.refused.empty() && node_.time.now() < end)
    node_.tasks->wait(lock, end - node_.time.now());
  if (node_.refused.empty()) return {};
  return Error{ErrorCode::kUsage, node_.refused, ""};
}

Status ClusterMembership::claim() {
  const ClusterOptions& options = node_.options;
  if (claims_ == 0) {
    MUSTER_TRY(claims_, node_.client->add(fmt::format("claim/{}", options.nodeRank), 1));
  }
  if (claims_ > 1) {
    // Somebody was here: an earlier start of this node, or a second host under the same rank. Only the latter
    // sends heartbeats; it may not have sent its first one yet.
    MUSTER_TRY(const auto other, heartbeat_.otherHost());
    if (other) {
      const std::lock_guard lock(node_.mutex);
      node_.refused =
          fmt::format("node rank {} is already taken by host {}, and this is {}; give each node its own rank",
                      options.nodeRank, *other, options.host);
      node_.tasks->notify();
      return {};
    }
  }
  if (node_.leads()) return {};
  MUSTER_CHECK_OK(heartbeat_.meetLeader());
  const std::lock_guard lock(node_.mutex);
  node_.refused = node_.peers.identityProblem(0, true);
  node_.tasks->notify();
  return {};
}

void ClusterMembership::noteJoined() {
  const std::lock_guard lock(node_.mutex);
  node_.joined = node_.joined || node_.refused.empty();
  node_.tasks->notify();
}

void ClusterMembership::rollCall(double patience) {
  constexpr const char* kName = "roll-call";
  const ClusterOptions& options = node_.options;
  const double end = node_.time.now() + patience;
  int seen = 0;
  while (seen < options.nodeCount && node_.time.now() < end && !options.cancelled->load()) {
    if (node_.leads())
      publishFinished();
    else
      readFinished();
    {
      const std::lock_guard lock(node_.mutex);
      seen = finished_.seen;
    }
    if (seen < options.nodeCount) node_.pause(options.beat / 2);
  }
  if (node_.leads())
    agreement_.expectReaders(kName, std::max(0, seen - 1));
  else
    agreement_.noteRead(kName);
}

bool ClusterMembership::leaveTogether(double patience) {
  constexpr const char* kName = "leave";
  const ClusterOptions& options = node_.options;
  heartbeat_.endRun();
  const std::string key = leaderKey(kName);
  if (node_.leads()) {
    const auto atWork = [&] {
      const std::lock_guard lock(node_.mutex);
      return node_.peers.othersAtWork(node_.time.now());
    };
    const double end = node_.time.now() + patience;
    while (atWork() > 0 && node_.time.now() < end && !options.cancelled->load()) node_.pause(options.beat);
    const bool together = atWork() == 0;
    if (!node_.client->set(key, "1").ok()) return together;
    const std::lock_guard lock(node_.mutex);
    agreement_.expectReaders(kName, node_.peers.liveOthers(node_.time.now()));
    return together;
  }
  // Node 0 may be at work itself before it waits for others.
  const double end = node_.time.now() + 2 * patience;
  while (!options.cancelled->load() && node_.time.now() < end) {
    const auto left = node_.client->get(key, options.beat);
    node_.answered(left.ok() ? Status() : Status(left.error()));
    if (left.ok()) agreement_.noteRead(kName);
    if (left.ok()) return true;
    if (left.error().code != ErrorCode::kTimeout) node_.pause(options.beat);
    const std::lock_guard lock(node_.mutex);
    if (!node_.joined || !node_.lostLeader().empty()) return true;
  }
  return options.cancelled->load();
}

void ClusterMembership::hold(Members members) {
  const std::lock_guard lock(node_.mutex);
  node_.peers.hold(std::move(members), node_.time.now());
  node_.time.forget();
}

void ClusterMembership::release() {
  const std::lock_guard lock(node_.mutex);
  node_.peers.release();
}

std::string ClusterMembership::nameOf(int rank) {
  const std::lock_guard lock(node_.mutex);
  return node_.peers.name(rank);
}

std::string ClusterMembership::mismatch(int rank) {
  const std::lock_guard lock(node_.mutex);
  return node_.peers.identityProblem(rank, false);
}

void ClusterMembership::noteFinished(const std::string& stage, const std::string& outcome) {
  const std::lock_guard lock(node_.mutex);
  node_.peers.release();
  node_.peers.noteFinished(stage, outcome);
}

void ClusterMembership::noteDeclined(const std::string& stage, const std::string& why) {
  const std::lock_guard lock(node_.mutex);
  node_.peers.noteDeclined(stage, why);
}

std::string ClusterMembership::whyDeclined(int rank, const std::string& stage) {
  const std::lock_guard lock(node_.mutex);
  return node_.peers.whyDeclined(rank, stage);
}

bool ClusterMembership::wasInterrupted(int rank) {
  const std::lock_guard lock(node_.mutex);
  const NodeStatus* known = node_.peers.status(rank);
  return known != nullptr && known->interrupted;
}

std::string ClusterMembership::finishedWhere(const std::string& stage) {
  if (node_.leads()) {
    const std::lock_guard lock(node_.mutex);
    return node_.peers.disagreement(stage);
  }
  // Node 0 says in its own status that it has finished a stage a moment before it tells who else has.
  for (int turn = 0; turn < kFinishedTurns; ++turn) {
    readFinished();
    {
      const std::lock_guard lock(node_.mutex);
      if (const auto found = finished_.stages.find(stage); found != finished_.stages.end())
        return found->second;
    }
    node_.pause(node_.options.beat);
  }
  return fmt::format("it is on {}, and not on {}", nameOf(0), nameOf(node_.options.nodeRank));
}

void ClusterMembership::publishFinished() {
  heartbeat_.readStatuses();
  Finished now;
  {
    const std::lock_guard lock(node_.mutex);
    if (summarized_ == node_.peers.changes()) return;
    summarized_ = node_.peers.changes();
    now.seen = node_.peers.seenCount();
    now.stages = node_.peers.disagreements();
    now.text = dumpJson({{"seen", now.seen}, {"stages", now.stages}});
    if (now.text == finished_.text) return;
  }
  const Status told = node_.client->set(kFinishedKey, now.text);
  node_.answered(told);
  const std::lock_guard lock(node_.mutex);
  if (!told.ok()) return (void)(summarized_ = 0);
  finished_ = std::move(now);
}

void ClusterMembership::readFinished() {
  const auto text = node_.client->get(kFinishedKey, 0);
  if (!text.ok()) return;
  const auto json = parseJson(*text);
  if (!json.ok()) return;
  Finished now;
  JsonReader reader(*json, "finished");
  reader.read("seen", now.seen);
  reader.read("stages", now.stages);
  if (!reader.ok()) return;
  const std::lock_guard lock(node_.mutex);
  finished_ = std::move(now);
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// See cluster_link.h: how all nodes come to one decision, which node 0 makes.
#include <fmt/format.h>

#include <algorithm>

#include "runner/app/cluster_link.h"
#include "runner/core/clock.h"
#include "runner/core/units.h"

namespace muster {
namespace {

constexpr double kSlice = 0.25;            // seconds of one wait, between looks at what else happened
constexpr double kDecisionSlack = 5;       // seconds beyond its patience that node 0 may take to decide
constexpr const char* kGone = "gone";      // the answer of a node that has stopped waiting
constexpr const char* kLeaves = "leaves";  // around the answer of a node that does not wait for the decision

std::string answerKey(const std::string& name, int rank) {
  return fmt::format("q/{}/answer/{}", name, rank);
}

Error interruptedError() {
  return Error{ErrorCode::kTimeout, "the run was interrupted", ""};
}

}  // namespace

Result<Json> ClusterLink::agree(const std::string& name, const Json& mine, double patience,
                                const Decide& decide) {
  {
    const std::lock_guard lock(mutex_);
    if (!refused_.empty()) return Error{ErrorCode::kUsage, refused_, ""};
  }
  return leads() ? leadQuestion(name, mine, patience, decide) : askLeader(name, mine, patience);
}

void ClusterLink::decline(const std::string& name, const Json& mine) {
  // Who cannot be told now learns it from this node's silence, or by waiting.
  if (!leads())
    return answered(client_->set(answerKey(name, options_.nodeRank), dumpJson({{kLeaves, mine}})));
  const auto live = [&] {
    const std::lock_guard lock(mutex_);
    const double now = systemClock().now();
    return std::count_if(peers_.begin() + 1, peers_.end(),
                         [&](const Peer& peer) { return !silent(peer, now); });
  };
  (void)publish(name, mine, live()).ok();
}

/// Whether node `rank`, which has not answered, may still do so.
bool ClusterLink::worthWaiting(int rank, double since, double patience) {
  const double now = systemClock().now();
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (now > since + patience) {
    peer.givenUp = true;
    return false;
  }
  if (!silent(peer, now)) return true;
  // One that never gave a sign may only be late; one that fell silent, or was waited for before, is lost.
  return peer.seenAt < 0 && !peer.givenUp;
}

/// `left` counts the nodes that answered and will not read the decision.
ClusterLink::Answers ClusterLink::gather(const std::string& name, const Json& mine, double patience,
                                         int64_t& left) {
  Answers answers(static_cast<size_t>(options_.nodeCount));
  answers[0] = mine;
  const double since = systemClock().now();
  std::vector<int> open;
  for (int rank = 1; rank < options_.nodeCount; ++rank) open.push_back(rank);
  while (!open.empty() && !options_.cancelled->load()) {
    bool waited = false;
    std::erase_if(open, [&](int rank) {
      // The first one that is missing is waited for; the others are only looked at.
      const auto text = client_->get(answerKey(name, rank), waited ? 0 : kSlice);
      if (!text.ok()) {
        waited = true;
        return !worthWaiting(rank, since, patience);
      }
      auto answer = parseJson(*text);
      if (!answer.ok() || *answer == kGone) return true;
      const bool leaves = answer->is_object() && answer->contains(kLeaves);
      if (leaves) ++left;
      answers[static_cast<size_t>(rank)] = leaves ? (*answer)[kLeaves] : *answer;
      return true;
    });
  }
  return answers;
}

Result<Json> ClusterLink::leadQuestion(const std::string& name, const Json& mine, double patience,
                                       const Decide& decide) {
  MUSTER_CHECK_OK(client_->set("q/" + name + "/open", "1").context("opening " + name));
  int64_t left = 0;
  const Answers answers = gather(name, mine, patience, left);
  readSigns();  // so that the decision names hosts as they are known now
  const Json decision = decide(answers);
  const auto stay =
      std::count_if(answers.begin() + 1, answers.end(), [](const auto& a) { return a.has_value(); });
  MUSTER_CHECK_OK(publish(name, decision, stay - left));
  return decision;
}

Status ClusterLink::publish(const std::string& name, const Json& decision, int64_t readers) {
  MUSTER_CHECK_OK(client_->set("q/" + name + "/open", "1").context("opening " + name));
  MUSTER_CHECK_OK(client_->set("q/" + name + "/decision", dumpJson(decision)).context("deciding " + name));
  // Answers have done their work; the decision stays for those who come late.
  MUSTER_TRY([[maybe_unused]] const int64_t cleared, client_->clear("q/" + name + "/answer/"));
  question_ = name;
  readers_ = readers;
  return {};
}

Result<Json> ClusterLink::askLeader(const std::string& name, const Json& mine, double patience) {
  const double since = systemClock().now();
  double openSince = -1;
  bool told = false;
  while (true) {
    if (!told) {
      const Status status = client_->set(answerKey(name, options_.nodeRank), dumpJson(mine));
      answered(status);
      told = status.ok();
    }
    if (told) {
      const auto decision = client_->get("q/" + name + "/decision", kSlice);
      answered(decision.ok() ? Status() : Status(decision.error()));
      if (decision.ok()) {
        // Only node 0's patience at the end of the run hangs on this count.
        (void)client_->add("q/" + name + "/read", 1).ok();
        return parseJson(*decision);
      }
      if (openSince < 0 && client_->get("q/" + name + "/open", 0).ok()) openSince = systemClock().now();
    } else {
      pause(kSlice);
    }
    if (options_.cancelled->load()) return interruptedError();
    const double now = systemClock().now();
    std::string why;
    {
      const std::lock_guard lock(mutex_);
      if (!refused_.empty()) return Error{ErrorCode::kUsage, refused_, ""};
      if (joined_) why = lostLeader();
      if (!why.empty()) return Error{ErrorCode::kIo, why, ""};
      if (now > (openSince < 0 ? since + patience : openSince + patience + kDecisionSlack))
        why =
            fmt::format("{} did not {} within {}{}", nameLocked(0),
                        !joined_        ? "answer at " + options_.store.front().text()
                        : openSince < 0 ? "come to this stage"
                                        : "decide about this stage",
                        formatQuantity(now - since, "s"), joined_ || trouble_.empty() ? "" : ": " + trouble_);
    }
    if (why.empty()) continue;
    // Node 0 must not count on this node any more.
    (void)client_->set(answerKey(name, options_.nodeRank), dumpJson(Json(kGone))).ok();
    return Error{ErrorCode::kTimeout, why, ""};
  }
}

}  // namespace muster

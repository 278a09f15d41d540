// SPDX-License-Identifier: Apache-2.0
// How nodes answer, and how node 0's decision reaches them. See cluster_agreement.h.
#include "runner/cluster/cluster_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/core/units.h"

namespace muster {
namespace {

constexpr double kSlice = 0.25;        // seconds of one wait, between looks at what else happened
constexpr double kDecisionSlack = 5;   // seconds beyond its patience that node 0 may take to decide
constexpr const char* kGone = "gone";  // the answer of a node that has stopped waiting
constexpr double kParting = 2;         // seconds that an interrupted node 0 waits for who comes to a stage
constexpr double kEndParting = 5;      // and an interrupted node for how a stage ended that it has begun
constexpr double kLastReaders = 5;     // seconds that the store outlives the run for the last decision
constexpr const char* kLeaves = "leaves";  // around the answer of a node that does not wait for the decision

std::string answerKey(const std::string& name, int rank) {
  return fmt::format("q/{}/answer/{}", name, rank);
}

std::string decisionKey(const std::string& name) {
  return leaderKey("q/" + name + "/decision");
}

std::string partsKey(const std::string& name) {
  return leaderKey("q/" + name + "/part/");
}

constexpr double kSecondWait = 2;               // seconds for a node 0 that was waited for in vain before
constexpr size_t kLongestNews = 1024;           // bytes of a decision that goes to all nodes by itself
constexpr const char* kHasParts = "has_parts";  // in a decision: each node's part has a key of its own

/// The parts of a decision, which are told apart from it; none: an empty array.
Json takeParts(Json& decision) {
  if (!decision.is_object() || !decision.contains("parts") || !decision["parts"].is_array())
    return Json::array();
  Json parts = std::move(decision["parts"]);
  decision.erase("parts");
  decision[kHasParts] = true;
  return parts;
}

Error interruptedError() {
  return Error{ErrorCode::kTimeout, "the run was interrupted", ""};
}

}  // namespace

Result<Json> ClusterAgreement::ask(const std::string& name, const Json& mine, double patience,
                                   const Decide& decide, const std::string& stage,
                                   const std::function<void()>& onWait) {
  if (!node_.leads())
    if (auto known = answerOfLeader(stage)) return *std::move(known);
  {
    const std::lock_guard lock(node_.mutex);
    if (!node_.refused.empty()) return Error{ErrorCode::kUsage, node_.refused, ""};
    // A call to a node 0 that is lost would only wait for it once more.
    if (const std::string lost = node_.joined ? node_.lostLeader() : ""; !lost.empty())
      return Error{ErrorCode::kIo, lost, ""};
  }
  Question question{name, mine, patience, stage, onWait};
  if (node_.leads()) return leadQuestion(question, decide);
  const auto unmet = [&] {
    const std::lock_guard lock(node_.mutex);
    return !node_.joined;
  };
  // A name that cannot be looked up, or a node 0 that is not there, costs the run one stage's time.
  if (waitedInVain_ && unmet()) question.patience = std::min(patience, kSecondWait);
  Result<Json> decision = askLeader(question);
  waitedInVain_ = !decision.ok() && decision.error().code == ErrorCode::kTimeout && unmet();
  return decision;
}

void ClusterAgreement::decline(const std::string& name, const Json& mine) {
  // Who cannot be told now learns it from this node's silence, or by waiting.
  if (!node_.leads())
    return node_.answered(
        node_.client->set(answerKey(name, node_.options.nodeRank), dumpJson({{kLeaves, mine}})));
  // The others may still be busy, and have not been heard of yet: node 0 must not be gone before they know.
  (void)publish(name, mine, node_.options.nodeCount - 1).ok();
}

/// Whether node `rank`, which has not answered, may still do so.
bool ClusterAgreement::worthWaiting(int rank, double since, double patience) {
  const double now = node_.time.now();
  const std::lock_guard lock(node_.mutex);
  if (now <= since + patience) return node_.peers.mayStillAnswer(rank, now);
  node_.peers.giveUp(rank);
  return false;
}

/// Node 0: the answers that came since the last call, with one request. The last one of a node counts: it may
/// have been interrupted since, or started again.
void ClusterAgreement::takeAnswers(const Question& question, uint64_t& since, std::set<int>& open,
                                   Answers& answers, std::set<int>& left) {
  for (bool more = true; more;) {
    const auto changes = node_.client->changes(fmt::format("q/{}/answer/", question.name), since);
    if (!changes.ok()) return;
    since = changes->version;
    more = changes->more;
    for (const auto& [key, value] : changes->entries) {
      const int rank = rankOfKey(key, node_.options.nodeCount);
      if (rank < 0) continue;
      open.erase(rank);
      auto answer = parseJson(value);
      if (!answer.ok() || *answer == kGone) continue;
      left.erase(rank);
      const bool leaves = answer->is_object() && answer->contains(kLeaves);
      if (leaves) left.insert(rank);
      answers[static_cast<size_t>(rank)] = leaves ? (*answer)[kLeaves] : *answer;
    }
  }
}

/// Node 0: forgets what an earlier start of a node has answered; the present one is waited for. A node gives
/// its status before its answer.
void ClusterAgreement::dropStale(std::set<int>& open, Answers& answers, std::set<int>& stale) {
  const auto isStale = [&](int rank) {
    const auto& answer = answers[static_cast<size_t>(rank)];
    if (!answer || !answer->is_object() || !answer->contains(kStart)) return false;
    const std::lock_guard lock(node_.mutex);
    const NodeStatus* status = node_.peers.status(rank);
    return status != nullptr && (*answer)[kStart] != status->nonce;
  };
  bool isFresh = false;
  for (int rank = 1; rank < node_.options.nodeCount; ++rank) {
    if (!isStale(rank)) continue;
    if (!std::exchange(isFresh, true)) heartbeat_.readStatuses();
    if (!isStale(rank)) continue;
    answers[static_cast<size_t>(rank)].reset();
    open.insert(rank);
    stale.insert(rank);
  }
}

/// `left`: the nodes that answered and will not read the decision.
ClusterAgreement::Answers ClusterAgreement::gather(const Question& question, std::set<int>& left) {
  Answers answers(static_cast<size_t>(node_.options.nodeCount));
  answers[0] = question.mine;
  const double since = node_.time.now();
  std::set<int> open, stale;
  for (int rank = 1; rank < node_.options.nodeCount; ++rank) open.insert(rank);
  double partingSince = -1;
  uint64_t seen = 0;
  while (true) {
    question.onWait();
    takeAnswers(question, seen, open, answers, left);
    dropStale(open, answers, stale);
    std::erase_if(open, [&](int rank) {
      return hasFinished(rank, question.stage) || !worthWaiting(rank, since, question.patience);
    });
    if (open.empty()) break;
    if (node_.options.cancelled->load()) {
      const double now = node_.time.now();
      if (partingSince < 0) partingSince = now;
      if (now > partingSince + (question.stage.empty() ? kEndParting : kParting)) break;
    }
    // Whoever comes first of those that are missing, the others are not far. What a node said before is still
    // there.
    if (stale.contains(*open.begin()))
      node_.pause(kSlice);
    else
      (void)node_.client->get(answerKey(question.name, *open.begin()), kSlice).ok();
  }
  return answers;
}

Result<Json> ClusterAgreement::leadQuestion(const Question& question, const Decide& decide) {
  const std::string& name = question.name;
  {
    const std::lock_guard lock(node_.mutex);
    news_.last().open = name;
  }
  news_.publish();
  std::set<int> left;
  const Answers answers = gather(question, left);
  heartbeat_.readStatuses();  // so that the decision names hosts as they are known now
  Json decision = decide(answers);
  int64_t readers = 0;
  for (int rank = 1; rank < node_.options.nodeCount; ++rank)
    readers += answers[static_cast<size_t>(rank)] && !left.contains(rank) ? 1 : 0;
  MUSTER_CHECK_OK(publish(name, decision, readers));
  if (Json parts = takeParts(decision); !parts.empty()) decision["part"] = std::move(parts[0]);
  return decision;
}

Status ClusterAgreement::publish(const std::string& name, Json decision, int64_t readers) {
  // Who answered this question has read the parts of the last one.
  if (!decided_.empty()) (void)node_.client->clear(partsKey(decided_)).ok();
  if (const Json parts = takeParts(decision); !parts.empty())
    for (size_t rank = 1; rank < parts.size(); ++rank)
      MUSTER_CHECK_OK(node_.client->set(partsKey(name) + std::to_string(rank), dumpJson(parts[rank])));
  const std::string text = dumpJson(decision);
  MUSTER_CHECK_OK(node_.client->set(decisionKey(name), text).context("deciding " + name));
  {
    const std::lock_guard lock(node_.mutex);
    ClusterNews::News& news = news_.last();
    news.open = news.decided = name;
    news.decision = text.size() <= kLongestNews ? text : "";
    rounds_.forgetCulprit();
  }
  news_.publish();
  // Answers have done their work; the decision stays for those who come late.
  MUSTER_TRY([[maybe_unused]] const int64_t cleared, node_.client->clear("q/" + name + "/answer/"));
  expectReaders(name, readers);
  return {};
}

void ClusterAgreement::expectReaders(const std::string& name, int64_t readers) {
  decided_ = name;
  readers_ = readers;
}

/// Only node 0's patience at the end of the run hangs on this count.
void ClusterAgreement::noteRead(const std::string& name) {
  (void)node_.client->add("q/" + name + "/read", 1).ok();
}

void ClusterAgreement::awaitReaders() {
  if (decided_.empty() || readers_ == 0) return;
  const double end = node_.time.now() + kLastReaders;
  while (node_.time.now() < end) {
    const auto read = node_.client->add("q/" + decided_ + "/read", 0);
    if (!read.ok() || *read >= readers_) return;
    node_.pause(0.05);
  }
}

/// Why this node need not wait for the decision any longer; nothing while it should.
std::optional<Error> ClusterAgreement::whyStopWaiting(const Question& question, double since,
                                                      double openSince) {
  const double now = node_.time.now();
  const std::lock_guard lock(node_.mutex);
  if (!node_.refused.empty()) return Error{ErrorCode::kUsage, node_.refused, ""};
  if (node_.joined)
    if (const std::string lost = node_.lostLeader(); !lost.empty()) return Error{ErrorCode::kIo, lost, ""};
  if (now <= (openSince < 0 ? since + question.patience : openSince + question.patience + kDecisionSlack))
    return std::nullopt;
  return Error{ErrorCode::kTimeout,
               fmt::format("{} did not {} within {}{}", node_.peers.name(0),
                           !node_.joined   ? "answer at " + node_.options.store.text()
                           : openSince < 0 ? "come to this stage"
                                           : "decide about this stage",
                           formatQuantity(now - since, "s"),
                           node_.joined || node_.trouble.empty() ? "" : ": " + node_.trouble),
               ""};
}

/// The decision with this node's own part of it, where it has parts.
Result<Json> ClusterAgreement::readDecision(const std::string& name, const std::string& text) {
  MUSTER_TRY(Json decision, parseJson(text));
  if (!decision.is_object() || !decision.contains(kHasParts)) return decision;
  const auto part = node_.client->get(partsKey(name) + std::to_string(node_.options.nodeRank), 0);
  node_.answered(part.ok() ? Status() : Status(part.error()));
  if (!part.ok() && part.error().code == ErrorCode::kTimeout)
    return decision;  // it came too late to have one
  if (!part.ok()) return part.error();
  MUSTER_TRY(decision["part"], parseJson(*part));
  return decision;
}

/// Waits for a decision for up to `seconds`. Node 0 tells the last one with its news; an older one is in the
/// store. `checked`: the last one that was told when the store was asked.
Result<std::string> ClusterAgreement::awaitDecision(const std::string& name, double seconds,
                                                    std::string& checked) {
  const double end = node_.options.clock->now() + seconds;
  {
    std::unique_lock lock(node_.mutex);
    const ClusterNews::News& news = news_.last();
    for (double left = seconds; news.decided == checked; left = end - node_.options.clock->now()) {
      if (left <= 0 || node_.stopping) return Error{ErrorCode::kTimeout, "no decision yet", ""};
      node_.tasks->wait(lock, left);
    }
    checked = news.decided;
    if (news.decided == name && !news.decision.empty()) return news.decision;
  }
  auto decision = node_.client->get(decisionKey(name), 0);
  node_.answered(decision.ok() ? Status() : Status(decision.error()));
  return decision;
}

bool ClusterAgreement::hasFinished(int rank, const std::string& stage) {
  const std::lock_guard lock(node_.mutex);
  return !stage.empty() && (!node_.peers.finished(rank, stage).value_or("").empty() ||
                            !node_.peers.whyDeclined(rank, stage).empty());
}

/// Of a stage that node 0 has finished before this node came: it may have left since.
std::optional<Json> ClusterAgreement::answerOfLeader(const std::string& stage) {
  if (!hasFinished(0, stage)) return std::nullopt;
  const std::lock_guard lock(node_.mutex);
  if (const std::string why = node_.peers.whyDeclined(0, stage); !why.empty())
    return Json{{"skip", why}, {"open", node_.peers.status(0)->interrupted}};
  return Json{{"finished", true}};
}

Result<Json> ClusterAgreement::askLeader(const Question& question) {
  const std::string key = answerKey(question.name, node_.options.nodeRank);
  const double since = node_.time.now(), slice = std::max(kSlice, node_.options.beat / 2);
  double openSince = -1;
  std::string checked = lastRead_;
  std::optional<std::string> told;  // the start of node 0 that was given this node's answer
  double leftAt = -1;               // when this node said that nobody need wait for it to read the decision
  while (true) {
    question.onWait();
    if (auto known = answerOfLeader(question.stage)) return *std::move(known);
    if (const std::string now = node_.leader(); told != now) {
      const Status status = node_.client->set(key, dumpJson(question.mine));
      node_.answered(status);
      openSince = -1;
      checked = lastRead_;
      told = status.ok() ? std::optional(now) : std::nullopt;
    }
    if (told) {
      if (const auto text = awaitDecision(question.name, slice, checked); text.ok()) {
        auto decision = readDecision(question.name, *text);
        if (decision.ok() || decision.error().code != ErrorCode::kIo) {
          lastRead_ = question.name;
          if (leftAt < 0) noteRead(question.name);
          return decision;
        }
        checked = lastRead_;  // node 0 may still give this node its part
        node_.pause(kSlice);
      }
      const std::lock_guard lock(node_.mutex);
      if (openSince < 0 && news_.last().open == question.name) openSince = node_.time.now();
    } else {
      node_.pause(kSlice);
    }
    if (node_.options.cancelled->load()) {
      const double now = node_.time.now();
      // What it said counts, also for how a stage ended that this node has begun.
      if (leftAt < 0) {
        (void)node_.client->set(key, dumpJson({{kLeaves, question.mine}})).ok();
        leftAt = now;
      }
      if (!question.stage.empty() || now > leftAt + kEndParting) return interruptedError();
    }
    if (auto why = whyStopWaiting(question, since, openSince)) {
      // Node 0 must not count on this node any more; where it was lost, another call would only wait for it.
      if (why->code != ErrorCode::kIo) (void)node_.client->set(key, dumpJson(Json(kGone))).ok();
      return *std::move(why);
    }
  }
}

}  // namespace muster

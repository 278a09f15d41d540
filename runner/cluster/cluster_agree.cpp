// SPDX-License-Identifier: Apache-2.0
// See cluster_link.h: how all nodes come to one decision, which node 0 makes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runner/cluster/cluster_link.h"
#include "runner/core/units.h"

namespace muster {
namespace {

constexpr double kSlice = 0.25;            // seconds of one wait, between looks at what else happened
constexpr double kDecisionSlack = 5;       // seconds beyond its patience that node 0 may take to decide
constexpr const char* kGone = "gone";      // the answer of a node that has stopped waiting
constexpr double kParting = 2;             // seconds that an interrupted node 0 still waits for the others
constexpr const char* kLeaves = "leaves";  // around the answer of a node that does not wait for the decision

std::string answerKey(const std::string& name, int rank) {
  return fmt::format("q/{}/answer/{}", name, rank);
}

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

Result<Json> ClusterLink::agree(const std::string& name, const Json& mine, double patience,
                                const Decide& decide, const std::string& stage) {
  {
    const std::lock_guard lock(mutex_);
    if (!refused_.empty()) return Error{ErrorCode::kUsage, refused_, ""};
  }
  const Question question{name, mine, patience, stage};
  return leads() ? leadQuestion(question, decide) : askLeader(question);
}

void ClusterLink::decline(const std::string& name, const Json& mine) {
  // Who cannot be told now learns it from this node's silence, or by waiting.
  if (!leads())
    return answered(client_->set(answerKey(name, options_.nodeRank), dumpJson({{kLeaves, mine}})));
  const auto live = [&] {
    const std::lock_guard lock(mutex_);
    return peers_.liveOthers(time_.now());
  };
  (void)publish(name, mine, live()).ok();
}

/// Whether node `rank`, which has not answered, may still do so.
bool ClusterLink::worthWaiting(int rank, double since, double patience) {
  const double now = time_.now();
  const std::lock_guard lock(mutex_);
  if (now <= since + patience) return peers_.mayStillAnswer(rank, now);
  peers_.giveUp(rank);
  return false;
}

/// Node 0: the answers that came since the last call, with one request.
void ClusterLink::takeAnswers(const Question& question, uint64_t& since, std::set<int>& open,
                              Answers& answers, int64_t& left) {
  for (bool more = true; more;) {
    const auto changes = client_->changes(fmt::format("q/{}/answer/", question.name), since);
    if (!changes.ok()) return;
    since = changes->version;
    more = changes->more;
    for (const auto& [key, value] : changes->entries) {
      int rank = -1;
      const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), rank);
      if (failure != std::errc() || end != key.data() + key.size() || open.erase(rank) == 0) continue;
      auto answer = parseJson(value);
      if (!answer.ok() || *answer == kGone) continue;
      const bool leaves = answer->is_object() && answer->contains(kLeaves);
      if (leaves) ++left;
      answers[static_cast<size_t>(rank)] = leaves ? (*answer)[kLeaves] : *answer;
    }
  }
}

/// `left` counts the nodes that answered and will not read the decision.
ClusterLink::Answers ClusterLink::gather(const Question& question, int64_t& left) {
  Answers answers(static_cast<size_t>(options_.nodeCount));
  answers[0] = question.mine;
  const double since = time_.now();
  std::set<int> open;
  for (int rank = 1; rank < options_.nodeCount; ++rank) open.insert(rank);
  double partingSince = -1;
  uint64_t seen = 0;
  while (true) {
    takeAnswers(question, seen, open, answers, left);
    std::erase_if(open, [&](int rank) {
      return hasFinished(rank, question.stage) || !worthWaiting(rank, since, question.patience);
    });
    if (open.empty()) break;
    if (options_.cancelled->load()) {
      const double now = time_.now();
      if (partingSince < 0) partingSince = now;
      if (now > partingSince + kParting) break;
    }
    // Whoever comes first of those that are missing, the others are not far.
    (void)client_->get(answerKey(question.name, *open.begin()), kSlice).ok();
  }
  return answers;
}

Result<Json> ClusterLink::leadQuestion(const Question& question, const Decide& decide) {
  const std::string& name = question.name;
  {
    const std::lock_guard lock(mutex_);
    news_.open = name;
  }
  publishNews();
  int64_t left = 0;
  const Answers answers = gather(question, left);
  readStatuses();  // so that the decision names hosts as they are known now
  Json decision = decide(answers);
  const auto stay =
      std::count_if(answers.begin() + 1, answers.end(), [](const auto& a) { return a.has_value(); });
  MUSTER_CHECK_OK(publish(name, decision, stay - left));
  if (Json parts = takeParts(decision); !parts.empty()) decision["part"] = std::move(parts[0]);
  return decision;
}

Status ClusterLink::publish(const std::string& name, Json decision, int64_t readers) {
  // Who answered this question has read the parts of the last one.
  if (!question_.empty()) (void)client_->clear("q/" + question_ + "/part/").ok();
  if (const Json parts = takeParts(decision); !parts.empty())
    for (size_t rank = 1; rank < parts.size(); ++rank)
      MUSTER_CHECK_OK(client_->set(fmt::format("q/{}/part/{}", name, rank), dumpJson(parts[rank])));
  const std::string text = dumpJson(decision);
  MUSTER_CHECK_OK(client_->set("q/" + name + "/decision", text).context("deciding " + name));
  {
    const std::lock_guard lock(mutex_);
    news_.open = news_.decided = name;
    news_.decision = text.size() <= kLongestNews ? text : "";
    if (round_.empty()) news_.round = news_.culprit = "";  // all have left that round
  }
  publishNews();
  // Answers have done their work; the decision stays for those who come late.
  MUSTER_TRY([[maybe_unused]] const int64_t cleared, client_->clear("q/" + name + "/answer/"));
  question_ = name;
  readers_ = readers;
  return {};
}

/// Why this node need not wait for the decision any longer; nothing while it should.
std::optional<Error> ClusterLink::whyStopWaiting(const Question& question, double since, double openSince) {
  const double now = time_.now();
  const std::lock_guard lock(mutex_);
  if (!refused_.empty()) return Error{ErrorCode::kUsage, refused_, ""};
  if (joined_)
    if (const std::string lost = lostLeader(); !lost.empty()) return Error{ErrorCode::kIo, lost, ""};
  if (now <= (openSince < 0 ? since + question.patience : openSince + question.patience + kDecisionSlack))
    return std::nullopt;
  return Error{
      ErrorCode::kTimeout,
      fmt::format("{} did not {} within {}{}", peers_.name(0),
                  !joined_        ? "answer at " + options_.store.text()
                  : openSince < 0 ? "come to this stage"
                                  : "decide about this stage",
                  formatQuantity(now - since, "s"), joined_ || trouble_.empty() ? "" : ": " + trouble_),
      ""};
}

/// The decision with this node's own part of it, where it has parts.
Result<Json> ClusterLink::readDecision(const std::string& topic, const std::string& text) {
  MUSTER_TRY(Json decision, parseJson(text));
  if (!decision.is_object() || !decision.contains(kHasParts)) return decision;
  const auto part = client_->get(fmt::format("{}/part/{}", topic, options_.nodeRank), 0);
  if (!part.ok()) return decision;  // it came too late to have one
  MUSTER_TRY(decision["part"], parseJson(*part));
  return decision;
}

/// Waits for a decision for up to `seconds`. Node 0 tells the last one with its news; an older one is in the
/// store. `checked`: the last one that was told when the store was asked.
Result<std::string> ClusterLink::awaitDecision(const std::string& name, double seconds,
                                               std::string& checked) {
  const double end = options_.clock->now() + seconds;
  {
    std::unique_lock lock(mutex_);
    for (double left = seconds; news_.decided == checked; left = end - options_.clock->now()) {
      if (left <= 0 || stopping_) return Error{ErrorCode::kTimeout, "no decision yet", ""};
      tasks_->wait(lock, left);
    }
    checked = news_.decided;
    if (news_.decided == name && !news_.decision.empty()) return news_.decision;
  }
  auto decision = client_->get("q/" + name + "/decision", 0);
  answered(decision.ok() ? Status() : Status(decision.error()));
  return decision;
}

/// Which start of node 0 is there, as far as this node knows.
std::string ClusterLink::leader() {
  const std::lock_guard lock(mutex_);
  return peers_.status(0) == nullptr ? "" : peers_.status(0)->nonce;
}

bool ClusterLink::hasFinished(int rank, const std::string& stage) {
  const std::lock_guard lock(mutex_);
  return !stage.empty() && !peers_.finished(rank, stage).value_or("").empty();
}

Result<Json> ClusterLink::askLeader(const Question& question) {
  const std::string key = answerKey(question.name, options_.nodeRank);
  const std::string topic = "q/" + question.name;
  const double since = time_.now(), slice = std::max(kSlice, options_.beat / 2);
  double openSince = -1;
  std::string checked = lastRead_;
  std::optional<std::string> told;  // the start of node 0 that was given this node's answer
  while (true) {
    if (hasFinished(0, question.stage)) return Json{{"finished", true}};
    if (const std::string now = leader(); told != now) {
      const Status status = client_->set(key, dumpJson(question.mine));
      answered(status);
      openSince = -1;
      checked = lastRead_;
      told = status.ok() ? std::optional(now) : std::nullopt;
    }
    if (told) {
      const auto decision = awaitDecision(question.name, slice, checked);
      if (decision.ok()) {
        lastRead_ = question.name;
        // Only node 0's patience at the end of the run hangs on this count.
        (void)client_->add(topic + "/read", 1).ok();
        return readDecision(topic, *decision);
      }
      const std::lock_guard lock(mutex_);
      if (openSince < 0 && news_.open == question.name) openSince = time_.now();
    } else {
      pause(kSlice);
    }
    if (options_.cancelled->load()) {
      // What it said counts, but nobody need wait for this node to read the decision.
      (void)client_->set(key, dumpJson({{kLeaves, question.mine}})).ok();
      return interruptedError();
    }
    if (auto why = whyStopWaiting(question, since, openSince)) {
      // Node 0 must not count on this node any more.
      (void)client_->set(key, dumpJson(Json(kGone))).ok();
      return *std::move(why);
    }
  }
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Runs the agreements of a cluster stage: entry, rounds, results.
#include "runner/cluster/cluster_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <map>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr double kEndSlack = 20;    // seconds that a node may take to end its ranks: grace, KILL, a stuck one
constexpr double kLeaveSlack = 60;  // seconds that a node may take from its ranks' end to the stage's own
constexpr double kTold = 1;         // seconds beyond two heartbeats until all nodes know of a failure
constexpr size_t kMostMissing = 20;
constexpr size_t kIdDigits = 16;
constexpr int kMostRanks = 1 << 15;  // of one node
/// Nodes on each side whose names a node takes down: enough that one of them that lies is outvoted, and not
/// more in large runs.
constexpr size_t kAround = 4;

std::set<size_t> setOf(const Json& object, const char* key) {
  std::set<size_t> numbers;
  if (object.is_object() && object.contains(key) && object[key].is_array())
    for (const Json& number : object[key])
      if (number.is_number_integer() && number.get<int64_t>() >= 0) numbers.insert(number.get<size_t>());
  return numbers;
}

bool flag(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_boolean() && object[key].get<bool>();
}

/// Of an answer or a decision.
std::string textOf(const Json& text) {
  return text.is_string() ? reasonText(text.get_ref<const std::string&>()) : std::string();
}

std::string textOf(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) ? textOf(object[key]) : std::string();
}

/// Whether it is a number from 0 on: what node 0 decides itself was never text, so it may be a signed one.
bool isCount(const Json& value) {
  return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= INT_MAX;
}

int countOf(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && isCount(object[key]) ? object[key].get<int>() : 0;
}

StageEnding endingIn(const Json& decision) {
  return flag(decision, "open") ? StageEnding::kOpen : StageEnding::kFinished;
}

/// Who calls itself as another one does has no name.
void dropSharedNames(std::vector<NodeAround>& nodes) {
  std::map<std::string, int> claims;
  for (const NodeAround& node : nodes) ++claims[node.node];
  for (NodeAround& node : nodes)
    if (!isPlainName(node.node) || claims[node.node] > 1) node.node.clear();
}

/// Of all nodes of a run, those around one that have a name.
std::vector<NodeAround> aroundOf(size_t rank, const std::vector<NodeAround>& nodes) {
  std::set<size_t> ranks;  // in a small run a node may be on both sides
  for (size_t step = 0; step <= 2 * kAround; ++step)
    ranks.insert((rank + step + kAround * (nodes.size() - 1)) % nodes.size());
  std::vector<NodeAround> around;
  for (const size_t other : ranks)
    if (!nodes[other].node.empty()) around.push_back(nodes[other]);
  return around;
}

/// What is none is left out.
std::vector<NodeAround> aroundIn(const Json& part, int nodes) {
  std::vector<NodeAround> around;
  if (!part.is_object() || !part.contains("around") || !part["around"].is_array()) return around;
  for (const Json& one : part["around"]) {
    NodeAround node{countOf(one, "node_rank"), textOf(one, "node"), countOf(one, "first_rank"),
                    countOf(one, "ranks")};
    if (isPlainName(node.node) && node.nodeRank < nodes && around.size() <= 2 * kAround)
      around.push_back(std::move(node));
  }
  return around;
}

/// Runs that failed on a rank because of another one, or in which one still waits.
std::set<size_t> hurtRuns(const ClusterAgreement::Answers& answers) {
  std::set<size_t> hurt;
  for (const auto& answer : answers) {
    if (!answer) continue;
    hurt.merge(setOf(*answer, "hurt"));
    const std::set<size_t> ended = setOf(*answer, "ended");
    for (const size_t run : setOf(*answer, "begun"))
      if (!ended.contains(run)) hurt.insert(run);
  }
  return hurt;
}

/// Whether a rank says that another one failed it.
bool saysHurt(const ClusterAgreement::Answers& answers) {
  return std::any_of(answers.begin(), answers.end(),
                     [](const auto& answer) { return answer && !setOf(*answer, "hurt").empty(); });
}

/// Who failed a run in which nobody was hurt has done so to itself alone.
void forgetHarmless(std::vector<NodeReport>& nodes, const std::set<size_t>& hurt) {
  for (NodeReport& node : nodes)
    for (RankReport& rank : node.ranks)
      std::erase_if(rank.caseFailures,
                    [&](const auto& failure) { return !hurt.contains(static_cast<size_t>(failure.first)); });
}

}  // namespace

Json toJson(const std::vector<NodeAround>& around) {
  Json list = Json::array();
  for (const NodeAround& one : around)
    list.push_back({{"node_rank", one.nodeRank},
                    {"node", one.node},
                    {"first_rank", one.firstRank},
                    {"ranks", one.ranks}});
  return list;
}

/// Which nodes have finished the stage and which have not, after a part of them was started again.
std::string ClusterStage::disagreement() {
  return "nodes disagree on whether this stage is finished: " + link_.members().finishedWhere(stage_) +
         "; a finished stage is not rerun, and the others cannot run it alone: start a new run with "
         "--out";
}

/// Who has another plan, build or seed than most; of two nodes nobody can tell. Empty: all have the same.
std::string ClusterStage::oddNodes(size_t nodes) {
  std::vector<std::string> odd;
  std::string first;
  for (int rank = 0; rank < static_cast<int>(nodes); ++rank)
    if (const std::string other = link_.members().mismatch(rank); !other.empty()) {
      odd.push_back(link_.members().nameOf(rank));
      if (first.empty()) first = other;
    }
  if (odd.empty() || nodes <= 2 || 2 * odd.size() == nodes) return first;
  if (2 * odd.size() > nodes) odd = {link_.members().nameOf(0)};
  return fmt::format("{} differ{} from most nodes: {}", join(odd, ", "), odd.size() == 1 ? "s" : "", first);
}

/// `members`: who takes part, where all have come.
Json ClusterStage::decideEntry(const ClusterAgreement::Answers& answers, Members& members) {
  if (const std::string odd = oddNodes(answers.size()); !odd.empty()) return {{"error", odd}};
  // A node that does not take part has finished the stage by saying so.
  for (size_t rank = 0; rank < answers.size(); ++rank)
    if (const std::string why = link_.members().whyDeclined(static_cast<int>(rank), stage_); !why.empty())
      return {{"skip", why}, {"open", link_.members().wasInterrupted(static_cast<int>(rank))}};
    else if (const std::string said = answers[rank] ? textOf(*answers[rank], "skip") : ""; !said.empty())
      return {
          {"skip", fmt::format("{}{}{}", link_.members().nameOf(static_cast<int>(rank)), kDeclines, said)},
          {"open", flag(*answers[rank], "open")}};
    else if (rank > 0 && link_.members().wasInterrupted(static_cast<int>(rank)))
      return {{"skip", fmt::format("{}{}its run was interrupted",
                                   link_.members().nameOf(static_cast<int>(rank)), kDeclines)},
              {"open", true}};
  if (!link_.members().finishedWhere(stage_).empty()) return {{"finished", true}};
  std::vector<std::string> missing;
  Json parts = Json::array();
  std::vector<NodeAround> nodes;
  int world = 0;
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    const std::string name = link_.members().nameOf(static_cast<int>(rank));
    if (!answers[rank]) {
      missing.push_back(name);
      continue;
    }
    const int ranks = countOf(*answers[rank], "ranks");
    if (ranks > kMostRanks) return {{"error", fmt::format("{} reports {} ranks", name, ranks)}};
    members.push_back({textOf(*answers[rank], ClusterAgreement::kStart), world, ranks});
    nodes.push_back({static_cast<int>(rank), textOf(*answers[rank], "node"), world, ranks});
    parts.push_back({{"first", world}, {"start", members.back().start}});
    world += ranks;
  }
  if (missing.empty()) {
    dropSharedNames(nodes);
    for (size_t rank = 0; rank < parts.size(); ++rank) parts[rank]["around"] = toJson(aroundOf(rank, nodes));
    return {{"world", world}, {"leader", link_.members().self()}, {"parts", std::move(parts)}};
  }
  if (link_.options().cancelled->load())
    return {{"error", fmt::format("{} {}", link_.members().nameOf(0), kInterrupted)}, {"open", true}};
  const size_t count = missing.size();
  if (count > kMostMissing) missing.resize(kMostMissing);
  return {
      {"error", fmt::format("{} of {} nodes did not arrive: {}{}; look at their runs, or start them; if the "
                            "run has fewer than {} nodes, correct --nnodes",
                            count, answers.size(), join(missing, ", "),
                            count > kMostMissing ? " and more" : "", answers.size())}};
}

ClusterEntry ClusterStage::enter(int localSize) {
  ClusterEntry entry;
  link_.members().release();
  Members members;
  const auto decision = link_.agreement().ask(
      stage_ + "/enter",
      {{"ranks", static_cast<unsigned>(localSize)},
       {ClusterAgreement::kStart, link_.members().self()},
       {"node", link_.options().host}},
      arrival_, [&](const ClusterAgreement::Answers& answers) { return decideEntry(answers, members); },
      stage_);
  if (!decision.ok()) {
    entry.why = decision.error().text();
    if (link_.options().cancelled->load()) decline("its run was interrupted");
    return entry;
  }
  ending_ = endingIn(*decision);
  // Node 0, which tells those that come later, too.
  if (flag(*decision, "open") && link_.options().nodeRank == 0 && link_.options().cancelled->load())
    decline("its run was interrupted");
  if (flag(*decision, "finished")) {
    entry.why = disagreement();
    return entry;
  }
  entry.why = textOf(*decision, "error");
  if (!entry.why.empty()) return entry;
  entry.kind = ClusterEntry::Kind::kSkip;
  entry.why = textOf(*decision, "skip");
  if (!entry.why.empty()) return entry;
  const Json part = decision->is_object() && decision->contains("part") ? (*decision)["part"] : Json();
  if (const std::string start = textOf(part, "start"); start != link_.members().self()) {
    entry.kind = ClusterEntry::Kind::kError;
    entry.why = fmt::format(
        "{} {}", link_.members().nameOf(link_.options().nodeRank),
        start.empty() ? "learned too late that this stage had begun"
                      : "was started again in the middle of this stage, which the others had begun with its "
                        "earlier start");
    return entry;
  }
  const int world = countOf(*decision, "world"), first = countOf(part, "first");
  if (world > int64_t{kMostRanks} * link_.options().nodeCount || world - first < localSize) {
    entry.kind = ClusterEntry::Kind::kError;
    entry.why = fmt::format("node 0 gave {} the ranks from {} on of {}, which cannot be",
                            link_.members().nameOf(link_.options().nodeRank), first, world);
    return entry;
  }
  if (members.empty()) members.push_back({textOf(*decision, "leader")});
  link_.members().hold(std::move(members));
  entry.firstRank = first;
  entry.worldSize = world;
  entry.id = sha256Hex(textOf(*decision, "leader")).substr(0, kIdDigits);
  entry.around = aroundIn(part, link_.options().nodeCount);
  entry.kind = ClusterEntry::Kind::kGo;
  ending_ = StageEnding::kOwn;
  return entry;
}

void ClusterStage::decline(const std::string& why) {
  const std::string name = link_.members().nameOf(link_.options().nodeRank);
  link_.members().noteDeclined(stage_, why);
  // Node 0's answer is the decision itself.
  const bool leads = link_.options().nodeRank == 0;
  link_.agreement().decline(stage_ + "/enter",
                            {{"skip", leads ? fmt::format("{}{}{}", name, kDeclines, why) : why},
                             {"open", link_.options().cancelled->load()},
                             {ClusterAgreement::kStart, link_.members().self()}});
}

void ClusterStage::beginRound(int attempt, int start) {
  round_ = fmt::format("{}/{}/{}", stage_, attempt, start);
  link_.rounds().begin(round_);
}

std::vector<NodeReport> ClusterStage::sightsOfNodes(const ClusterAgreement::Answers& answers) {
  std::vector<NodeReport> nodes = link_.rounds().nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!answers[i]) continue;
    nodes[i].silent = false;
    nodes[i].cutOff = !textOf(*answers[i], "lost").empty();
    if (flag(*answers[i], "interrupted")) nodes[i].gone = kInterrupted;
    std::vector<RankReport> said;
    if (answers[i]->contains("ranks") && (*answers[i])["ranks"].is_array())
      for (const Json& entry : (*answers[i])["ranks"])
        if (auto report = rankReportFromJson(entry, "round"); report.ok()) said.push_back(std::move(*report));
    nodes[i].take(std::move(said));
  }
  return nodes;
}

Culprit ClusterStage::culpritOf(const ClusterAgreement::Answers& answers, size_t runs) {
  std::vector<NodeReport> nodes = sightsOfNodes(answers);
  forgetHarmless(nodes, hurtRuns(answers));
  // Only where a rank said that another one failed it, their errors tell whose they are.
  const auto withOwn = [&](Culprit known) {
    return saysHurt(answers) ? withOwnFailures(std::move(known), nodes) : known;
  };
  if (Culprit published = link_.rounds().lost(); !published.text.empty())
    return withOwn(std::move(published));
  bool late = false, interrupted = false;
  for (const auto& answer : answers) {
    late = late || (answer && flag(*answer, "late"));
    interrupted = interrupted || (answer && flag(*answer, "interrupted"));
  }
  if (interrupted) return withOwn(knownCulprit(nodes));
  if (Culprit misused = link_.rounds().misuse(); !misused.text.empty()) return misused;
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].mute = !answers[i];
    // Whose ranks have ended all runs holds nobody up, however busy they were: another node may say "late".
    if (answers[i] && flag(*answers[i], "clean") && setOf(*answers[i], "ended").size() >= runs)
      for (RankReport& rank : nodes[i].ranks) rank.active = -1;
  }
  if (late) return withOwn(culpritAtDeadline(nodes));
  Culprit known = knownCulprit(nodes);
  return known.text.empty() ? failedByThemselves(nodes) : withOwn(std::move(known));
}

RoundResult roundResult(const ClusterAgreement::Answers& answers, size_t runs) {
  std::set<size_t> begun, ended;
  for (size_t run = 0; run < runs; ++run) ended.insert(run);
  bool complete = true, late = false, clean = true;
  for (const auto& answer : answers) {
    complete = complete && answer.has_value();
    if (!answer) continue;
    late = late || flag(*answer, "late") || flag(*answer, "interrupted") || !textOf(*answer, "lost").empty();
    clean = clean && flag(*answer, "clean");
    begun.merge(setOf(*answer, "begun"));
    const std::set<size_t> here = setOf(*answer, "ended");
    std::erase_if(ended, [&](size_t run) { return here.count(run) == 0; });
  }
  // What a lost node had ended nobody knows.
  if (!complete) ended.clear();
  RoundResult result;
  result.passed = complete && clean && !late && ended.size() == runs;
  if (result.passed) return result;
  result.again = complete && !late;
  const auto add = [&](const auto& which) {
    if (!result.failed.empty()) return;
    for (size_t run = 0; run < runs; ++run)
      if (which(run)) result.failed.insert(run);
  };
  add([&](size_t run) { return ended.count(run) == 0 && (!result.again || begun.count(run) > 0); });
  // A round in which nothing was begun would be the same again.
  add([&](size_t run) { return ended.count(run) == 0; });
  // All runs ended, and then a rank failed: that invalidates all its results.
  add([](size_t) { return true; });
  // Nodes without ranks cannot tell by themselves that nothing is left to start.
  result.again = result.again && ended.size() + result.failed.size() < runs;
  return result;
}

Json ClusterStage::decideRound(const ClusterAgreement::Answers& answers, size_t runs) {
  RoundResult result = roundResult(answers, runs);
  if (!link_.rounds().misuse().text.empty()) {  // whatever a rank made of it, its results do not count
    result = {};
    for (size_t run = 0; run < runs; ++run) result.failed.insert(run);
  }
  const Culprit culprit = result.passed && hurtRuns(answers).empty() ? Culprit{} : culpritOf(answers, runs);
  const bool unknown = !result.passed && culprit.text.empty();
  return {{"culprit", unknown ? "the group's ranks did not all end their cases, and no rank or node is known "
                                "to be at fault"
                              : culprit.text},
          {"ranks", culprit.ranks},
          {"failed", result.failed},
          {"again", result.again},
          {"open", culprit.isInterruption}};
}

RoundVerdict ClusterStage::endRound(const RoundSight& sight, size_t runs, double timeLeft,
                                    const std::function<void()>& onWait) {
  Json ranks = Json::array();
  for (const RankReport& report : link_.rounds().ownReports()) ranks.push_back(toJson(report));
  const Json mine = {{"late", sight.late},   {"interrupted", sight.interrupted},
                     {"lost", sight.lost},   {"begun", sight.begun},
                     {"ended", sight.ended}, {"clean", sight.clean},
                     {"hurt", sight.hurt},   {"ranks", std::move(ranks)}};
  const double patience = timeLeft + link_.options().lostAfter + kEndSlack;
  const ClusterOptions& options = link_.options();
  const double toldBy = options.clock->now() + kTold + 2 * options.beat;
  const auto whileNobodyFailed = [&] {
    if (!options.cancelled->load() && options.clock->now() > toldBy && link_.rounds().lost().text.empty())
      onWait();
  };
  const auto decision = link_.agreement().ask(
      round_ + "/end", mine, patience,
      [&](const ClusterAgreement::Answers& answers) { return decideRound(answers, runs); }, "",
      whileNobodyFailed);
  RoundVerdict verdict;
  if (decision.ok()) {
    verdict.culprit = textOf(*decision, "culprit");
    verdict.ranks = setOf(*decision, "ranks");
    verdict.failed = setOf(*decision, "failed");
    verdict.failed.erase(verdict.failed.lower_bound(runs), verdict.failed.end());  // node 0 may say anything
    verdict.again = flag(*decision, "again");
    ending_ = endingIn(*decision);
  } else {
    // Without node 0 nobody knows how the others fared: nothing of this round counts.
    verdict.culprit = sight.lost.empty() ? decision.error().text() : sight.lost;
    if (const Culprit lost = link_.rounds().lost(); lost.text == sight.lost)
      verdict.ranks = {lost.ranks.begin(), lost.ranks.end()};
    for (size_t run = 0; run < runs; ++run) verdict.failed.insert(run);
    ending_ = link_.members().wasInterrupted(0) ? StageEnding::kOpen : StageEnding::kOwn;
  }
  link_.rounds().end();
  link_.clearRound(round_);
  return verdict;
}

Result<std::set<std::string>> ClusterStage::retries(int attempt, const std::set<std::string>& mine,
                                                    const std::string& faulty) {
  const auto merge = [](const ClusterAgreement::Answers& answers) {
    std::set<std::string> all;
    for (const auto& answer : answers) {
      if (!answer || !textOf(*answer, "faulty").empty() || !answer->contains("cases")) return Json::array();
      for (const Json& id : (*answer)["cases"])
        if (id.is_string()) all.insert(id.get<std::string>());
    }
    return Json(all);
  };
  const double patience = link_.options().lostAfter + kEndSlack;
  const auto decision = link_.agreement().ask(fmt::format("{}/retry/{}", stage_, attempt),
                                              {{"cases", mine}, {"faulty", faulty}}, patience, merge);
  if (!decision.ok()) {
    ending_ = StageEnding::kOwn;  // the others may try more
    return decision.error();
  }
  std::set<std::string> cases;
  for (const Json& id : *decision)
    if (id.is_string()) cases.insert(id.get<std::string>());
  return cases;
}

std::string ClusterStage::attend(const Course& course) {
  std::string faulty, failed;  // failed: whose case did, in an attempt that ran to its end
  size_t cases = course.cases;
  for (int attempt = 1; attempt <= course.attempts && cases > 0; ++attempt) {
    const size_t runs = cases * static_cast<size_t>(course.repeat);
    bool again = true;
    for (int start = 0; again; ++start) {
      RoundSight sight;
      sight.interrupted = link_.options().cancelled->load();
      for (size_t run = 0; run < runs; ++run) sight.ended.insert(run);
      beginRound(attempt, start);
      const RoundVerdict verdict = endRound(sight, runs, course.timeout);
      failed = verdict.culprit;
      if (faulty.empty() && !verdict.failed.empty()) faulty = verdict.culprit;
      again = verdict.again;
    }
    if (attempt == course.attempts) break;
    const auto agreed = retries(attempt, {}, faulty);
    cases = agreed.ok() ? agreed->size() : 0;
  }
  return leave(faulty.empty() ? failed : faulty);
}

std::string ClusterStage::leave(const std::string& faulty) {
  const auto decide = [&](const ClusterAgreement::Answers& answers) {
    // Node 0 names others, and has only the word of a node for what that one found.
    for (size_t rank = 0; rank < answers.size(); ++rank)
      if (const std::string found = answers[rank] ? textOf(*answers[rank], "faulty") : ""; !found.empty())
        return Json(rank == 0 ? found
                              : link_.members().nameOf(static_cast<int>(rank)) + " reports: " + found);
    std::vector<NodeReport> nodes = link_.rounds().nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].ranks.clear();  // they have ended, and are judged already
      nodes[i].gone = answers[i] ? "" : nodes[i].gone;
      nodes[i].silent = nodes[i].silent && !answers[i];
      // An interrupted node 0 does not wait for who is slow.
      nodes[i].mute = !answers[i] && !link_.options().cancelled->load();
    }
    return Json(knownCulprit(nodes).text);
  };
  const double patience = link_.options().lostAfter + kLeaveSlack;
  const auto decision = link_.agreement().ask(stage_ + "/leave", {{"faulty", faulty}}, patience, decide);
  if (!faulty.empty()) return faulty;
  if (!decision.ok()) {
    // All have agreed that all ranks ended, and nobody waits for a node that was interrupted since.
    const bool parts = link_.options().cancelled->load() && decision.error().code == ErrorCode::kTimeout;
    if (parts && ending_ == StageEnding::kFinished) return "";
    ending_ = StageEnding::kOwn;
    return decision.error().text();
  }
  return decision->is_string() ? textOf(*decision) : "node 0 did not report how the stage ended";
}

}  // namespace muster

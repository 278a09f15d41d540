// SPDX-License-Identifier: Apache-2.0
// Runs the attempts of a stage, judges them and fills the stage record.
#include "runner/app/stage/stage_runner.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <set>

#include "runner/app/stage/earlier_attempts.h"
#include "runner/app/stage/expectations.h"
#include "runner/app/stage/rank_group.h"
#include "runner/app/stage/rank_slots.h"
#include "runner/app/stage/stage_checkpoint.h"
#include "runner/app/stage/stage_telemetry.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/plan/lua/predicate.h"
#include "runner/record/evidence_json.h"
#include "runner/record/fold/measurement_fold.h"
#include "runner/record/record_check.h"
#include "runner/record/verdict_fold.h"
#include "runner/sku/network_peaks.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;

double secondsOfChildren() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

namespace {

/// The digest of a plugin's library, read once per process; empty where it cannot be read.
std::string librarySha256(const std::string& path) {
  static std::map<std::string, std::string> known;
  const auto [at, fresh] = known.try_emplace(path);
  if (fresh)
    if (const auto bytes = readFile(path); bytes.ok()) at->second = sha256Hex(*bytes);
  return at->second;
}

StageRecord beginRecord(const Stage& stage) {
  StageRecord record;
  record.name = stage.name;
  record.plugin = stage.plugin;
  record.test = stage.test;
  record.scope = stage.scope;
  record.needs = stage.needs;
  record.required = stage.required;
  record.started = systemClock().wallUnix();
  record.timeout = stage.timeout;
  record.repeat = stage.repeat;
  for (const Case& c : stage.cases) record.cases.push_back({c.id, c.params});
  return record;
}

/// Cases that must be tried again: any of their verdicts of the last attempt is a fail or an error.
std::vector<const Case*> casesToRetry(const Stage& stage, const StageEvidence& evidence,
                                      const JudgeContext& context) {
  std::set<std::string> bad;
  for (const Verdict& verdict : judgeStage(evidence, context).verdicts)
    if (verdict.outcome == Outcome::kFail || verdict.outcome == Outcome::kError) bad.insert(verdict.caseId);
  std::vector<const Case*> cases;
  for (const Case& c : stage.cases)
    if (bad.count(c.id) > 0) cases.push_back(&c);
  return cases;
}

/// Gives artifacts their place, size and digest. One that cannot be read is said in the stage's log, and so
/// is one that lies elsewhere, which is left out.
void sealArtifacts(StageRecord& record, const fs::path& folder) {
  std::erase_if(record.artifacts, [&](const ArtifactRecord& artifact) {
    if (isSafeRelativePath(fs::path(artifact.path).lexically_relative(folder).string())) return false;
    record.log.push_back(fmt::format("artifact {}: {} is not in the folder of the run",
                                     printable(artifact.name, 80), printable(artifact.path, 200)));
    return true;
  });
  for (ArtifactRecord& artifact : record.artifacts) {
    auto content = readFile(artifact.path, kMaxArtifactBytes);
    if (content.ok()) {
      artifact.bytes = content->size();
      artifact.sha256 = sha256Hex(*content);
    } else {
      record.log.push_back("artifact " + artifact.name + ": " + content.error().text());
    }
    artifact.path = fs::path(artifact.path).lexically_relative(folder).string();
  }
}

/// Why this node cannot take part in a group; empty when it can.
std::string unfit(const NodeProgress& progress, const std::vector<RankSlot>& slots) {
  if (slots.empty()) return "no device was found to run on";
  for (const RankSlot& slot : slots)
    if (const auto it = progress.quarantined.find(slot.device); it != progress.quarantined.end())
      return slot.device + " is quarantined: " + it->second;
  return "";
}

template <typename T>
std::vector<T> firstOf(const std::vector<T>& all, size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()))};
}

/// Seconds that a stage waits for the other nodes at its start.
double arrivalOf(const NodeConfig& node, const Stage& stage) {
  return node.arrival > 0 ? node.arrival : stage.timeout;
}

Json groupJson(int worldSize, int firstRank, int nodes, const ClusterEntry& entry = {}) {
  Json group = {{"world_size", worldSize}, {"first_rank", firstRank}, {"nodes", nodes}};
  if (!entry.id.empty()) group["id"] = entry.id;
  if (!entry.around.empty()) group["around"] = toJson(entry.around);
  group["culprit"] = "";
  return group;
}

/// Of a stage of all simulated nodes, by node: what real ones tell each other when they meet.
std::vector<int> ranksOfNodes(const NodeConfig& node, const NodeProgress& progress, const Stage& stage,
                              int local) {
  const auto count = static_cast<size_t>(groupNodes(stage, node.nodeCount));
  const bool differ = stage.ranks == 0 && progress.devicesOfNodes.size() >= count;
  return differ ? firstOf(progress.devicesOfNodes, count) : std::vector<int>(count, local);
}

/// Meets the other nodes of a cluster-scope stage and gives this node's ranks their numbers among all. Nodes
/// that are alone or simulated meet nobody. An entry that is not kGo says why the stage does not run.
/// `blind`: why this node has no telemetry and takes no part.
ClusterEntry enterGroup(StageHere& here, const std::string& blind, std::unique_ptr<ClusterStage>& cluster,
                        StageRecord& record) {
  const NodeConfig& node = here.node;
  std::vector<RankSlot>& slots = here.slots;
  GroupPlace& place = here.place;
  const auto local = static_cast<int>(slots.size());
  ClusterEntry entry{ClusterEntry::Kind::kGo, "", 0, local};
  if (node.cluster != nullptr) {
    cluster = std::make_unique<ClusterStage>(*node.cluster, here.stage.name, arrivalOf(node, here.stage));
    const std::string why = blind.empty() ? unfit(here.progress, slots) : blind;
    if (!why.empty()) {
      cluster->decline(why);
      return {ClusterEntry::Kind::kError, why, 0, 1};
    }
    node.view->stageProgress({0, -1, fmt::format("waiting for all {} nodes", node.nodeCount)});
    entry = cluster->enter(local);
  } else if (node.simulated()) {
    const std::vector<int> counts = ranksOfNodes(node, here.progress, here.stage, local);
    const auto own = counts.begin() + node.nodeRank;
    entry.firstRank = std::accumulate(counts.begin(), own, 0);
    entry.worldSize = std::accumulate(own, counts.end(), entry.firstRank);
  } else {
    record.log.push_back("the group has only this node: no launcher was detected");
  }
  if (entry.kind != ClusterEntry::Kind::kGo) return entry;
  place = {entry.firstRank, local, entry.worldSize, groupNodes(here.stage, node.nodeCount), cluster.get()};
  for (RankSlot& slot : slots) slot.rank += place.firstRank;
  record.group = groupJson(place.worldSize, place.firstRank, place.nodes, entry);
  return entry;
}

/// The cases to try again; in a group of several nodes all of them try what any of them has to.
Result<std::vector<const Case*>> agreedRetries(const Stage& stage, std::vector<const Case*> mine,
                                               const GroupPlace& place, int attempt,
                                               const std::string& faulty) {
  if (place.cluster == nullptr) return mine;
  std::set<std::string> ids;
  for (const Case* c : mine) ids.insert(c->id);
  const auto agreed = place.cluster->retries(attempt, ids, faulty);
  std::vector<const Case*> cases;
  // Nodes that cannot agree any more try nothing again: whom they lost is named when they leave the stage.
  if (!agreed.ok()) return cases;
  for (const Case& c : stage.cases)
    if (agreed->count(c.id) > 0) cases.push_back(&c);
  return cases;
}

Result<std::vector<PredicateAnswer>> answersTo(const std::string& predicate,
                                               const std::vector<Measurement>& measurements,
                                               PredicateTime& time) {
  if (time.left <= 0)
    return Error{ErrorCode::kTimeout,
                 fmt::format("the predicate was not evaluated: those before it took more than {:.0f}s of CPU "
                             "time, which all of a run have together",
                             PredicateTime::kOfRun),
                 ""};
  const double begin = secondsOfChildren();
  auto answers = evaluatePredicate(predicate, measurements);
  time.left -= secondsOfChildren() - begin;
  return answers;
}

}  // namespace

void nameFaulty(StageRecord& record, const std::string& component) {
  if (!component.empty() && faultyComponent(record).empty()) record.group["culprit"] = component;
}

Json rankContext(const NodeConfig& node, const NodeProgress& progress, const Stage& stage,
                 const RankSlot& slot, const GroupPlace& place) {
  const int nodes = groupNodes(stage, node.nodeCount);
  Json placeOfNode = {{"rank", node.nodeRank}, {"count", nodes}, {"name", node.node}};
  if (nodes != node.nodeCount) placeOfNode["run_count"] = node.nodeCount;
  if (!node.nodeNames.empty() && stage.scope == Scope::kCluster)
    placeOfNode["names"] = firstOf(node.nodeNames, static_cast<size_t>(nodes));
  Json devices = Json::array();
  for (const RankSlot& one : progress.devices) devices.push_back(one.device);
  if (!progress.devicesOfNodes.empty() && stage.scope == Scope::kCluster)
    placeOfNode["ranks"] = ranksOfNodes(node, progress, stage, place.localSize);
  return {{"test", stage.test},
          {"devices", std::move(devices)},
          {"backend", node.backend},
          {"scope", nameOf(stage.scope)},
          {"device", slot.deviceJson},
          {"rank", slot.rank},
          {"world_size", place.worldSize},
          {"local_rank", slot.rank - place.firstRank},
          {"local_size", place.localSize},
          {"node", std::move(placeOfNode)},
          {"seed", node.seed},
          {"backend_dir", node.tree.backends.string()},
          {"scenario", node.scenario.string()},
          {"virtual_start", progress.virtualNow},
          {"run_id", node.runId},
          {"run_folder", node.folder.string()},
          {"stage", stage.name}};
}

void answerPredicates(const StageEvidence& evidence, JudgeContext& context, PredicateTime& time) {
  std::set<std::string> asked;
  for (const Expectation& expectation : evidence.expectations) {
    if (expectation.kind != CheckKind::kPredicate || !asked.insert(expectation.predicate).second) continue;
    time.isAsked = true;
    const auto answers = answersTo(expectation.predicate, evidence.measurements, time);
    auto& kept = context.predicateAnswers[expectation.predicate];
    auto& errors = context.predicateErrors[expectation.predicate];
    kept.clear();
    errors.clear();
    if (!answers.ok()) {
      // It took too long or too much memory: nothing is known of any measurement.
      for (size_t i = 0; i < evidence.measurements.size(); ++i) errors[i] = answers.error().text();
      kept.assign(evidence.measurements.size(), {false, ""});
      continue;
    }
    for (const PredicateAnswer& answer : *answers) {
      // It is asked about every measurement of the stage; only those that its expectation is about become
      // verdicts.
      if (!answer.error.empty()) errors[kept.size()] = answer.error;
      kept.emplace_back(answer.met, answer.message);
    }
  }
}

Outcome worstOutcome(const std::vector<Verdict>& verdicts) {
  Outcome worst = Outcome::kPass;
  for (const Verdict& verdict : verdicts) {
    const bool lacksPeers = verdict.outcome == Outcome::kSkipped && verdict.expectation && !verdict.required;
    if (!lacksPeers) worst = std::min(worst, verdict.outcome);
  }
  return worst;
}

Accounting judgeInto(StageRecord& record, const StageEvidence& evidence, const JudgeContext& context) {
  StageJudgement judgement = judgeStage(evidence, context);
  record.verdicts = std::move(judgement.verdicts);
  groupVerdicts(record.verdicts);
  record.outcome = worstOutcome(record.verdicts);
  record.evidence = evidenceToJson(evidence);
  return judgement.accounting;
}

JudgeContext contextOf(const StageRecord& stage, size_t devices, JudgeContext context) {
  if (const int nodes = groupNodesIn(stage); nodes > 0) addNetworkPeaks(0, 0, devices, nodes, context.peaks);
  return context;
}

StageOutcome stageWithoutPart(const Stage& stage, const NodePart& part) {
  Stage changed = stage;
  changed.required = part.blocks && stage.required;
  const bool idle = part.kind == NodePart::Kind::kIdle;
  StageOutcome outcome = stageNotRun(changed, idle ? StageState::kIdle : StageState::kSkipped, part.why);
  outcome.record.required = stage.required;
  if (part.nodes > 0) outcome.record.group = groupJson(0, 0, part.nodes);
  return outcome;
}

StageOutcome runIdle(const NodeConfig& node, const Stage& stage, const NodePart& part) {
  StageOutcome outcome = stageWithoutPart(stage, part);
  if (node.cluster == nullptr) return outcome;
  node.view->stageProgress({0, -1, "idle: " + part.why});
  ClusterStage cluster(*node.cluster, stage.name, arrivalOf(node, stage));
  const ClusterEntry entry = cluster.enter(0);
  outcome.record.group = groupJson(0, 0, part.nodes, entry);
  const std::string trouble =
      entry.kind == ClusterEntry::Kind::kGo
          ? cluster.attend({stage.attempts, stage.repeat, stage.cases.size(), stage.timeout})
          : entry.why;
  outcome.ending = cluster.ending();
  if (!trouble.empty()) outcome.record.log.push_back("its group did not pass: " + trouble);
  return outcome;
}

StageOutcome stageNotRun(const Stage& stage, StageState state, const std::string& reason) {
  StageOutcome outcome{beginRecord(stage), {}};
  StageEvidence evidence;
  evidence.stage = stage.name;
  evidence.state = state;
  evidence.reason = reason;
  evidence.required = stage.required;
  outcome.record.state = state;
  outcome.record.reason = reason;
  outcome.record.attempts = 0;
  outcome.accounting = judgeInto(outcome.record, evidence, {});
  return outcome;
}

Result<StageOutcome> runStage(const NodeConfig& node, NodeProgress& progress, const Stage& written,
                              const StageRecord* earlier) {
  const PluginSpec* plugin = node.catalog->plugin(written.plugin);
  const TestSpec* test = plugin == nullptr ? nullptr : plugin->test(written.test);
  if (test == nullptr)
    return stageNotRun(written, StageState::kError,
                       "plugin " + written.plugin + " has no test " + written.test);
  Stage stage = written;
  if (progress.profile != nullptr)
    for (Case& c : stage.cases)
      MUSTER_CHECK_OK(applyStageParams(*progress.profile, *test, stage.plugin + "." + stage.test, c));

  StageHere here{node, progress, stage, *plugin, *test, slotsFor(progress.devices, stage), {}};
  const size_t all = here.slots.size();
  if (stage.scope == Scope::kDevice) keepOnly(node.chosenDevices, here.slots);
  here.place.localSize = here.place.worldSize = static_cast<int>(here.slots.size());
  StageOutcome outcome{beginRecord(stage), {}};
  StageRecord& record = outcome.record;
  double begin = systemClock().now();
  StageTelemetry telemetry(node, progress, stage);
  const std::string blind = telemetry.start();
  std::unique_ptr<ClusterStage> cluster;
  if (stage.scope == Scope::kCluster) {
    const ClusterEntry entry = enterGroup(here, blind, cluster, record);
    if (entry.kind != ClusterEntry::Kind::kGo) {
      outcome = stageNotRun(
          stage, entry.kind == ClusterEntry::Kind::kSkip ? StageState::kSkipped : StageState::kError,
          entry.why);
      if (cluster != nullptr) outcome.ending = cluster->ending();
      return outcome;
    }
    record.started = systemClock().wallUnix();
    begin = systemClock().now();
    if (cluster != nullptr) telemetry.restart();
  }
  if (!blind.empty()) return stageNotRun(stage, StageState::kError, blind);
  if (here.slots.empty()) return stageNotRun(stage, StageState::kError, "no device was found to run on");
  record.pluginVersion = plugin->version;
  auto librarySum = std::async(std::launch::async, librarySha256, plugin->path);
  StageEvidence evidence = expectedEvidence(stage, *plugin, *test, node.backend, here.place.worldSize,
                                            here.place.nodes, progress.profile);
  evidence.peersMissing = here.slots.size() < all;

  const double virtualStart = progress.virtualNow;

  std::vector<const Case*> cases;
  for (const Case& c : stage.cases) cases.push_back(&c);
  const JudgeContext judged = contextOf(record, progress.devices.size(), progress.judge);
  JudgeContext context = judged;
  StageCheckpoint checkpoint(node, judged, earlier);
  std::string failed;  // of the last attempt
  for (int attempt = 1; attempt <= stage.attempts && !cases.empty(); ++attempt) {
    record.attempts = attempt;
    RankGroup group(here, cases, attempt, [&] {
      telemetry.poll();
      checkpoint.poll(record, evidence, group, telemetry);
    });
    MUSTER_CHECK_OK(group.run(record, evidence));
    failed = group.failed();
    MUSTER_CHECK_OK(checkpoint.status());
    if (attempt == stage.attempts) break;
    if (node.cancelled->load() && cluster == nullptr) break;  // else all agree on what comes now
    answerPredicates(evidence, context, progress.predicates);
    MUSTER_TRY(cases, agreedRetries(stage, casesToRetry(stage, evidence, context), here.place, attempt,
                                    faultyComponent(record)));
  }
  nameFaulty(record, failed);
  std::vector<std::string> caseIds;
  for (const Case& c : stage.cases) caseIds.push_back(c.id);
  leaveOutUnmeasured(*plugin, *test, caseIds, evidence);
  telemetry.finish(virtualStart, progress.virtualNow, record, evidence);

  record.duration = node.simulated() ? progress.virtualNow - virtualStart : systemClock().now() - begin;
  record.pluginSha256 = librarySum.get();
  sealArtifacts(record, node.folder);
  if (earlier != nullptr) MUSTER_CHECK_OK(addEarlierAttempts(*earlier, record, evidence));
  groupMeasurements(evidence.measurements);  // predicates answer by their order, so before they are asked
  answerPredicates(evidence, context, progress.predicates);
  // Last: who dies before all others have done their part, too, was no member of a stage that passed.
  if (cluster != nullptr) {
    nameFaulty(record, cluster->leave(faultyComponent(record)));
    outcome.ending = cluster->ending();
  }
  evidence.faulty = faultyComponent(record);
  outcome.accounting = judgeInto(record, evidence, context);
  record.measurements = std::move(evidence.measurements);
  return outcome;
}

}  // namespace muster

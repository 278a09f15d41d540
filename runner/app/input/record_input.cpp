// SPDX-License-Identifier: Apache-2.0
// Loads records and checks them against their plans.
#include "runner/app/input/record_input.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "reports/fleet/read/record_stream.h"
#include "runner/app/input/derived_inventory.h"
#include "runner/app/input/judged_again.h"
#include "runner/app/node/node_inventory.h"
#include "runner/app/node/waiver_input.h"
#include "runner/app/stage/stage_telemetry.h"
#include "runner/core/text.h"
#include "runner/dispatch/plugins.h"
#include "runner/plan/node_groups.h"
#include "runner/plan/plan_text.h"
#include "runner/record/evidence_json.h"
#include "runner/record/record_check.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostReasonBytes = 400;

fleet::PlannedPart plannedPart(const StageOfText& written, int rank, int count) {
  Stage stage;
  stage.nodes = written.nodes;
  stage.sweep = written.sweep;
  const NodePart part = partOf(stage, rank, count);
  return {part.kind == NodePart::Kind::kMember ? StageState::kRan
          : part.kind == NodePart::Kind::kIdle ? StageState::kIdle
                                               : StageState::kSkipped,
          groupNodes(stage, count)};
}

/// What a record of this plan must hold; no names: the text is no plan.
fleet::StagesOfPlan stagesIn(const std::string& plan) {
  fleet::StagesOfPlan stages;
  std::map<std::string, StageOfText> byName;
  for (const StageOfText& stage : stagesInText(plan)) {
    stages.names.push_back(stage.name);
    if (stage.required) stages.required.insert(stage.name);
    byName.emplace(stage.name, stage);
  }
  stages.part = [byName](const std::string& stage, int rank, int count) {
    const auto at = byName.find(stage);
    return at == byName.end() ? fleet::PlannedPart{} : plannedPart(at->second, rank, count);
  };
  if (!stages.names.empty()) stages.names.emplace_back(kInventoryStage);
  return stages;
}

/// The outcomes of each stage, as often as its verdicts have them.
std::map<std::string, Accounting> countsOf(const Record& record) {
  std::map<std::string, Accounting> counts;
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts) counts[stage.name].add(verdict);
  return counts;
}

/// An error where an accepted record lacks what its own stages had to measure, a case's end on one of their
/// ranks, or may skip what its plan requires. What is sampled beside a stage is on one rank alone, and other
/// tools' results on any.
Status checkEnds(const Record& record) {
  if (record.acceptance != Acceptance::kAccepted || !record.imported.empty()) return {};
  const size_t devices = record.inventory.value("devices", Json::array()).size();
  std::optional<std::map<std::string, StageOfText>> plan;
  const auto inPlan = [&](const std::string& stage) {
    if (!plan) {
      plan.emplace();
      for (const StageOfText& one : stagesInText(record.plan.text)) plan->emplace(one.name, one);
    }
    const auto found = plan->find(stage);
    return found == plan->end() ? StageOfText{stage, 0, false} : found->second;
  };
  const auto edited = [](const StageRecord& stage, const std::string& what) {
    return Error{ErrorCode::kUsage,
                 what + "; the file was edited or truncated: use the original record written by `muster run`",
                 "stage " + printable(stage.name, 80)};
  };
  for (const StageRecord& stage : record.stages) {
    const fleet::PlannedPart planned = plannedPart(inPlan(stage.name), record.nodeRank, record.nodeCount);
    if (stage.state == StageState::kIdle && planned.state != StageState::kIdle)
      return edited(stage, "it was idle, and its plan has a part for it");
    if (stage.state == StageState::kSkipped && inPlan(stage.name).required &&
        planned.state != StageState::kSkipped &&
        std::none_of(stage.verdicts.begin(), stage.verdicts.end(),
                     [](const Verdict& verdict) { return verdict.required; }))
      return edited(stage, "its skip blocks nothing, and its plan requires it");
    if (stage.state != StageState::kRan || stage.name == kWaiverStage) continue;
    MUSTER_TRY(const StageEvidence evidence, evidenceFromRecord(stage));
    std::map<std::string_view, std::set<int>> ended;
    for (const auto& [id, metrics] : evidence.caseMetrics) ended[id];
    for (const CaseEnd& end : evidence.ends) ended[end.caseId].insert(end.rank);
    size_t ranks = 1;
    for (const auto& [id, ends] : ended)
      if (id != StageTelemetry::kCaseId) ranks = std::max(ranks, ends.size());
    if (stage.scope == Scope::kDevice && ranks < devices) {
      const int stated = inPlan(stage.name).ranks;
      ranks = std::max(ranks, stated > 0 ? static_cast<size_t>(stated) : devices);
    }
    if ((!stage.required || !evidence.required) && inPlan(stage.name).required)
      return edited(stage, "it may be skipped, and its plan requires it");
    for (const auto& [id, ends] : ended)
      if (const size_t wanted = id == StageTelemetry::kCaseId ? 1 : ranks; ends.size() < wanted)
        return edited(stage, fmt::format("case {} has results of {} ranks, expected those of {}",
                                         printable(id, 80), ends.size(), wanted));
  }
  return {};
}

/// In what the outcomes of `record` differ from those when it is judged `again`; empty: in nothing.
std::string differenceBetween(const Record& record, const Record& again) {
  auto said = countsOf(record), found = countsOf(again);
  for (const auto& [stage, counts] : said) found.try_emplace(stage);
  for (const auto& [stage, counts] : found)
    for (int i = 0; i < kOutcomeCount; ++i)
      if (const size_t now = counts.counts[i], before = said[stage].counts[i]; now != before)
        return fmt::format("stage {} has {} {}, the record says {}", printable(stage, 80), now,
                           outcomeName(static_cast<Outcome>(i)), before);
  if (again.acceptance == record.acceptance && again.exitCode == record.exitCode) return "";
  return fmt::format("they are {}, the record says {}", nameOf(again.acceptance), nameOf(record.acceptance));
}

}  // namespace

Status checkStages(const Record& record) {
  if (!record.imported.empty()) return {};  // it names its stages itself, and no plan ran
  const std::vector<std::string> wanted = stagesIn(record.plan.text).names;
  std::vector<std::string> found;
  for (const StageRecord& stage : record.stages) found.push_back(stage.name);
  const std::string difference =
      wanted.empty() ? "the text of its plan cannot be read" : stageDifference(found, wanted);
  if (difference.empty()) return {};
  return Error{
      ErrorCode::kUsage,
      difference + "; the file was edited or truncated: use the original record written by `muster run`",
      "record"};
}

Result<Record> recordAt(const RecordFile& file) {
  const fs::path& path = file.path;
  std::error_code error;
  if (fs::is_directory(path, error) && fs::exists(path / "record.json", error))
    return Error{ErrorCode::kUsage,
                 fmt::format("is a directory; give its record, {}", (path / "record.json").string()),
                 path.string()};
  MUSTER_TRY(Record record, readRecord(path, file.directory));
  if (Status whole = checkStages(record); !whole.ok())
    return std::move(whole).error().context("reading record " + path.string());
  return record;
}

Result<std::string> unsoundness(const Record& record, PredicateTime& call) {
  if (record.imported.empty())
    if (const auto inventory = inventoryDifferences(record); !inventory.empty()) return inventory.front();
  MUSTER_TRY(const Tree tree, findTree());
  MUSTER_TRY(const Record again, judgedAgain(record, record.plan.sha256, {}, tree, call));
  MUSTER_CHECK_OK(checkEnds(record));
  return differenceBetween(record, again);
}

Result<Record> soundRecordAt(const RecordFile& file) {
  PredicateTime call{PredicateTime::kOfCall};
  return soundRecordAt(file, call);
}

ChildEnd checkInChild(PredicateTime& call, const std::function<std::string()>& work, int cpuSeconds) {
  const ChildLimits limits = {.process = size_t{4} << 30,
                              .cpuSeconds = cpuSeconds,
                              .wallSeconds = 600,
                              .output = size_t{64} << 20,
                              .isSealed = false,
                              .hint = "; the largest record of a run takes about half of that"};
  const double begin = secondsOfChildren();
  ChildEnd end = runInChild(limits, [&](volatile int*) { return work(); });
  const double lua = secondsOfChildren() - begin - cpuSeconds;  // at least
  call.left -= std::max(0.0, lua - PredicateTime::kOfRecord);
  return end;
}

namespace {

/// The digest of a record's file, once it was found to be sound.
Result<std::string> digestOfSound(const RecordFile& file, PredicateTime& call) {
  MUSTER_TRY(const Record record, recordAt(file));
  MUSTER_TRY(const std::string difference, unsoundness(record, call));
  if (difference.empty()) return record.fileSha256;
  return Error{ErrorCode::kUsage,
               fmt::format("its check results do not match its samples: {}; the file was edited or "
                           "truncated: use the original record written by `muster run`",
                           difference),
               ""};
}

/// The same in a process of its own: a record made to be slow, or to end its reader, does so there.
Result<std::string> digestOfSoundApart(const RecordFile& file, PredicateTime& call) {
  const ChildEnd child = checkInChild(call, [&] {
    const Result<std::string> digest = digestOfSound(file, call);
    return dumpJson(digest.ok() ? Json{{"sha256", *digest}} : toJson(digest.error()));
  });
  if (!child.problem.empty())
    return Error{ErrorCode::kTimeout, "the check of this record " + child.problem, ""};
  MUSTER_TRY(const Json told, parseJson(child.output));
  std::string sha256;
  JsonReader reader(told, "result");
  if (std::optional<Error> error = errorFromJson(told)) return *std::move(error);
  reader.read("sha256", sha256);
  MUSTER_CHECK_OK(reader.status());
  return sha256;
}

/// The error with the file that it is about.
Error inFile(Error error, const fs::path& path) {
  const std::string name = path.string();
  if (error.text().find(name) == std::string::npos)
    error.where = error.where.empty() ? name : name + ", " + error.where;
  return error;
}

}  // namespace

Result<Record> soundRecordAt(const RecordFile& file, PredicateTime& call) {
  const Result<std::string> sha256 = digestOfSoundApart(file, call);
  if (!sha256.ok()) return inFile(sha256.error(), file.path);
  MUSTER_TRY(Record record, recordAt(file));
  MUSTER_CHECK_OK(checkUnchanged(record, *sha256, file.path));
  return record;
}

bool mayLeaveOut(const RecordFile& file, size_t all) {
  return !file.directory.empty() && all > 1;
}

Error noSoundRecord(size_t files) {
  return {ErrorCode::kUsage, fmt::format("none of the {} records can be used", files), ""};
}

Status checkCost(const RecordFile& file) {
  PredicateTime call{PredicateTime::kOfCall};
  const Result<std::string> digest = digestOfSoundApart(file, call);
  return digest.ok() || digest.error().code != ErrorCode::kTimeout ? Status()
                                                                   : inFile(digest.error(), file.path);
}

Status checkUnchanged(const Record& record, const std::string& sha256, const fs::path& path) {
  if (record.fileSha256 == sha256) return {};
  return Error{ErrorCode::kUsage, "this record was modified while being read", path.string()};
}

Result<std::vector<RecordFile>> recordFilesAt(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<RecordFile>{path};
  MUSTER_TRY(const auto records, fleet::findRecords(path));
  if (records.empty()) return Error{ErrorCode::kUsage, "no record.json in this directory", path.string()};
  std::vector<RecordFile> files;
  for (const fs::path& record : records) files.emplace_back(record, path);
  return files;
}

namespace {

/// The plans that records hold, the wanted one first, then those of the most nodes: their digests and places
/// in the table.
std::vector<std::pair<std::string, uint32_t>> plansByUse(const fleet::FleetRecords& records,
                                                         const std::string& wanted) {
  std::map<std::string, std::set<std::string>> nodes;
  for (const fleet::NodeSummary& node : records.nodes) nodes[node.planSha256].insert(node.node);
  std::map<std::string, size_t> uses;
  for (const auto& [plan, names] : nodes) uses[plan] = plan == wanted ? SIZE_MAX : names.size();
  const auto& table = records.names->plans;
  std::vector<std::pair<std::string, uint32_t>> plans;
  for (uint32_t i = 0; i < table.size(); ++i) plans.emplace_back(table.textOf(i), i);
  std::sort(plans.begin(), plans.end(), [&](const auto& a, const auto& b) {
    return std::pair(uses[b.first], a.first) < std::pair(uses[a.first], b.first);
  });
  return plans;
}

/// CPU time of the calling thread.
double secondsOfThread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Why the record does not count when it is looked at as a whole; empty: it does.
std::string doubtAbout(const RecordFile& file, const std::string& sha256, PredicateTime& call) {
  const auto digest = digestOfSoundApart(file, call);
  if (!digest.ok() && digest.error().code == ErrorCode::kProtocol)
    return "edited or truncated: " + digest.error().text();
  if (!digest.ok()) return digest.error().text();
  return *digest == sha256 ? "" : "this record was modified while being read";
}

}  // namespace

void setAsideUnsound(fleet::FleetRecords& records, const fs::path& run) {
  PredicateTime call{PredicateTime::kOfCall};
  std::erase_if(records.nodes, [&](const fleet::NodeSummary& node) {
    if (!node.doubtful) return false;
    std::string why = doubtAbout({run / node.path, run}, node.sha256, call);
    if (why.empty()) return false;
    records.quarantined.push_back({node.path, node.node, printable(why, kMostReasonBytes)});
    return true;
  });
  fleet::sortByPath(records.quarantined);
}

void setAsideIncomplete(fleet::FleetRecords& records, const std::string& wantedPlan, double planSeconds) {
  fleet::PlanStages stages;
  std::set<std::string> left;
  double spent = 0;
  for (const auto& [digest, place] : plansByUse(records, wantedPlan)) {
    if (spent > planSeconds) {
      left.insert(digest);
      continue;
    }
    const double begin = secondsOfThread() + secondsOfChildren();
    if (auto found = stagesIn(records.names->plans[place]); !found.names.empty())
      stages.emplace(digest, std::move(found));
    spent += secondsOfThread() + secondsOfChildren() - begin;
  }
  std::erase_if(records.nodes, [&](const fleet::NodeSummary& node) {
    if (!left.contains(node.planSha256)) return false;
    records.quarantined.push_back(
        {node.path, node.node,
         fmt::format("its plan was not evaluated: the plans of other records took more than {} s",
                     planSeconds)});
    return true;
  });
  fleet::setAsideIncomplete(records, std::move(stages));
}

}  // namespace muster

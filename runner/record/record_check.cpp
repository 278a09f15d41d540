// SPDX-License-Identifier: Apache-2.0
// Checks counts, acceptance, stages and digests of a record.
#include "runner/record/record_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/record/verdict_check.h"
#include "runner/system/files.h"

namespace muster {
namespace {

/// What marks the last part of a run id as a digest of node and start, and its length.
constexpr std::string_view kBoundMark = "-n";
constexpr size_t kBoundDigits = 12;

Error contradiction(const std::string& message) {
  return {ErrorCode::kProtocol,
          message + "; the file was edited or truncated: use the original record written by `muster run`",
          "record"};
}

Accounting recount(const Record& record) {
  Accounting accounting;
  for (const auto& stage : record.stages)
    for (const auto& verdict : stage.verdicts) accounting.add(verdict);
  return accounting;
}

/// How two accounts of the same results differ; empty: they do not.
std::string countDifference(const Accounting& said, const Accounting& found) {
  for (int i = 0; i < kOutcomeCount; ++i)
    if (found.counts[i] != said.counts[i])
      return fmt::format("accounting says {} {}, the stages hold {}", said.counts[i],
                         outcomeName(static_cast<Outcome>(i)), found.counts[i]);
  if (found.requiredSkips == said.requiredSkips) return "";
  return fmt::format("accounting says {} required skips, the stages hold {}", said.requiredSkips,
                     found.requiredSkips);
}

/// Accepted means: nothing blocks, everything expected was accounted for, exit code 0. Nothing else ends 0.
std::string acceptanceContradiction(const RecordClaim& claim) {
  const bool accepted = claim.acceptance == Acceptance::kAccepted;
  if (accepted != (claim.exitCode == 0))
    return fmt::format("acceptance is {} and the exit code {}", nameOf(claim.acceptance), claim.exitCode);
  if (!accepted) return "";
  if (claim.onlyIdle) return "accepted, but the node was idle in every stage";
  const Accounting& counts = claim.said;
  if (!counts.balanced())
    return fmt::format("accepted, but {} check results were expected and {} found", counts.expected,
                       counts.total());
  const size_t blocking = counts.of(Outcome::kFail) + counts.of(Outcome::kError) + counts.requiredSkips +
                          (claim.strict ? counts.of(Outcome::kUnjudged) : 0);
  if (blocking > 0) return fmt::format("accepted, but {} check results block acceptance", blocking);
  return counts.total() == 0 ? "accepted, but no measurement was checked" : "";
}

bool hasSelectionStage(const Record& record) {
  return std::any_of(record.stages.begin(), record.stages.end(), [](const StageRecord& stage) {
    return stage.name == kSelectionStage && stage.state == StageState::kSkipped;
  });
}

/// A partial run says so twice, and is never accepted.
std::string selectionContradiction(const RecordClaim& claim) {
  if (claim.partial != claim.selectionStage)
    return fmt::format("run.selection is {}, and stage {} {}", claim.partial ? "there" : "missing",
                       kSelectionStage, claim.selectionStage ? "there" : "missing or not skipped");
  const bool called = claim.acceptance == Acceptance::kPartial;
  if (claim.partial && claim.acceptance == Acceptance::kAccepted) return "a partial run is accepted";
  return called && !claim.partial ? "the run of a whole plan is called partial" : "";
}

RecordClaim claimOf(const Record& record) {
  return {.acceptance = record.acceptance,
          .exitCode = record.exitCode,
          .strict = record.strict,
          .simulated = record.simulated,
          .backend = record.backend,
          .scenario = record.scenario,
          .runId = record.runId,
          .node = record.node,
          .started = record.started,
          .nodeRank = record.nodeRank,
          .nodeCount = record.nodeCount,
          .partial = record.selection.partial(),
          .selectionStage = hasSelectionStage(record),
          .onlyIdle = isOnlyIdle(record.stages),
          .said = record.accounting,
          .found = recount(record)};
}

/// A stage with a faulty component never passes, whatever its cases say; so no such run is accepted either.
/// No member of a group is idle.
Status checkGroups(const Record& record) {
  for (const auto& stage : record.stages) {
    const int nodes = groupNodesIn(stage);
    if (const std::string why = idleContradiction(stage.state, stage.scope, nodes, record.nodeRank);
        !why.empty())
      return contradiction(fmt::format("stage {}: {}", printable(stage.name, 80), why));
    const std::string faulty = faultyComponent(stage);
    const bool failed = std::any_of(stage.verdicts.begin(), stage.verdicts.end(),
                                    [](const Verdict& v) { return v.outcome == Outcome::kError; });
    if (faulty.empty() || failed) continue;
    return contradiction(
        fmt::format("the group of stage {} names a faulty component ({}), but the stage has no error",
                    printable(stage.name, 80), printable(faulty, 200)));
  }
  return {};
}

/// Stage ("": any) and metric of the waivers that cover something.
using WaivedMetrics = std::set<std::pair<std::string_view, std::string_view>>;

WaivedMetrics waivedMetrics(const std::vector<WaiverRecord>& list) {
  WaivedMetrics waived;
  for (const WaiverRecord& waiver : list)
    if (waiver.covered > 0) waived.emplace(waiver.stage, waiver.metric);
  return waived;
}

/// The metrics whose drop only warns.
std::set<std::string> warnedDrops(const StageRecord& stage) {
  std::set<std::string> metrics;
  const auto list = stage.evidence.is_object() ? stage.evidence.find("expectations") : stage.evidence.end();
  if (list == stage.evidence.end() || !list->is_array()) return metrics;
  for (const Json& item : *list)
    if (const auto read = expectationFromJson(item, "expectation");
        read.ok() && read->kind == CheckKind::kDropMax && read->severity == Severity::kWarn)
      metrics.insert(read->metric);
  return metrics;
}

/// Every outcome must be one that its figures, its expectation and its stage's state allow.
Status checkVerdicts(const Record& record) {
  const WaivedMetrics waived = waivedMetrics(record.waivers);
  for (const StageRecord& stage : record.stages) {
    const std::set<std::string> warned = warnedDrops(stage);
    for (const Verdict& verdict : stage.verdicts) {
      VerdictClaim claim;
      claim.outcome = verdict.outcome;
      claim.stageState = stage.state;
      claim.observed = verdict.observed;
      claim.limit = verdict.limit;
      claim.margin = verdict.margin;
      claim.hasExpectation = verdict.expectation.has_value();
      if (claim.hasExpectation) {
        claim.kind = verdict.expectation->kind;
        claim.severity = verdict.expectation->severity;
        claim.wanted = verdict.expectation->limit;
        claim.tolerance = verdict.expectation->tolerance;
      }
      const bool warns = verdict.outcome == Outcome::kWarn || verdict.outcome == Outcome::kFlaky;
      claim.dropsWarn = warns && warned.contains(verdict.metric);
      claim.underWaivers =
          waived.contains({"", verdict.metric}) || waived.contains({stage.name, verdict.metric});
      if (const std::string why = contradictionIn(claim); !why.empty())
        return contradiction(fmt::format("{} {} of stage {}: {}", printable(verdict.metric, 80),
                                         printable(verdict.device, 40), printable(stage.name, 80), why));
    }
  }
  return {};
}

}  // namespace

std::string faultyComponent(const StageRecord& stage) {
  const auto named = stage.group.is_object() ? stage.group.find("culprit") : stage.group.end();
  return named != stage.group.end() && named->is_string() ? named->get<std::string>() : "";
}

int groupNodesIn(const StageRecord& stage) {
  const auto nodes = stage.group.is_object() ? stage.group.find("nodes") : stage.group.end();
  if (nodes == stage.group.end() || !nodes->is_number_integer()) return 0;
  return static_cast<int>(std::clamp<int64_t>(nodes->get<int64_t>(), 0, INT32_MAX));
}

bool isSafeRelativePath(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  if (path.find('\0') != std::string_view::npos || path.find('\\') != std::string_view::npos) return false;
  for (const auto& part : split(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

std::string runIdOf(const std::string& node, double started) {
  return formatUtc(started) + std::string(kBoundMark) +
         sha256Hex(fmt::format("{} {}", node, started)).substr(0, kBoundDigits);
}

bool runIdFits(const std::string& id, const std::string& node, double started) {
  const size_t mark = id.rfind(kBoundMark);
  const bool bound = mark != std::string::npos && id.size() == mark + kBoundMark.size() + kBoundDigits;
  return !bound || id == runIdOf(node, started);
}

bool isOwnStage(std::string_view name) {
  return name.starts_with("muster:");
}

std::string idleContradiction(StageState state, Scope scope, int groupNodes, int nodeRank) {
  if (state != StageState::kIdle || (scope == Scope::kCluster && groupNodes > 0 && nodeRank >= groupNodes))
    return "";
  return fmt::format("it is idle on node {}, which belongs to its group of {} nodes", nodeRank, groupNodes);
}

bool isOnlyIdle(const std::vector<StageState>& states) {
  const auto count = [&](StageState state) { return std::count(states.begin(), states.end(), state); };
  return count(StageState::kIdle) > 0 &&
         count(StageState::kRan) + count(StageState::kElsewhere) + count(StageState::kError) == 0;
}

bool isOnlyIdle(const std::vector<StageRecord>& stages) {
  std::vector<StageState> states;
  for (const StageRecord& stage : stages)
    if (!isOwnStage(stage.name)) states.push_back(stage.state);
  return isOnlyIdle(states);
}

std::string stageDifference(std::vector<std::string> found, std::vector<std::string> wanted) {
  std::sort(wanted.begin(), wanted.end());
  std::erase_if(found, [&](const std::string& name) {
    return isOwnStage(name) && !std::binary_search(wanted.begin(), wanted.end(), name);
  });
  std::sort(found.begin(), found.end());
  const auto [have, want] = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
  if (have == found.end() && want == wanted.end()) return "";
  if (want != wanted.end() && (have == found.end() || *want < *have))
    return fmt::format("stage {} of its plan is missing", printable(*want, 80));
  return fmt::format("stage {} is not of its plan, or is there twice", printable(*have, 80));
}

std::string contradictionIn(const RecordClaim& claim) {
  if (!runIdFits(claim.runId, claim.node, claim.started))
    return fmt::format("run id {} is not of a run of {} that started at {}", printable(claim.runId, 80),
                       printable(claim.node, 80), formatUtc(claim.started));
  if (!claim.scenario.empty() && !claim.simulated) return "a scenario is named, but simulated is false";
  if (claim.simulated != (claim.backend == kSimulatedBackend))
    return fmt::format("simulated is {}, but the backend is {}", claim.simulated,
                       printable(claim.backend, 40));
  if (claim.nodeRank >= claim.nodeCount)
    return fmt::format("node_rank {} of node_count {}", claim.nodeRank, claim.nodeCount);
  if (std::string why = selectionContradiction(claim); !why.empty()) return why;
  std::string counts = countDifference(claim.said, claim.found);
  return counts.empty() ? acceptanceContradiction(claim) : counts;
}

/// Whoever takes the list of files away does not make a measurement of Muster's out of it, nor the reverse.
static std::string importContradiction(const Record& record) {
  if (record.imported.empty() != (record.backend != kImportedBackend))
    return fmt::format("{} files were imported, and the backend is {}", record.imported.size(),
                       printable(record.backend, 40));
  if (!record.imported.empty() && record.simulated) return "it is imported and simulated";
  std::set<std::string_view> stages;
  for (const StageRecord& stage : record.stages) stages.insert(stage.name);
  for (const ImportedRecord& item : record.imported)
    if (!stages.contains(item.stage))
      return fmt::format("imported stage {} is missing", printable(item.stage, 80));
  return "";
}

/// PROGRAM --request FILE, as one would type it.
bool runsMusterHost(const std::string& command) {
  const auto words = wordsOfCommand(command);
  if (!words || words->size() != 3 || (*words)[1] != "--request") return false;
  const std::string& program = (*words)[0];
  const bool assigns = !program.starts_with("/") && program.find('=') != program.npos;
  return (program == "muster-host" || program.ends_with("/muster-host")) && !assigns;
}

/// Reports show these commands for people to copy.
std::string foreignCommand(const Record& record) {
  const auto isOurs = [](const std::vector<std::string>& command) {
    return command.size() > 1 && command[0] == "muster" && command[1] == "run";
  };
  if (!record.rerun.empty() && !isOurs(record.rerun))
    return fmt::format("run.rerun is not `muster run` but {}", printable(join(record.rerun, " "), 80));
  for (const StageRecord& stage : record.stages)
    for (const RankRecord& rank : stage.ranks)
      if (!rank.rerun.empty() && !runsMusterHost(rank.rerun))
        return fmt::format("a rank's command is not muster-host but {}", printable(rank.rerun, 80));
  return "";
}

/// Reports have tables of devices: a small file must not make a large one.
static Status checkInventory(const Record& record) {
  const auto devices =
      record.inventory.is_object() ? record.inventory.find("devices") : record.inventory.end();
  if (devices == record.inventory.end() || devices->size() <= kMostInventoryDevices) return {};
  return contradiction(fmt::format("inventory.devices holds {} devices; at most {} are read", devices->size(),
                                   kMostInventoryDevices));
}

Status checkRecord(const Record& record) {
  MUSTER_CHECK_OK(checkInventory(record));
  if (const std::string why = foreignCommand(record); !why.empty()) return contradiction(why);
  if (const std::string why = importContradiction(record); !why.empty()) return contradiction(why);
  if (sha256Hex(record.plan.text) != record.plan.sha256)
    return contradiction("the text of its plan has another digest than plan.sha256");
  if (const std::string why = contradictionIn(claimOf(record)); !why.empty()) return contradiction(why);
  MUSTER_CHECK_OK(checkGroups(record));
  return record.acceptance == Acceptance::kAccepted ? checkVerdicts(record) : Status();
}

bool allowsFlaky(const StageRecord& stage) {
  if (!stage.evidence.is_object()) return false;
  const auto found = stage.evidence.find("allow_flaky");
  return found != stage.evidence.end() && *found == true;
}

Outcome outcomeWithoutFlaky(const StageRecord& stage, const Verdict& verdict) {
  return verdict.outcome == Outcome::kFlaky && allowsFlaky(stage) ? Outcome::kWarn : verdict.outcome;
}

bool allowsEachFlaky(const std::vector<StageRecord>& stages) {
  const auto isFlaky = [](const Verdict& verdict) { return verdict.outcome == Outcome::kFlaky; };
  return std::all_of(stages.begin(), stages.end(), [&](const StageRecord& stage) {
    return allowsFlaky(stage) || std::none_of(stage.verdicts.begin(), stage.verdicts.end(), isFlaky);
  });
}

}  // namespace muster

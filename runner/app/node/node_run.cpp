// SPDX-License-Identifier: Apache-2.0
// See node_run.h: stages and the end. How a run begins is in node_start.cpp.
#include "runner/app/node/node_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "runner/app/node/outputs.h"
#include "runner/app/node/partial_run.h"
#include "runner/app/node/reboot_stage.h"
#include "runner/app/node/waiver_input.h"
#include "runner/app/process/environment.h"
#include "runner/app/process/interrupt.h"
#include "runner/app/stage/earlier_attempts.h"
#include "runner/app/view/resume_command.h"
#include "runner/core/build_info.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/record/evidence_json.h"
#include "runner/record/record_check.h"
#include "runner/record/record_mac.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

/// Of a stage whose verdicts stand as they are.
Accounting accountingOf(const StageRecord& stage) {
  Accounting accounting;
  accounting.expected = stage.verdicts.size();
  for (const Verdict& verdict : stage.verdicts) accounting.add(verdict);
  return accounting;
}

}  // namespace

double finishedAt(double started, double elapsed, double wall, bool resumed) {
  return resumed ? std::max(wall, started + elapsed) : started + elapsed;
}

NodeRun::NodeRun(const RunSetup& setup, RunFolder folder, NodeSeat seat)
    : setup_(setup), begun_(systemClock().now()), folder_(std::move(folder)), budget_(setup.options->budget) {
  const RunOptions& options = *setup.options;
  node_.tree = setup.tree;
  node_.catalog = &setup.catalog;
  node_.backend = backendOf(setup);
  node_.scenario = options.scenario.empty() ? fs::path() : fs::absolute(options.scenario);
  node_.folder = folder_.path();
  node_.node = seat.node;
  node_.nodeNames = options.nodeNames;
  node_.nodeRank = seat.rank;
  node_.nodeCount = seat.count;
  node_.seed = options.seed;
  // Nodes that run side by side share the CPUs.
  if (node_.simulated())
    node_.processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / options.nodes);
  node_.cancelled = &interrupted();
  node_.view = setup.view;
  node_.cluster = seat.cluster;
  node_.arrival = options.arrival;
  node_.chosenDevices = options.selection.devices;
  node_.keepFailures = [this](const StageRecord& failed) {
    StageOutcome soFar{failed, accountingOf(failed)};
    waive(soFar);
    return folder_.appendInterrupted(soFar.record);
  };

  record_.toolVersion = toolVersion();
  record_.buildId = buildId();
  record_.binaries = setup.binaries;
  record_.node = node_.node;
  record_.nodeRank = seat.rank;
  record_.nodeCount = seat.count;
  record_.simulated = node_.simulated();
  record_.scenario = node_.scenario.stem().string();
  record_.backend = node_.backend;
  record_.seed = node_.seed;
  record_.bootId = bootId();
  record_.plan = {setup.plan.name, setup.plan.path.string(), setup.plan.sha256, setup.plan.text,
                  setup.plan.includes};
  record_.overrides = setup.plan.overrides;
  record_.allowUnknownSku = setup.plan.allowUnknownSku;
  record_.strict = options.strict;
  record_.selection = options.selection;
  record_.command = options.command;
  record_.rerun = rerunCommandOf(setup.plan, options, seat.rank, seat.count);
  record_.launcher = std::move(seat.launcher);
  if (!options.fleetId.empty()) record_.launcher["fleet_id"] = options.fleetId;
  record_.environment = recordedEnvironment();
}

Result<Record> NodeRun::run() {
  auto record = runToEnd();
  // A full disk, say: the stages that are done are in the journal.
  if (!record.ok() && record.error().code != ErrorCode::kUsage && RunFolder::holdsRun(folder_.path())) {
    Error error = std::move(record).error();
    error.message += "; finished work is saved: fix the cause, then resume with `" +
                     resumeCommand(record_, folder_.path(), setup_.options->pluginFolders) + "`";
    return error;
  }
  return record;
}

Result<Record> NodeRun::runToEnd() {
  std::optional<Journal> earlier;
  if (RunFolder::holdsRun(folder_.path())) {
    MUSTER_TRY(earlier, folder_.readJournal());
  }
  const Journal* journal = earlier ? &*earlier : nullptr;
  if (journal != nullptr)
    if (auto ended = endedRecord(*journal)) return showEnded(std::move(*ended));
  if (Status made = makeFolders(); !made.ok()) {
    if (journal == nullptr) folder_.discard();
    return std::move(made).error();
  }
  if (Status begun = begin(journal); !begun.ok()) {
    // What cannot begin leaves no folder that would look like a run and be in the next one's way.
    if (journal == nullptr && begun.error().code == ErrorCode::kUsage) folder_.discard();
    return std::move(begun).error();
  }
  MUSTER_CHECK_OK(runStages(journal));
  if (journal != nullptr) {
    const StageOutcome reboot = rebootStage(journal->run.value("boot_id", ""), record_.bootId);
    add(reboot.record, reboot.accounting);
  }
  if (record_.selection.partial()) {
    const StageOutcome selection = selectionStage(record_.selection);
    add(selection.record, selection.accounting);
  }
  endWaivers();
  decideAll();
  if (!setup_.options->recordKey.empty()) record_.mac = macOf(record_, setup_.options->recordKey);
  MUSTER_CHECK_OK(writeOutputs(record_, folder_.path(), node_.tree.templates));
  MUSTER_CHECK_OK(folder_.settle());
  setup_.view->runEnded(record_, folder_.path());
  if (budget_.isSpent())
    setup_.view->note(budget_.whatIsLeft(
        setup_.plan, resumeCommand(record_, folder_.path(), setup_.options->pluginFolders)));
  if (!open_.empty() && !node_.cancelled->load())
    setup_.view->note(fmt::format(
        "another node was interrupted before {} had finished: to finish it, resume the runs of all nodes "
        "together, here with `{}`",
        join(open_, ", "), resumeCommand(record_, folder_.path(), setup_.options->pluginFolders)));
  return std::move(record_);
}

Status NodeRun::begin(const Journal* journal) {
  MUSTER_CHECK_OK(freeze(journal));
  if (journal != nullptr && !journal->stages.empty()) return resumeInventory(journal->stages.front());
  return takeInventory();
}

void NodeRun::add(const StageRecord& stage, const Accounting& accounting) {
  outcomes_[stage.name] = stage.outcome;
  record_.accounting.expected += accounting.expected;
  record_.accounting.requiredSkips += accounting.requiredSkips;
  for (size_t i = 0; i < accounting.counts.size(); ++i) record_.accounting.counts[i] += accounting.counts[i];
  record_.stages.push_back(stage);
}

/// Known failures, before the stages that need this one are looked at.
void NodeRun::waive(StageOutcome& outcome) const {
  if (setup_.waivers.sha256.empty()) return;
  applyWaivers(setup_.waivers.list, waivedNode(record_), outcome.record.verdicts, outcome.accounting);
  outcome.record.outcome = worstOutcome(outcome.record.verdicts);
}

void NodeRun::endWaivers() {
  if (const auto unmatched = settleWaivers(record_, setup_.waivers))
    add(unmatched->record, unmatched->accounting);
}

Status NodeRun::keep(const StageOutcome& outcome, const Json& extra) {
  MUSTER_CHECK_OK(folder_.appendStage({outcome.record, progress_.virtualNow, extra}));
  if (node_.cluster != nullptr && outcome.record.scope == Scope::kCluster) {
    MUSTER_CHECK_OK(folder_.settle());
    node_.cluster->members().noteFinished(outcome.record.name, outcomeName(outcome.record.outcome));
  }
  add(outcome.record, outcome.accounting);
  return {};
}

/// Else the run that goes on with this one would know nothing of them.
Status NodeRun::keepFailures(const StageRecord& interrupted) {
  MUSTER_TRY(const size_t failures, countFailures(interrupted));
  return failures > 0 ? folder_.appendInterrupted(interrupted) : Status();
}

/// The other nodes of a cluster-scope stage must not wait for this one.
void NodeRun::tellOthers(const Stage& stage, const std::string& why) {
  if (stage.scope == Scope::kCluster && node_.cluster != nullptr)
    ClusterStage(*node_.cluster, stage.name, 0).decline(why);
}

/// `interrupted`: what the stage had failed when the run was interrupted in it; stands where it cannot run
/// again.
Result<StageOutcome> NodeRun::runOne(const Stage& stage, const StageRecord* interrupted) {
  const RunOptions& options = *setup_.options;
  if (const std::string why = options.selection.whyLeftOut(stage.name, stage.scope); !why.empty())
    return skippedStage(stage, false, why);
  if (!options.runsScope(stage.scope))
    return stageNotRun(stage, StageState::kElsewhere,
                       fmt::format("its scope is {}; this job runs scope {}", nameOf(stage.scope),
                                   join(options.scopes, ", ")));
  const NodePart part = partOf(stage, node_.nodeRank, node_.nodeCount);
  if (part.kind == NodePart::Kind::kNoGroup) return stageWithoutPart(stage, part);
  if (part.kind == NodePart::Kind::kIdle && !node_.cancelled->load()) return runIdle(node_, stage, part);
  const std::string reason = whyNot(stage);
  if (budget_.postpones(stage, elapsed(), reason.empty())) {
    // What it had failed when the run was interrupted in it stands until it runs again.
    if (interrupted != nullptr) return StageOutcome{*interrupted, accountingOf(*interrupted)};
    return skippedStage(stage, true, budget_.whySkipped());
  }
  if (!reason.empty()) {
    tellOthers(stage, reason);
    if (interrupted != nullptr) return StageOutcome{*interrupted, accountingOf(*interrupted)};
    return stageNotRun(stage, StageState::kSkipped, reason);
  }
  MUSTER_CHECK_OK(folder_.appendBegun(stage.name));
  MUSTER_TRY(StageOutcome outcome, runStage(node_, progress_, stage, interrupted));
  if (interrupted != nullptr && outcome.record.state != StageState::kRan)
    outcome = {*interrupted, accountingOf(*interrupted), outcome.ending};
  if (node_.cluster != nullptr)
    if (const std::string strangers = node_.cluster->turnedAway(); !strangers.empty())
      outcome.record.log.push_back(strangers);
  noteOpenNeeds(stage, outcome.record);
  return outcome;
}

double NodeRun::elapsed() const {
  return node_.simulated() ? progress_.virtualNow - virtualBegun_ : systemClock().now() - begun_;
}

Status NodeRun::runStages(const Journal* earlier) {
  std::map<std::string, const JournalStage*> done;
  if (earlier != nullptr)
    for (const JournalStage& entry : earlier->stages) done[entry.stage.name] = &entry;
  // What the journal holds is taken as it stands, the inventory first.
  const auto takeDone = [&](const JournalStage& entry) {
    progress_.virtualNow = entry.virtualEnd;
    add(entry.stage, accountingOf(entry.stage));
  };
  if (const auto it = done.find(kInventoryStage); it != done.end()) takeDone(*it->second);

  const std::vector<size_t> order = executionOrder(setup_.plan);
  for (size_t i = 0; i < order.size(); ++i) {
    const Stage& stage = setup_.plan.stages[order[i]];
    if (const auto it = done.find(stage.name); it != done.end()) {
      takeDone(*it->second);
      virtualBegun_ = progress_.virtualNow;
      continue;
    }
    setup_.view->stageStarted({i, order.size(), stage.name,
                               fmt::format("{}.{}, {} case{}", stage.plugin, stage.test, stage.cases.size(),
                                           stage.cases.size() == 1 ? "" : "s"),
                               stage.timeout});
    const StageRecord* interrupted = nullptr;
    if (earlier != nullptr)
      if (const auto it = earlier->interrupted.find(stage.name); it != earlier->interrupted.end())
        interrupted = &it->second;
    MUSTER_TRY(StageOutcome outcome, runOne(stage, interrupted));
    if (earlier != nullptr && earlier->killedIn == stage.name)
      outcome.record.log.emplace_back(
          interrupted != nullptr
              ? "the run was killed while this stage ran: what is known to have failed by then counts"
              : "the run was killed while this stage ran: what it had measured by then is lost, and it ran "
                "again");
    waive(outcome);
    // An interrupted stage is not finished, unless all nodes agreed that it is, nor is one that had no time,
    // that a partial run leaves out or that another node's interruption stopped: it is in this record, and a
    // resumed run looks at it again.
    const bool open = isOpen(stage, outcome);
    if (open) open_.push_back(stage.name);
    if (contains(budget_.postponed(), stage.name) || leavesOut(stage.name)) {
      add(outcome.record, outcome.accounting);
    } else if (open || (node_.cancelled->load() && outcome.ending != StageEnding::kFinished)) {
      MUSTER_CHECK_OK(folder_.appendBegun(""));
      MUSTER_CHECK_OK(keepFailures(outcome.record));
      add(outcome.record, outcome.accounting);
    } else {
      MUSTER_CHECK_OK(keep(outcome, Json()));
    }
    setup_.view->stageEnded(outcome.record);
  }
  return {};
}

/// Whether another node's interruption stopped it, or a stage that it needs.
bool NodeRun::isOpen(const Stage& stage, const StageOutcome& outcome) const {
  return outcome.ending == StageEnding::kOpen ||
         (outcome.record.state == StageState::kSkipped &&
          std::any_of(stage.needs.begin(), stage.needs.end(),
                      [&](const std::string& need) { return contains(open_, need); }));
}

void NodeRun::decideAll() {
  const Plan& plan = setup_.plan;
  DecisionInput input;
  input.accounting = record_.accounting;
  input.partial = record_.selection.text();
  input.strict = setup_.options->strict;
  input.interrupted = node_.cancelled->load();
  input.unknownSku = !profile_.has_value();
  input.allowUnknownSku = plan.allowUnknownSku;
  input.noGpuSkip = inventory_.noGpu && setup_.options->noGpuSkip;
  input.onlyIdle = isOnlyIdle(record_.stages);
  input.flakyAllowed = allowsEachFlaky(record_.stages);
  const Decision decision = decide(input);
  record_.acceptance = decision.acceptance;
  record_.exitCode = decision.exitCode;
  record_.reasons = decision.reasons;
  if (budget_.isSpent()) record_.reasons.insert(record_.reasons.begin(), budget_.reason());
  if (!inventory_.problem.empty()) record_.reasons.insert(record_.reasons.begin(), inventory_.problem);
  record_.finished = finishedAt(record_.started, systemClock().now() - begun_, systemClock().wallUnix(),
                                record_.resumed > 0);
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Runs one stage on this node: ranks, restarts after a death, attempts, telemetry beside it, judging, its
// record.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runner/app/stage/frame_collector.h"
#include "runner/app/view/view.h"
#include "runner/cluster/cluster_stage.h"
#include "runner/dispatch/plugins.h"
#include "runner/dispatch/supervisor.h"
#include "runner/judge/judge.h"
#include "runner/metrics/catalog.h"
#include "runner/plan/node_groups.h"
#include "runner/plan/plan.h"
#include "runner/record/record.h"
#include "runner/sku/profile.h"

namespace muster {

/// What all stages of one node's run share and none of them changes.
struct NodeConfig {
  Tree tree;
  const Catalog* catalog = nullptr;
  std::string backend;
  std::filesystem::path scenario;  ///< sim only
  std::filesystem::path folder;    ///< the run folder
  std::string runId;
  std::string node;
  std::vector<std::string> nodeNames;  ///< simulated: of all nodes by rank, where they were told
  int nodeRank = 0;
  int nodeCount = 1;
  uint64_t seed = 42;
  std::vector<std::string> chosenDevices;  ///< --device: only these in stages of scope device; empty: all
  int processes = 0;                       ///< simulated: at a time, of ranks
  const std::atomic<bool>* cancelled = nullptr;
  RunView* view = nullptr;
  ClusterLink* cluster =
      nullptr;         ///< the tie to the other nodes; nullptr: this node runs alone, or simulated
  double arrival = 0;  ///< seconds to wait for them at a stage; 0: the stage's timeout
  /// Keeps what a stage that still runs has failed by now (stage_checkpoint.h); empty: nothing is kept.
  std::function<Status(const StageRecord&)> keepFailures;

  [[nodiscard]] bool simulated() const { return backend == "sim"; }
};

/// What the predicates of one run, or of one record that is judged again, may still use: without it a record
/// of many stages keeps its reader busy for hours. Readers give more, so that a slower machine than the run's
/// comes to the same verdicts.
struct PredicateTime {
  static constexpr double kOfRun = 20;     ///< CPU seconds
  static constexpr double kOfReader = 60;  ///< CPU seconds
  static constexpr double kOfCall = 300;   ///< CPU seconds; of all records that one call judges again, beyond
  static constexpr double kOfRecord = 2;   ///< what each has, so that none is refused for what others took
  double left = kOfRun;
  bool isAsked = false;  ///< there was a predicate to evaluate
};

/// CPU time of the children that have ended, which evaluate Lua.
double secondsOfChildren();

/// What one node's run knows by now: from its inventory, and from the stages that ran.
struct NodeProgress {
  std::vector<RankSlot> devices;
  std::vector<int> devicesOfNodes;   ///< simulated: of all nodes by rank, where they differ
  const Profile* profile = nullptr;  ///< nullptr: unknown SKU
  JudgeContext judge;
  PredicateTime predicates;
  bool announced = false;  ///< the run has been shown to its user: stages may show progress
  double virtualNow = 0;   ///< sim: virtual seconds since the run began
  std::map<std::string, std::string> quarantined;  ///< device id -> why no later stage may use it
  std::string counters;  ///< the last readings of error counters, as telemetry gave them; empty: none yet
};

/// A stage's record with what the judge needs of it beside the record.
struct StageOutcome {
  StageRecord record;
  Accounting accounting;
  StageEnding ending = StageEnding::kOwn;
};

/// Where this node's ranks stand among those of a stage.
struct GroupPlace {
  int firstRank = 0;  ///< of this node's ranks
  int localSize = 1;
  int worldSize = 1;
  int nodes = 1;                    ///< of the group
  ClusterStage* cluster = nullptr;  ///< how the group's nodes agree; nullptr: all its ranks are on this node
};

/// A stage on this node while it runs: where, what, and by which ranks.
struct StageHere {
  const NodeConfig& node;
  NodeProgress& progress;
  const Stage& stage;
  const PluginSpec& plugin;
  const TestSpec& test;
  std::vector<RankSlot> slots;
  GroupPlace place;
};

/// The context_json of one rank of a stage.
Json rankContext(const NodeConfig& node, const NodeProgress& progress, const Stage& stage,
                 const RankSlot& slot, const GroupPlace& place);

/// Keeps whom the stage's group found faulty; the first one stays.
void nameFaulty(StageRecord& record, const std::string& component);

/// Runs `stage`; failures of the stage are verdicts in its record. An Error is a fault of Muster itself.
/// `earlier`: what the same stage had failed when its run was interrupted (earlier_attempts.h).
Result<StageOutcome> runStage(const NodeConfig& node, NodeProgress& progress, const Stage& stage,
                              const StageRecord* earlier = nullptr);

/// The record of a stage that does not run here, with its one verdict.
StageOutcome stageNotRun(const Stage& stage, StageState state, const std::string& reason);

/// The same of one in whose group this node has no part; its one verdict blocks nothing, unless the part
/// does.
StageOutcome stageWithoutPart(const Stage& stage, const NodePart& part);

/// Lets the other nodes run a stage in which this one is idle: it stays in touch with them until they leave
/// it.
StageOutcome runIdle(const NodeConfig& node, const Stage& stage, const NodePart& part);

/// What verdicts on `stage` rest on: the peaks are those of a network between its own group's nodes.
JudgeContext contextOf(const StageRecord& stage, size_t devices, JudgeContext context);

/// Judges `evidence` and completes verdicts, outcome and evidence of the record.
Accounting judgeInto(StageRecord& record, const StageEvidence& evidence, const JudgeContext& context);

/// Asks the plan's Lua predicates about the evidence's measurements and puts the answers into `context`.
void answerPredicates(const StageEvidence& evidence, JudgeContext& context, PredicateTime& time);

/// The worst outcome, in the order of the table; pass when there is none. A limit whose peers are not there
/// says nothing of its stage: what needs the stage may run.
Outcome worstOutcome(const std::vector<Verdict>& verdicts);

}  // namespace muster

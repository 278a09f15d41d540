// SPDX-License-Identifier: Apache-2.0
// One node's run of a plan from inventory to record, resumable after a crash.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runner/app/node/node_inventory.h"
#include "runner/app/node/options.h"
#include "runner/app/node/run_budget.h"
#include "runner/app/node/run_folder.h"
#include "runner/app/stage/stage_runner.h"
#include "runner/judge/waivers.h"
#include "runner/plan/plan.h"
#include "runner/record/record.h"
#include "runner/sku/profile.h"

namespace muster {

/// Everything that the nodes of one `muster run` share.
struct RunSetup {
  const RunOptions* options = nullptr;
  Tree tree;
  std::map<std::string, std::string> binaries;  ///< see binaryDigests()
  Catalog catalog;
  std::map<std::string, Profile> profiles;
  Plan plan;
  Waivers waivers;  ///< empty digest: none was given
  RunView* view = nullptr;
};

/// The SKU that the command or the plan names. A plan for the host backend that is simulated gets the one
/// that fits the scenario's devices: its own profile is that of this machine's CPU.
const std::string& requiredSku(const Plan& plan, const RunOptions& options);

/// The kUsage error of a profile for devices of another kind than those at `where`.
Error wrongKind(const Profile& profile, const std::string& where, const std::string& kind);

/// The backend that the ranks load: the plan's, or "sim".
const std::string& backendOf(const RunSetup& setup);

/// Whether a stage that needs one of this outcome may run.
bool satisfies(Outcome outcome);

/// When a run ended, as its record says it: its begin plus the seconds it took, though somebody set the clock
/// meanwhile. How long a resumed run lay still only the wall clock knows.
double finishedAt(double started, double elapsed, double wall, bool resumed);

/// A node among those of its run.
struct NodeSeat {
  std::string node;  ///< the host name, or "sim-node-0003" for simulated ones
  int rank = 0;
  int count = 1;
  Json launcher = {{"kind", "none"}};  ///< what the record says of how it got its place
  ClusterLink* cluster = nullptr;      ///< the tie to the others; nullptr: it runs alone, or simulated
};

class NodeRun {
 public:
  NodeRun(const RunSetup& setup, RunFolder folder, NodeSeat seat);

  /// Runs every stage that the journal does not hold yet and writes record and reports; of a run that has
  /// ended the record is returned as it is. Failures of stages are in the record; an Error is bad input
  /// (kUsage) or a fault of Muster itself.
  Result<Record> run();

 private:
  Result<Record> runToEnd();
  /// The record of a run that has ended; nothing while a stage is open, or its last start wrote none.
  [[nodiscard]] std::optional<Record> endedRecord(const Journal& journal) const;
  /// Shows it; a resume of such a run changes nothing.
  Result<Record> showEnded(Record record) const;
  Status makeFolders();
  Status begin(const Journal* earlier);
  Status freeze(const Journal* earlier);
  Status takeInventory();
  Status resumeInventory(const JournalStage& kept);
  Status checkSameNode(const NodeInventory& kept);
  Status chooseProfile(NodeInventory& inventory);
  Status announce(const NodeInventory& inventory);
  Status runStages(const Journal* earlier);
  Result<StageOutcome> runOne(const Stage& stage, const StageRecord* interrupted);
  Status keepFailures(const StageRecord& interrupted);
  void noteOpenNeeds(const Stage& stage, StageRecord& record) const;
  [[nodiscard]] const Stage* planned(const std::string& stage) const;
  [[nodiscard]] bool leavesOut(const std::string& stage) const;
  [[nodiscard]] bool hasNoPart(const std::string& stage) const;
  [[nodiscard]] double elapsed() const;
  /// Why a stage does not run: a need that did not pass, no devices, an interruption; empty when it may.
  [[nodiscard]] std::string whyNot(const Stage& stage) const;
  void tellOthers(const Stage& stage, const std::string& why);
  void waive(StageOutcome& outcome) const;
  void endWaivers();
  Status keep(const StageOutcome& outcome, const Json& extra);
  void add(const StageRecord& stage, const Accounting& accounting);
  [[nodiscard]] bool isOpen(const Stage& stage, const StageOutcome& outcome) const;
  void decideAll();

  const RunSetup& setup_;
  const double begun_;  ///< by the steady clock, which nobody sets
  RunFolder folder_;
  RunBudget budget_;
  std::vector<std::string> open_;  ///< stages that another node's interruption stopped
  NodeConfig node_;
  NodeProgress progress_;
  Record record_;
  std::optional<Profile> profile_;  ///< the frozen one
  NodeInventory inventory_;
  std::map<std::string, Outcome> outcomes_;  ///< of ended stages, for `needs`
  double virtualBegun_ = 0;                  ///< sim: virtual time when this start of the run began
};

}  // namespace muster

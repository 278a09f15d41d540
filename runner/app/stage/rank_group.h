// SPDX-License-Identifier: Apache-2.0
// One attempt of a stage: all its ranks side by side, each restarted for its remaining cases when it dies.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runner/app/stage/frame_collector.h"
#include "runner/app/stage/stage_runner.h"
#include "runner/rendezvous/store_server.h"

namespace muster {

/// When a simulated rank of the stage has hung. Its deadline is judged by the virtual time that it took.
HangLimits simulatedHang(const Stage& stage);

class RankGroup {
 public:
  RankGroup(const StageHere& here, const std::vector<const Case*>& cases, int attempt,
            std::function<void()> onTick);

  /// Runs to the end or the stage's deadline. Adds ranks, artifacts and log to `record`, ends and
  /// measurements to `evidence`, and moves the node's virtual time. An Error is a fault of Muster itself.
  Status run(StageRecord& record, StageEvidence& evidence);

  /// While it runs: what it has measured by now; a case that has not ended counts as cancelled.
  void addSoFar(StageEvidence& evidence) const;

  /// Whose case failed, and others because of it, in an attempt of several nodes that ran to its end; empty:
  /// nobody's.
  [[nodiscard]] const std::string& failed() const { return failed_; }

 private:
  [[nodiscard]] RankSpec specFor(const RankSlot& slot, int start) const;
  [[nodiscard]] std::vector<size_t> pendingRuns(const RankSlot& slot) const;
  [[nodiscard]] double secondsLeft(double begin) const;
  void settle(const RankSlot& slot, const RankEnd& end, StageRecord& record);
  void settleStopped(const RankSlot& slot, const RankEnd& end);
  void failPending(const RankSlot& slot, const std::string& message,
                   CaseEnd::Cause cause = CaseEnd::Cause::kOwn);
  [[nodiscard]] CaseEnd::Cause causeOf(const RankEnd& end, const std::set<size_t>& faulty) const;
  void keepEnd(const RankSlot& slot, const RankEnd& end, StageRecord& record);
  /// A start of ranks whose group spans nodes: how it ended is agreed, so that all nodes blame the same.
  void settleTogether(const std::vector<RankSlot>& slots, const std::vector<RankEnd>& ends,
                      const std::string& lost, double timeLeft, StageRecord& record);
  void watchPeers(GroupOptions& options, std::string& lost);
  /// Whether the ranks talk to each other and so run the same cases.
  [[nodiscard]] bool grouped() const;
  void keepInStep();
  Result<std::unique_ptr<StoreServer>> serveStore(std::vector<RankSpec>& specs, int start) const;
  void showProgress(double begin);
  Status runOnce(const std::vector<RankSlot>& slots, int start, double begin, StageRecord& record);

  const NodeConfig& node_;
  NodeProgress& progress_;
  const Stage& stage_;
  const PluginSpec& plugin_;
  std::vector<RankSlot> slots_;
  GroupPlace place_;
  std::map<int, std::string> stopped_;  ///< ranks that were stopped because of another one, and why
  bool finished_ = false;               ///< the group's nodes agreed not to start again
  std::string failed_;
  int attempt_;
  std::function<void()> onTick_;
  FrameCollector collector_;
};

}  // namespace muster

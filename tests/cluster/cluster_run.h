// SPDX-License-Identifier: Apache-2.0
// One run over several hosts: a `muster run` on each, what is done to them meanwhile, and what they said.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/record/record.h"
#include "tests/cluster/hosts.h"
#include "tests/support/process.h"

namespace muster::testing {

/// A plan with the stage `walk` of all nodes, one rank each, and the stage `after` of each node alone.
struct WalkPlan {
  int steps = 5;
  double work = 0.02;  ///< seconds a step
  std::string timeout = "12s";
  std::string more;   ///< lines of the stage's params
  std::string stage;  ///< lines of the stage itself
};

/// A stage of all nodes, one rank each, that walks so many steps of some 20 ms.
std::string clusterWalk(const std::string& name, int steps, const std::string& timeout);
/// Who was around a host, as its record has it: of at most nine hosts all, with one rank each.
Json hostsAround(int hosts);
/// The stage `after` of each node alone.
extern const std::string kAfterStage;

class ClusterRun {
 public:
  ClusterRun(int hosts, const WalkPlan& plan);
  /// A plan of its own, which needs no other plugins than the installed ones and these fakes.
  ClusterRun(int hosts, std::string plan, const std::vector<std::string>& fakes);

  /// Starts `muster run` on a host; `rank` is its node rank.
  void start(int host, int rank, const std::vector<std::string>& more = {},
             const ProcessOptions& options = {});
  void startAll();
  /// Starts `muster run --resume` on a host whose run has ended.
  void resume(int host, const std::vector<std::string>& more = {});
  /// Sends the host's runner a signal; its ranks get none.
  void signal(int host, int signal) const;
  /// Waits until the walk's rank on this host runs, and a moment more; returns its process.
  int awaitRank(int host, const std::string& stage = "walk");
  /// Waits for all ends, or for one.
  void finish();
  void finish(int host);
  /// Whether no process of a run is left on this host, a moment after its end.
  [[nodiscard]] bool nothingLeft(int host) const;

  /// Lets each host see its own interfaces in /sys, whose counters prove the transport, and all else there as
  /// before: control groups too.
  void seeOwnInterfaces();
  /// `muster fleet` over the records of all hosts, and what it wrote.
  ProcessResult fleet();
  [[nodiscard]] Json fleetResult() const;
  /// Host -> its state in the fleet.
  [[nodiscard]] std::map<std::string, std::string> states() const;

  [[nodiscard]] const ProcessResult& ended(int host) const {
    return ended_.at(static_cast<size_t>(host)).value();
  }
  [[nodiscard]] Record record(int host) const;
  [[nodiscard]] StageRecord stage(int host, const std::string& name) const;
  /// Who was to blame for the walk as this host's record has it.
  [[nodiscard]] std::string culprit(int host, const std::string& name = "walk") const;
  /// All that the verdicts of the walk say on this host.
  [[nodiscard]] std::string details(int host, const std::string& name = "walk") const;

  std::string planText;
  std::vector<std::string> wrapper;  ///< in front of each `muster run`: a command that runs its arguments
  Hosts hosts;

  [[nodiscard]] std::filesystem::path folder(int host) const;
  static constexpr const char* kToken = "a-secret-that-only-these-tests-share";

 private:
  [[nodiscard]] std::filesystem::path out(int host) const;
  void launch(int host, const std::vector<std::string>& command, ProcessOptions options = {});

  TempDir dir_;
  std::vector<std::optional<std::future<ProcessResult>>> running_;
  std::vector<std::optional<ProcessResult>> ended_;
  std::vector<int> ranks_;
};

}  // namespace muster::testing

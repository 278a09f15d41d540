// SPDX-License-Identifier: Apache-2.0
// What the tests of `muster slurm` share: one cluster for all cases of a program, plans that take a known
// while, and what a run left behind.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "tests/slurm/slurm_cluster.h"

namespace muster::testing {

/// All cases of the program share one Slurm; each finds it idle.
class SlurmTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { startCluster(""); }
  static void TearDownTestSuite();
  /// For suites whose Slurm is set up otherwise: more lines of slurm.conf.
  static void startCluster(const std::string& extra);
  void SetUp() override;

  static SlurmCluster& slurm() { return *theCluster; }
  /// A run folder of this case that does not exist yet.
  static std::filesystem::path newRun();
  /// `muster slurm submit PLAN --nodes node[1-4] --out RUN MORE`, killed after so many seconds.
  static ProcessResult submit(const std::filesystem::path& plan, const std::filesystem::path& run,
                              const std::vector<std::string>& more = {},
                              const std::string& nodes = "node[1-4]", double timeout = 500);

  /// One stage that waits so many seconds on this machine: as cheap as sleeping.
  static std::filesystem::path waitingPlan(int seconds);
  /// A plan and a scenario of eight simulated GPUs; takes a moment.
  static std::filesystem::path quickPlan();
  static std::string healthy();
  /// Submits a plan that really rejects these nodes ("node1"), on nodes that really were measured, and waits.
  static ProcessResult submitSick(const std::filesystem::path& run, const std::vector<int>& sick,
                                  const std::string& nodes = "node[1-4]");
  /// The same with a stage of all nodes, in which node1 and both ends name the link between two of them as
  /// bad.
  static constexpr int kNode1Alone = 32;          ///< `more`: the ends do not
  static constexpr int kFirstWithoutFigure = 64;  ///< `more`: the first end is incomplete, too
  static ProcessResult submitBadLink(const std::filesystem::path& run, int a, int b, int more = 0);

  /// `sbatch ARGUMENTS` as another user than the run's; returns the job's number.
  static constexpr uid_t kOtherUser = 65534;
  static std::string sbatchAsOtherUser(const std::vector<std::string>& arguments);

  /// Nodes with a claim; with an exit code; with a record.
  static std::set<std::string> claimed(const std::filesystem::path& run);
  static std::set<std::string> ended(const std::filesystem::path& run);
  static std::set<std::string> recorded(const std::filesystem::path& run);

 private:
  static std::filesystem::path sickPlan(const std::string& scope, int kind);
  static ProcessResult submitPlugin(const std::filesystem::path& plan, const std::filesystem::path& run,
                                    const std::string& nodes);
  static std::unique_ptr<SlurmCluster> theCluster;
};

}  // namespace muster::testing

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
  /// `muster slurm submit PLAN --nodes node[1-4] --out RUN MORE`.
  static ProcessResult submit(const std::filesystem::path& plan, const std::filesystem::path& run,
                              const std::vector<std::string>& more = {},
                              const std::string& nodes = "node[1-4]");

  /// One stage that waits so many seconds on this machine: as cheap as sleeping.
  static std::filesystem::path waitingPlan(int seconds);
  /// A plan and a scenario of eight simulated GPUs; takes a moment.
  static std::filesystem::path quickPlan();
  static std::string healthy();
  /// Makes the record of a node that really was measured, and the fleet's report, those of one that failed
  /// `metric`.
  static void reject(const std::filesystem::path& run, const std::string& node, const std::string& metric);
  /// What the fleet's report says of a node; `suspect`: a finding names it.
  static void setState(const std::filesystem::path& run, const std::string& node, const std::string& state,
                       bool suspect, const std::string& reason);

  /// Nodes with a claim; with an exit code; with a record.
  static std::set<std::string> claimed(const std::filesystem::path& run);
  static std::set<std::string> ended(const std::filesystem::path& run);
  static std::set<std::string> recorded(const std::filesystem::path& run);

 private:
  static std::unique_ptr<SlurmCluster> theCluster;
};

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Runs without a record: the command with which each goes on.
#include "reports/fleet/read/interrupted_run.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runner/core/json.h"
#include "tests/support/process.h"

namespace muster::fleet {
namespace {

std::string commandOf(const std::filesystem::path& folder, int rank, int count, const std::string& scenario) {
  std::filesystem::create_directories(folder);
  const Json first = {{"type", "run"},         {"node", "n1"},          {"plan_sha256", ""},
                      {"plan_path", "p.toml"}, {"sets", Json::array()}, {"started", 1.0},
                      {"node_rank", rank},     {"node_count", count},   {"scenario", scenario}};
  std::ofstream(folder / kJournalName) << dumpJson(first) << "\n";
  const auto run = readInterruptedRun(folder, "n1");
  return run.ok() ? run->goOnWith : run.error().text();
}

TEST(InterruptedRun, GoesOnAtItsPlace) {
  testing::TempDir dir;
  const std::string all = (dir.path() / "it's all").string();
  const std::string quoted = dir.path().string() + "/it'\\''s all";
  const auto folder = std::filesystem::path(all) / "n1";
  EXPECT_EQ(commandOf(folder, 0, 1, ""), "muster run --resume '" + quoted + "/n1' --node-name n1");
  EXPECT_EQ(commandOf(folder, 2, 4, ""),
            "muster run --resume '" + quoted + "' --node-name n1 --nnodes 4 --node-rank 2");
  EXPECT_EQ(commandOf(folder, 2, 4, "healthy.toml"), "muster run --resume '" + quoted + "/n1'");
}

}  // namespace
}  // namespace muster::fleet

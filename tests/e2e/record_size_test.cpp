// SPDX-License-Identifier: Apache-2.0
// How large records are: bounded for a node, and those of generated fleets as large as real ones.
#include <gtest/gtest.h>

#include "tests/e2e/muster.h"
#include "tests/reports/fleet/copied_fleet.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = 1'000'000 / 13;  ///< for each stage

void simulateFull(const std::string& name, const fs::path& out, int exitCode,
                  const std::vector<std::string>& more = {}) {
  const auto result = runMuster(std::vector<std::string>{"run", plan("node-full.toml"), "--simulate",
                                                         scenario(name), "--out", out.string(), "--plain"} +
                                more);
  EXPECT_EQ(result.exitCode, exitCode) << result.out << result.err;
}

/// A full run of a healthy node, made when the first case asks.
const fs::path& healthyRun() {
  static const TempDir dir;
  static const fs::path run = [] {
    simulateFull("h100x8-healthy", dir.path() / "run", 0);
    return dir.path() / "run";
  }();
  return run;
}

TEST(RecordSize, OfAFullRunStaysSmall) {
  const Record record = recordIn(healthyRun());
  EXPECT_LT(fs::file_size(healthyRun() / "record.json"), kMostBytes * record.stages.size());
  // It is small because it is written well, not because something is left out.
  size_t samples = 0, longest = 0, series = 0;
  for (const StageRecord& stage : record.stages) {
    for (const Measurement& m : stage.measurements) samples += m.samples.size();
    for (const TelemetrySeries& one : stage.telemetry) longest = std::max(longest, one.value.size());
    series += stage.telemetry.size();
  }
  EXPECT_GT(samples, 50'000u);
  EXPECT_GT(record.accounting.total(), 1'000u);
  EXPECT_GT(series, 500u);
  EXPECT_EQ(longest, 300u);
}

TEST(RecordSize, OfASickNodeStaysSmall) {
  TempDir dir;
  simulateFull("h100x8-throttling", dir.path() / "run", 1);
  const Record record = recordIn(dir.path() / "run");
  EXPECT_LT(fs::file_size(dir.path() / "run" / "record.json"), kMostBytes * record.stages.size());
  EXPECT_FALSE(verdictsOf(record, Outcome::kFail).empty());
}

TEST(RecordSize, OfAGeneratedFleetIsThatOfRealRecords) {
  TempDir dir;
  simulateFull("h100x8-healthy", dir.path() / "base", 0, {"--nodes", "2"});
  std::vector<std::string> bases;
  for (const auto& entry : fs::recursive_directory_iterator(dir.path() / "base"))
    if (entry.path().filename() == "record.json") bases.push_back(entry.path().string());
  ASSERT_EQ(bases.size(), 2u);
  const auto fleet = CopiedFleet::from(bases);
  ASSERT_TRUE(fleet.ok()) << fleet.error().text();
  constexpr size_t kNodes = 20;
  ASSERT_TRUE(fleet->write(dir.path() / "fleet", kNodes).ok());
  double bytes = 0;
  for (size_t i = 0; i < kNodes; ++i) {
    const fs::path folder = dir.path() / "fleet" / CopiedFleet::nodeName(i);
    bytes += static_cast<double>(fs::file_size(folder / "record.json"));
    EXPECT_EQ(recordIn(folder).node, CopiedFleet::nodeName(i));
  }
  const auto real = static_cast<double>(fs::file_size(healthyRun() / "record.json"));
  EXPECT_NEAR(bytes / kNodes, real, 0.2 * real);
}

}  // namespace
}  // namespace muster::testing

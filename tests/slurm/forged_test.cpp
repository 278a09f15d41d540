// SPDX-License-Identifier: Apache-2.0
// A run folder that a job of its own user has forged, on a real Slurm, which knows better. Generated
// forgeries: forged_run.h.
#include <cmath>
#include <fstream>

#include "runner/record/record_check.h"
#include "runner/record/record_mac.h"
#include "tests/slurm/slurm_run.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class SlurmForged : public SlurmTest {
 protected:
  static fs::path recordOf(const fs::path& run, const std::string& node) {
    return run / "records" / "nodes" / node / "record.json";
  }

  /// Writes `record` as that of `node`, by its key: the forger runs as the same user.
  static void write(const fs::path& run, const std::string& node, Record record) {
    record.node = node;
    record.runId = runIdOf(node, record.started);
    record.mac.clear();
    record.mac = macOf(record, *readKey(run / "keys" / node));
    fs::create_directories(recordOf(run, node).parent_path());
    ASSERT_TRUE(writeRecord(record, recordOf(run, node)).ok());
  }

  /// Makes the node's own record and exit file those of one that failed.
  static void reject(const fs::path& run, const std::string& node) {
    auto record = readRecord(recordOf(run, node));
    ASSERT_TRUE(record.ok()) << record.error().text();
    Verdict& verdict = record->stages.back().verdicts.front();
    --record->accounting.counts[static_cast<size_t>(verdict.outcome)];
    verdict.outcome = Outcome::kFail;
    verdict.margin = std::nan("");
    verdict.detail = "0, required at least 1";
    ++record->accounting.counts[static_cast<size_t>(Outcome::kFail)];
    record->stages.back().outcome = Outcome::kFail;
    record->acceptance = "rejected";
    record->exitCode = 1;
    record->reasons = {"1 requirement was not met"};
    write(run, node, *record);
    std::ofstream(run / "exits" / node) << "1\n";
  }

  static ProcessResult fleet(const fs::path& run) {
    return slurm().command({(distDir() / "bin" / "muster").string(), "fleet", (run / "records").string(),
                            "--expect", (run / "expect.txt").string(), "--slurm-run", run.string(),
                            "--same-machine", "--out", (run / "again").string()});
  }
  static std::string stateOf(const fs::path& run, const std::string& node) {
    const Json fleet = Json::parse(readWhole(run / "again" / "fleet.json"), nullptr, false);
    for (const Json& one : fleet.value("nodes", Json::array()))
      if (one.value("node", "") == node) return one.value("state", "") + ": " + one.value("reason", "");
    return "not there";
  }
};

TEST_F(SlurmForged, NeitherDrainsNorAcceptsWhatSlurmDoesNotConfirm) {
  slurm().set("node4", "DRAIN", "bad DIMM");
  const fs::path run = newRun();
  const ProcessResult found = submitSick(run, {1});
  ASSERT_EQ(found.exitCode, 1) << found.out << found.err;
  ASSERT_EQ(fleet(run).exitCode, 1);
  EXPECT_THAT(stateOf(run, "node2"), HasSubstr("accepted"));

  // node2 as rejected, in every file; node3 in its exit file alone; node4 as one that ran in node2's job.
  reject(run, "node2");
  Json report = Json::parse(readWhole(run / "fleet" / "fleet.json"));
  for (Json& node : report["nodes"])
    if (node["node"] == "node2" || node["node"] == "node3") node["state"] = "rejected";
  std::ofstream(run / "fleet" / "fleet.json") << report.dump();
  std::ofstream(run / "exits" / "node3") << "1\n";
  auto record = readRecord(recordOf(run, "node3"));
  ASSERT_TRUE(record.ok());
  record->environment["SLURM_JOB_ID"] =
      readWhole(run / "claims" / "node2").substr(0, readWhole(run / "claims" / "node2").find(' '));
  write(run, "node4", *record);
  fs::copy_file(run / "claims" / "node2", run / "claims" / "node4");
  std::ofstream(run / "exits" / "node4") << "0\n";

  EXPECT_EQ(fleet(run).exitCode, 1);
  EXPECT_THAT(stateOf(run, "node2"),
              ContainsRegex("quarantined: Slurm says that job [0-9]+ ended with 0, exits/node2 says 1"));
  EXPECT_THAT(stateOf(run, "node3"), ContainsRegex("quarantined: Slurm says"));
  EXPECT_THAT(stateOf(run, "node4"), Not(HasSubstr("accepted")));
  EXPECT_THAT(readWhole(run / "again" / "fleet.json"),
              ContainsRegex("job [0-9]+, which claimed it, ran on node2"));

  const ProcessResult drained = slurm().muster({"drain", run.string(), "--apply"});
  EXPECT_EQ(drained.exitCode, 3) << drained.err;
  EXPECT_EQ(slurm().state("node1"), "drained");
  for (const char* node : {"node2", "node3"}) {
    EXPECT_THAT(slurm().state(node), Not(HasSubstr("drain"))) << node;
    EXPECT_THAT(drained.out, ContainsRegex(std::string(node) +
                                           ": not changed: .*Slurm says that job [0-9]+ ended with 0"));
  }
  EXPECT_EQ(slurm().reason("node4"), "bad DIMM");
  EXPECT_THAT(slurm().muster({"status", run.string()}).out,
              ContainsRegex("node2 +failed +exit 1, but Slurm says"));
}

TEST_F(SlurmForged, NamesARejectedNodeWhoseFilesSayAccepted) {
  const fs::path run = newRun();
  ASSERT_EQ(submitSick(run, {1}, "node[1-2]").exitCode, 1);
  auto record = readRecord(recordOf(run, "node2"));
  ASSERT_TRUE(record.ok());
  record->environment["SLURM_JOB_ID"] =
      readWhole(run / "claims" / "node1").substr(0, readWhole(run / "claims" / "node1").find(' '));
  write(run, "node1", *record);
  std::ofstream(run / "exits" / "node1") << "0\n";
  EXPECT_EQ(fleet(run).exitCode, 3);
  EXPECT_THAT(stateOf(run, "node1"), ContainsRegex("quarantined: "));
  const ProcessResult drained = slurm().muster({"drain", run.string(), "--dry-run"});
  EXPECT_EQ(drained.exitCode, 3) << drained.out << drained.err;
  EXPECT_THAT(drained.out, ContainsRegex("node1: not changed: "));
}

}  // namespace
}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// A run folder that a job of its own user has forged, on a real Slurm, which knows better. Generated
// forgeries: forged_run.h.
#include <fmt/format.h>

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
    ASSERT_TRUE(writeRecord(recordText(record), recordOf(run, node)).ok());
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
    record->acceptance = Acceptance::kRejected;
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
              ContainsRegex("quarantined: Slurm reports that job [0-9]+ ended with 0, exits/node2 says 1"));
  EXPECT_THAT(stateOf(run, "node3"), ContainsRegex("quarantined: Slurm reports"));
  EXPECT_THAT(stateOf(run, "node4"), Not(HasSubstr("accepted")));
  EXPECT_THAT(readWhole(run / "again" / "fleet.json"),
              ContainsRegex("job [0-9]+, which claimed it, ran on node2"));

  const ProcessResult drained = slurm().muster({"drain", run.string(), "--apply"});
  EXPECT_EQ(drained.exitCode, 3) << drained.err;
  EXPECT_EQ(slurm().state("node1"), "drained");
  for (const char* node : {"node2", "node3"}) {
    EXPECT_THAT(slurm().state(node), Not(HasSubstr("drain"))) << node;
    EXPECT_THAT(drained.out, ContainsRegex(std::string(node) +
                                           ": not changed: .*Slurm reports that job [0-9]+ ended with 0"));
  }
  EXPECT_EQ(slurm().reason("node4"), "bad DIMM");
  EXPECT_THAT(slurm().muster({"status", run.string()}).out,
              ContainsRegex("node2 +failed +exit 1, but Slurm reports"));
}

TEST_F(SlurmForged, EntersNoAcceptanceHistoryOrBaselineWithoutSlurm) {
  const fs::path accepted = newRun(), again = newRun();
  ASSERT_EQ(submitSick(accepted, {}, "node[1-2]").exitCode, 0);
  ASSERT_EQ(submitSick(again, {1}, "node1").exitCode, 1);
  // The rejected node's record becomes that of a healthy one, by the node's own key and of its own job.
  auto healthy = readRecord(recordOf(accepted, "node1")), own = readRecord(recordOf(again, "node1"));
  ASSERT_TRUE(healthy.ok() && own.ok());
  healthy->environment["SLURM_JOB_ID"] = own->environment["SLURM_JOB_ID"];
  healthy->launcher = own->launcher;
  healthy->started = own->started;
  healthy->finished = own->finished;
  healthy->plan = own->plan;
  write(again, "node1", *healthy);
  std::ofstream(again / "exits" / "node1") << "0\n";

  const auto muster = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), (distDir() / "bin" / "muster").string());
    return slurm().command(arguments);
  };
  const fs::path out = slurm().shared() / "forged";
  const std::string database = (slurm().shared() / "forged.sqlite").string();
  constexpr const char* kWhy = "Slurm reports that job [0-9]+ ended with 1, exits/node1 says 0";
  for (const fs::path& named : {again, again / "records", recordOf(again, "node1")}) {
    const auto merged = muster({"history", "delta", named.string(), "--since", accepted.string(), "--out",
                                out.string(), "--db", database});
    EXPECT_EQ(merged.exitCode, 2) << merged.out;
    EXPECT_THAT(merged.err, ContainsRegex(kWhy));
    const auto added = muster({"history", "add", named.string(), "--db", database});
    EXPECT_EQ(added.exitCode, 3) << added.out;
    EXPECT_THAT(added.err, ContainsRegex(kWhy));
  }
  EXPECT_FALSE(fs::exists(out / "fleet.json"));
  const auto learned = muster({"baseline", "learn", again.string(), "-o", (out / "new.toml").string()});
  EXPECT_EQ(learned.exitCode, 2) << learned.out;
  EXPECT_THAT(learned.err, ContainsRegex(kWhy));
  for (const fs::path& named : {again, again / "records"}) {
    const auto judged = muster({"fleet", named.string(), "--expect", (again / "expect.txt").string(),
                                "--same-machine", "--out", out.string()});
    EXPECT_EQ(judged.exitCode, 3) << judged.out << judged.err;
    EXPECT_THAT(readWhole(out / "fleet.json"), ContainsRegex(kWhy));
  }
  // Beside records/ no job of the run writes one either.
  const fs::path beside = again / "extra" / "node1";
  fs::create_directories(beside);
  fs::copy_file(recordOf(accepted, "node1"), beside / "record.json");
  const auto merged = muster({"history", "delta", beside.string(), "--since", accepted.string(), "--out",
                              (out / "beside").string(), "--db", database});
  EXPECT_THAT(merged.err, HasSubstr("its MAC is not by its node's key")) << merged.out;
  EXPECT_THAT(muster({"history", "add", beside.string(), "--db", database}).err,
              HasSubstr("its MAC is not by its node's key"));
  // Not even with the key of the node.
  fs::copy_file(recordOf(again, "node1"), beside / "record.json", fs::copy_options::overwrite_existing);
  EXPECT_THAT(muster({"history", "add", beside.string(), "--db", database}).err,
              HasSubstr("no job of this run writes a record here"));
  EXPECT_THAT(muster({"fleet", (again / "extra").string(), "--expect", (again / "expect.txt").string()}).err,
              HasSubstr("this is a part of a Slurm run"));
  // What Slurm confirms is taken.
  EXPECT_EQ(muster({"history", "add", accepted.string(), "--db", database}).exitCode, 0);
  // A delivery has no key: it is taken where its directory is trusted.
  fs::remove(accepted / "run.key");
  const std::string other = (slurm().shared() / "delivered.sqlite").string();
  const auto refused = muster({"history", "add", accepted.string(), "--db", other});
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("use --unconfirmed"));
  EXPECT_EQ(muster({"history", "add", accepted.string(), "--db", other, "--unconfirmed"}).exitCode, 0);
}

TEST_F(SlurmForged, IgnoresLineBreaksInCommentsOfOtherUsers) {
  const fs::path run = newRun();
  ASSERT_EQ(submitSick(run, {1}, "node[1-2]").exitCode, 1);
  const std::string claim = readWhole(run / "claims" / "node1"), job = claim.substr(0, claim.find(' '));
  const std::string id = Json::parse(readWhole(run / "slurm.json"))["id"];
  // Lines about the job of node1, as one that ran on node2: in squeue's format of before, and of now.
  const std::string now = fmt::format("{0}|{0}|{0}|FAILED|0|1|4000000000|node2|{1}", job, id);
  for (const std::string& comment :
       {fmt::format("x\n{0}|{0}|{0}|FAILED|node2|None|{1}", job, id), std::string(128, 'x') + "\n" + now,
        std::string(127, 'x') + "\n" + now, std::string("hello\nbroken")}) {
    const std::string number = sbatchAsOtherUser({"--comment=" + comment, "--job-name=a\n" + now});
    ASSERT_EQ(slurm().command({"scancel", number}).exitCode, 0);
  }
  slurm().set("node4", "DRAIN", "bad\nnode1|drained|(null)|root|x");

  const ProcessResult status = slurm().muster({"status", run.string()});
  EXPECT_EQ(status.exitCode, 0) << status.err;
  EXPECT_THAT(status.out, ContainsRegex("node1 +rejected +exit 1"));
  const ProcessResult drained = slurm().muster({"drain", run.string(), "--dry-run"});
  EXPECT_EQ(drained.exitCode, 0) << drained.out << drained.err;
  EXPECT_THAT(drained.out, HasSubstr("node1: would be drained: muster: "));
  const ProcessResult resumed = slurm().muster({"resume", run.string(), "--wait"});
  EXPECT_EQ(resumed.exitCode, 1) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("no node to retest; the fleet report stays as it is"));
}

TEST_F(SlurmForged, DrainsNoNodeForAJobThatFleetJsonDoesNotKnow) {
  const fs::path run = newRun();
  ASSERT_EQ(submitSick(run, {}, "node[1-2]").exitCode, 0);
  const std::string id = Json::parse(readWhole(run / "slurm.json"))["id"];
  const auto forge = [&](const std::string& comment) {
    const ProcessResult sent =
        slurm().command({"sbatch", "--parsable", "--wait", "--nodelist=node1", "--output=/dev/null",
                         "--comment=" + comment, "--wrap=exit 1"});
    const std::string job = sent.out.substr(0, sent.out.find('\n'));
    auto record = readRecord(recordOf(run, "node1"));
    ASSERT_TRUE(record.ok());
    record->environment["SLURM_JOB_ID"] = job;
    if (record->exitCode == 0) {
      write(run, "node1", *record);
      reject(run, "node1");
    } else {
      write(run, "node1", *record);
    }
    std::ofstream(run / "claims" / "node1") << job << " 2026-11-21T03:10:26Z\n";
    std::ofstream(run / "jobs.jsonl", std::ios::app) << fmt::format(
        "{{\"kind\":\"pinned\",\"job\":\"{}\",\"round\":0,\"nodes\":[\"node1\"],\"tasks\":1}}\n", job);
  };
  const auto drain = [&] { return slurm().muster({"drain", run.string(), "--apply"}); };
  forge(id);
  ProcessResult left = drain();
  EXPECT_EQ(left.exitCode, 3) << left.out << left.err;
  EXPECT_THAT(left.out,
              HasSubstr("node1: not changed: fleet.json and records differ: fleet.json says accepted"));
  forge("");
  left = drain();
  EXPECT_EQ(left.exitCode, 3) << left.out << left.err;
  EXPECT_THAT(left.out, ContainsRegex("node1: not changed: .*job [0-9]+ is of no run"));
  EXPECT_THAT(slurm().state("node1"), Not(HasSubstr("drain")));
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

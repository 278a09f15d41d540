// SPDX-License-Identifier: Apache-2.0
// What is made of finished runs: formats, redacted records, comparisons, a vendor's bundle.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runner/core/text.h"
#include "tests/e2e/fleet_run.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::FleetRun;
using testing::readWhole;
using testing::runMuster;
using testing::operator+;

/// One fleet of four nodes for all tests: node 2 has a slow GPU.
FleetRun& fleet() {
  static FleetRun run;
  static const bool made = [] {
    run.simulate(4, testing::slowFault("node = 2\ndevice = 5", 0.8));
    return run.judge(4).exitCode == 1;
  }();
  EXPECT_TRUE(made);
  return run;
}

std::string recordOf(int node) {
  return (fleet().path() / fmt::format("run/sim-node-{:04}/record.json", node)).string();
}

std::string in(const std::string& name) {
  return (fleet().path() / name).string();
}

TEST(ReportFormat, WritesEachFormatWithTheExitCodeOfTheRecord) {
  for (const char* format : {"ocp", "ctrf", "junit", "prometheus", "csv", "markdown"}) {
    SCOPED_TRACE(format);
    const auto good = runMuster({"report", recordOf(0), "--format", format});
    EXPECT_EQ(good.exitCode, 0) << good.err;
    const auto bad = runMuster({"report", recordOf(2), "--format", format, "--out", in("one.txt")});
    EXPECT_EQ(bad.exitCode, 1) << bad.err;
    for (const std::string& text : {good.out, readWhole(in("one.txt"))})
      EXPECT_NE(text.find("SIMULATED"), std::string::npos);
  }
}

TEST(ReportFormat, TakesAWholeFleet) {
  const auto csv = runMuster({"report", in("run"), "--format", "csv"});
  EXPECT_EQ(csv.exitCode, 1);
  EXPECT_EQ(csv.out.find("marks,node"), csv.out.rfind("marks,node"));
  EXPECT_NE(csv.out.find("sim-node-0003"), std::string::npos);
  EXPECT_EQ(runMuster({"report", in("run"), "--format", "ocp"}).exitCode,
            2);  // a file for each: --out is needed
  EXPECT_EQ(runMuster({"report", in("run"), "--format", "ocp", "--out", in("streams")}).exitCode, 1);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(fs::exists(in(fmt::format("streams/sim-node-{:04}.ocp.jsonl", i))));
}

/// As torn ones are left by a full disk.
TEST(ReportFormat, LeavesOutARecordOfAFolderThatCannotBeUsedAndSaysSo) {
  FleetRun other;
  other.simulate(2, "");
  const std::string run = (other.path() / "run").string();
  const std::string torn = other.write("run/torn/record.json", "{\"schema\":3").string();
  other.write("run/sim-node-0000/requirements.toml", "x = 1\n");
  for (const char* format : {"csv", "prometheus", "markdown"}) {
    const auto some = runMuster({"report", run, "--format", format});
    EXPECT_EQ(some.exitCode, 3) << some.err;
    EXPECT_NE(some.out.find("sim-node-0001"), std::string::npos);
    EXPECT_NE(some.err.find("left out: "), std::string::npos) << some.err;
    EXPECT_NE(some.err.find("torn/record.json"), std::string::npos) << some.err;
    EXPECT_NE(some.err.find("sim-node-0000/requirements.toml"), std::string::npos) << some.err;
    EXPECT_EQ(runMuster({"report", torn, "--format", format}).exitCode, 2) << "it was named";
  }
  const auto compared = runMuster({"compare", run, run});
  EXPECT_EQ(compared.exitCode, 3) << compared.err;
  EXPECT_NE(compared.err.find("torn/record.json"), std::string::npos) << compared.err;
  EXPECT_NE(compared.out.find("sim-node-0001"), std::string::npos) << compared.out;
  std::filesystem::remove(other.path() / "run/sim-node-0000/requirements.toml");
  other.write("run/sim-node-0000/record.json", "{"), other.write("run/sim-node-0001/record.json", "{");
  const auto none = runMuster({"report", run, "--format", "csv"});
  EXPECT_EQ(none.exitCode, 2);
  EXPECT_NE(none.err.find("none of the 3 records can be used"), std::string::npos) << none.err;
}

/// A figure that one of eight nodes did not measure, or not in the same way, is compared on the others.
TEST(ReportFormat, ComparesWhatTooFewNodesHaveRunByRun) {
  FleetRun fleets;
  fleets.simulate(8, "", {}, "before");
  fleets.simulate(8, testing::slowFault("node = 0\ndevice = 5", 0.9), {}, "after");
  fleets.simulate(8, "", {"--set", "gemm.min_time=4.9s"}, "other");
  const auto at = [&](const std::string& name) { return (fleets.path() / name).string(); };
  const auto expectWorse = [&] {
    const auto compared = runMuster({"compare", at("before"), at("after")});
    EXPECT_EQ(compared.exitCode, 1) << compared.out;
    EXPECT_NE(compared.out.find("WORSE   sim-node-0000 gpu5 gemm compute.gemm_throughput"), std::string::npos)
        << compared.out;
    return compared.out;
  };
  expectWorse();
  fs::copy_file(at("other/sim-node-0007/record.json"), at("after/sim-node-0007/record.json"),
                fs::copy_options::overwrite_existing);
  EXPECT_NE(expectWorse().find("Metrics of fewer than 8 nodes, run by run"), std::string::npos);
}

TEST(ReportFormat, LeavesOutOfAFolderASecondRecordOfANodeAndSaysSo) {
  FleetRun other;
  other.simulate(2, "");
  const std::string run = (other.path() / "run").string();
  const std::string mark = "\"node\": \"sim-node-0001\"";
  for (const std::string name : {"sim-node-0000", "no/name"}) {
    std::string text = readWhole(run + "/sim-node-0001/record.json");
    ASSERT_NE(text.find(mark), std::string::npos);
    other.write("run/zz/record.json",
                text.replace(text.find(mark), mark.size(), "\"node\": \"" + name + "\""));
    for (const std::vector<std::string>& format :
         {std::vector<std::string>{"prometheus"}, {"ocp", "--out", (other.path() / "ocp").string()}}) {
      if (name == "no/name" && format.size() == 1) continue;  // one text needs no names of files
      const auto some = runMuster(std::vector<std::string>{"report", run, "--format"} + format);
      EXPECT_EQ(some.exitCode, 3) << some.err;
      EXPECT_NE(some.err.find("left out: "), std::string::npos) << some.err;
      EXPECT_NE(some.err.find("zz/record.json"), std::string::npos) << some.err;
      if (format.size() == 1) {
        EXPECT_NE(some.out.find("sim-node-0001"), std::string::npos);
      }
    }
  }
}

TEST(ReportFormat, RefusesTwoRecordsOfANodeWhereOneCounts) {
  const auto twice = runMuster({"report", recordOf(0), recordOf(0), "--format", "prometheus"});
  EXPECT_EQ(twice.exitCode, 2);
  EXPECT_NE(twice.err.find("second record of node sim-node-0000"), std::string::npos) << twice.err;
}

TEST(ReportFormat, MakesNoListOfNodesOfASimulatedFleet) {
  const auto list = runMuster({"report", in("out/fleet.json"), "--format", "exclude"});
  EXPECT_EQ(list.exitCode, 2);
  EXPECT_NE(list.err.find("SIMULATED"), std::string::npos);
  EXPECT_EQ(list.out, "");
}

TEST(ReportFormat, ListsTheNodesOfAMeasuredFleet) {
  // Only fleet.json is read, so the mark alone makes the difference.
  std::string text = readWhole(in("out/fleet.json"));
  const std::string mark = "\"simulated\": true";
  text.replace(text.find(mark), mark.size(), "\"simulated\": false");
  fleet().write("measured/fleet.json", text);
  EXPECT_EQ(runMuster({"report", in("measured/fleet.json"), "--format", "exclude"}).out, "sim-node-0002\n");
  EXPECT_EQ(runMuster({"report", in("measured"), "--format", "hostfile"}).out,
            "sim-node-0000\nsim-node-0001\nsim-node-0003\n");
}

/// The fleet judged once more.
testing::ProcessResult judgeUnder(const std::string& requirements, const std::string& out,
                                  const std::vector<std::string>& more = {}) {
  return runMuster(std::vector<std::string>{"fleet", in("run"), "--expect", in("nodes.txt"), "--out", in(out),
                                            "--requirements", requirements} +
                   more);
}

constexpr const char* kUnmeasured =
    "schema = 1\nname = \"contract\"\n[[clause]]\nid = \"B.9\"\nrequirement = \"a ring\"\n"
    "metrics = [\"ring.culprits\"]\n";
constexpr const char* kGemmRate =
    "schema = 1\nname = \"contract\"\n[[clause]]\nid = \"B.2\"\nrequirement = \"a rate\"\n"
    "metrics = [\"compute.gemm_throughput\"]\n";

/// A copy of an accepted record in a folder of its own.
std::string copiedRecord(const std::string& folder) {
  fs::create_directories(in(folder));
  fs::copy(recordOf(0), in(folder));
  return in(folder + "/record.json");
}

TEST(ReportRequirements, HoldForAllThatIsMadeOfARecord) {
  const std::string given = fleet().write("given.toml", kUnmeasured).string();
  const std::string apart = copiedRecord("apart"), beside = copiedRecord("beside");
  fs::copy(given, in("beside/requirements.toml"));
  EXPECT_EQ(runMuster({"report", apart}).exitCode, 0);
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"report", apart, "--requirements", given}, {"report", beside}}) {
    const auto summary = runMuster(how);
    EXPECT_EQ(summary.exitCode, 3) << summary.out;
    EXPECT_NE(summary.out.find("INCOMPLETE"), std::string::npos) << summary.out;
    for (const char* format : {"ocp", "ctrf", "junit", "prometheus", "csv", "markdown"}) {
      const auto made = runMuster(how + std::vector<std::string>{"--format", format});
      EXPECT_EQ(made.exitCode, 3) << format << made.err;
      if (std::string(format) != "csv") {
        EXPECT_NE(lowerCase(made.out).find("incomplete"), std::string::npos) << format;
      }
    }
    fs::remove_all(in("pages"));
    EXPECT_EQ(runMuster(how + std::vector<std::string>{"--out", in("pages")}).exitCode, 3);
    EXPECT_EQ(readWhole(in("pages/requirements.toml")), kUnmeasured);
  }
  fs::remove(in("beside/requirements.toml"));
  fs::create_symlink("/etc/hostname", in("beside/requirements.toml"));
  const auto led = runMuster({"report", beside});
  EXPECT_EQ(led.exitCode, 2);
  EXPECT_NE(led.err.find("it is a symbolic link"), std::string::npos)
      << "nothing of that file is shown: " << led.err;
  fs::remove(in("beside/requirements.toml"));
  fleet().write("beside/requirements.toml", "schema = 1\n");
  EXPECT_EQ(runMuster({"report", beside, "--format", "junit"}).exitCode, 2);
}

TEST(ReportRequirements, TakeNodesOutOfTheListOfAcceptedOnes) {
  const std::string given = fleet().write("given.toml", kUnmeasured).string();
  const auto judged = judgeUnder(given, "under");
  EXPECT_EQ(judged.exitCode, 1) << judged.out;
  EXPECT_NE(judged.out.find("3 incomplete, 1 rejected"), std::string::npos) << judged.out;
  std::string text = readWhole(in("under/fleet.json"));
  EXPECT_NE(text.find("clause B.9 has no evidence"), std::string::npos);
  const std::string mark = "\"simulated\": true";
  text.replace(text.find(mark), mark.size(), "\"simulated\": false");
  fleet().write("under/fleet.json", text);
  EXPECT_EQ(runMuster({"report", in("under"), "--format", "hostfile"}).out, "");
  EXPECT_EQ(runMuster({"report", in("under"), "--format", "exclude"}).out,
            "sim-node-0000,sim-node-0001,sim-node-0002,sim-node-0003\n");
  const auto asked = runMuster({"report", in("under"), "--format", "hostfile", "--requirements", given});
  EXPECT_EQ(asked.exitCode, 2);
  EXPECT_NE(asked.err.find("muster fleet --requirements"), std::string::npos) << asked.err;
}

TEST(ReportRequirements, LetTheWaiversOfTheFleetStand) {
  const std::string given = fleet().write("rate.toml", kGemmRate).string();
  const std::string waivers =
      fleet()
          .write("waivers.toml",
                 "schema = 1\n[[waiver]]\nstage = \"gemm\"\nmetric = \"compute.gemm_throughput\"\n"
                 "node = \"sim-node-0002\"\ndevice = \"gpu5\"\nreason = \"spare part ordered\"\n"
                 "approver = \"A. Person\"\nexpires = \"2099-12-31\"\n")
          .string();
  const auto judged = judgeUnder(given, "waived", {"--waivers", waivers});
  EXPECT_EQ(judged.exitCode, 0) << judged.out << judged.err;
  EXPECT_NE(judged.out.find("ACCEPTED WITH CONCESSIONS"), std::string::npos) << judged.out;
  const auto strict = judgeUnder(given, "unwaived");
  EXPECT_NE(strict.out.find("clause B.2 is not met on 1 of 4 nodes: sim-node-0002"), std::string::npos)
      << strict.out;
}

TEST(Redact, MakesAFleetWithTheSameVerdictAndNoName) {
  const auto made = runMuster({"redact", in("run"), "--out", in("red"), "--map", in("who.map")});
  ASSERT_EQ(made.exitCode, 0) << made.err;
  struct stat info {};
  ASSERT_EQ(stat(in("who.map").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  const auto judged =
      runMuster({"fleet", in("red"), "--expect", in("red/nodes.txt"), "--out", in("red-out")});
  EXPECT_EQ(judged.exitCode, 1) << judged.out;
  EXPECT_NE(judged.out.find("REDACTED: in 4 of 4 records"), std::string::npos) << judged.out;
  EXPECT_EQ(judged.out.find("sim-node"), std::string::npos);
  for (const auto& entry : fs::recursive_directory_iterator(in("red"))) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(readWhole(entry.path()).find("sim-node"), std::string::npos) << entry.path();
    if (entry.path().filename() != "record.json") continue;
    const std::string record = entry.path().string();
    EXPECT_EQ(runMuster({"judge", record}).exitCode, runMuster({"report", record}).exitCode);
  }
}

TEST(Redact, ItsCopiesCountNeitherAsMachinesNorAsForgeries) {
  ASSERT_EQ(runMuster({"redact", in("run"), "--out", in("both/copies"), "--map", in("both.map")}).exitCode,
            0);
  fs::copy(in("run"), in("both/run"), fs::copy_options::recursive);
  fleet().write("expected.txt", "sim-node-[0000-0003]\n");
  const auto judged =
      runMuster({"fleet", in("both"), "--expect", in("expected.txt"), "--out", in("both-out")});
  EXPECT_EQ(judged.exitCode, 1);
  EXPECT_NE(judged.out.find("a redacted copy of run/sim-node-0000/record.json"), std::string::npos)
      << judged.out;
  EXPECT_NE(judged.out.find("3 accepted, 1 rejected"), std::string::npos) << judged.out;
  EXPECT_EQ(Json::parse(readWhole(in("both-out/fleet.json")))["findings"], Json::array());
  const auto kept = runMuster({"history", "add", in("both/copies"), "--db", in("history.sqlite")});
  EXPECT_EQ(kept.exitCode, 3);
  EXPECT_NE(kept.err.find("it is redacted"), std::string::npos) << kept.err;
}

/// A directory that was received may lead to what its sender cannot read.
TEST(Redact, FollowsNoLinkOutOfADirectory) {
  fs::create_directories(in("sent/n0"));
  fs::copy(fs::path(recordOf(1)).parent_path(), in("sent/n1"), fs::copy_options::recursive);
  fs::create_symlink(recordOf(0), in("sent/n0/record.json"));
  const auto made = runMuster({"redact", in("sent"), "--out", in("sent-red"), "--map", in("sent.map")});
  EXPECT_EQ(made.exitCode, 2);
  EXPECT_NE(made.err.find("cannot read it: Too many levels of symbolic links"), std::string::npos)
      << made.err;
  EXPECT_FALSE(fs::exists(in("sent-red")));
  EXPECT_EQ(runMuster({"report", in("sent"), "--format", "csv", "--out", in("sent.csv")}).exitCode, 3);
  EXPECT_EQ(readWhole(in("sent.csv")).find("sim-node-0000"), std::string::npos);
  EXPECT_EQ(runMuster({"report", in("sent/n0/record.json")}).exitCode, 0) << "a link that a person named";
}

TEST(Redact, KeepsTheMapApart) {
  const auto inside = runMuster({"redact", recordOf(0), "--out", in("r1"), "--map", in("r1/who.map")});
  EXPECT_EQ(inside.exitCode, 2);
  EXPECT_NE(inside.err.find("is inside of --out"), std::string::npos) << inside.err;
  EXPECT_FALSE(fs::exists(in("r1")));
  const auto open = fleet().write("open.map", "{\"redaction_schema\": 1}");
  fs::permissions(open, fs::perms(0644));
  const auto readable = runMuster({"redact", recordOf(0), "--out", in("r1"), "--map", open.string()});
  EXPECT_EQ(readable.exitCode, 2);
  EXPECT_NE(readable.err.find("mode 0600; found 0644"), std::string::npos) << readable.err;
}

TEST(Redact, BelievesNoMapThatOthersCouldHavePutThere) {
  const auto refuses = [&](const std::string& map) {
    const auto refused = runMuster({"redact", recordOf(0), "--out", in("r3"), "--map", map});
    EXPECT_EQ(refused.exitCode, 2);
    EXPECT_NE(refused.err.find("reading the map"), std::string::npos) << refused.err;
    EXPECT_FALSE(fs::exists(in("r3")));
  };
  const auto map = fleet().write("other.map", "{\"redaction_schema\": 1}");
  fs::permissions(map, fs::perms(0600));
  fs::create_symlink(map, in("link.map"));
  refuses(in("link.map"));
  if (chown(map.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give a file away";
  refuses(map.string());
}

/// 2,000 bytes of lists that would become more than a record may have.
TEST(Redact, LeavesNothingOfARecordThatBecomesTooLarge) {
  Json record = Json::parse(readWhole(recordOf(1)));
  record.erase("mac");
  record["inventory"]["notes"] = Json(10, "sim-node-0001," + std::string(200, 'x') + "[1-9999]");
  const auto large = fleet().write("large.json", record.dump());
  const auto small = recordOf(0);
  const auto refused = runMuster({"redact", small, large.string(), "--out", in("r2"), "--map", in("r2.map")});
  EXPECT_EQ(refused.exitCode, 2);
  EXPECT_NE(refused.err.find("a record has at most"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(in("r2")));
  EXPECT_FALSE(fs::exists(in("r2.map")));
}

/// The run folder of a host whose stage reads from these directories below "home", one case each.
std::string runOfDirectories(const std::string& name, const std::vector<std::string>& directories) {
  std::vector<std::string> quoted;
  for (const std::string& directory : directories) {
    fs::create_directories(in(name + "/home/" + directory));
    quoted.push_back('"' + in(name + "/home/" + directory) + '"');
  }
  const auto plan = fleet().write(name + "/plan.toml", fmt::format(R"(schema = 1
name = "st"
backend = "host"
sku = "host"
[[stage]]
name = "loading"
test = "storage.loading"
timeout = "1m"
params = {{ files = 100, keep_free = "16 MiB" }}
[stage.matrix]
directory = [{}]
)",
                                                                   join(quoted, ", ")));
  runMuster({"run", plan.string(), "--node-name", "gpunode-secret17", "--out", in(name + "/run"), "--plain"});
  return in(name + "/run");
}

TEST(Redact, ReplacesNamesInTheIdsOfCases) {
  const std::string run = runOfDirectories("ids", {"alicesmith/a", "alicesmith/b"});
  const std::string before = readWhole(run + "/record.json");
  ASSERT_NE(before.find("alicesmith"), std::string::npos) << before.substr(0, 200);
  const auto made = runMuster({"redact", run, "--out", in("ids/red"), "--map", in("ids/who.map")});
  ASSERT_EQ(made.exitCode, 0) << made.err;
  const std::string record = in("ids/red/0001-host0001/record.json");
  EXPECT_EQ(readWhole(record).find("alicesmith"), std::string::npos);
  EXPECT_EQ(runMuster({"judge", record}).exitCode, runMuster({"judge", run + "/record.json"}).exitCode);
}

/// Two spellings of one name make one id of two cases: what is left is another record than before.
TEST(Redact, LeavesNothingWhereARecordNoLongerSaysTheSame) {
  const std::string run = runOfDirectories("clash", {"alicesmith/a", "AliceSmith/a"});
  const auto refused = runMuster({"redact", run, "--out", in("clash/red"), "--map", in("clash/who.map")});
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_NE(refused.err.find("once redacted, its check results would not match its samples: stage loading"),
            std::string::npos)
      << refused.err;
  EXPECT_FALSE(fs::exists(in("clash/red")));
  EXPECT_FALSE(fs::exists(in("clash/who.map")));
}

TEST(Redact, SaysWhichWordsOfTheMapAreNotReplaced) {
  const auto redact = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"redact", recordOf(0), "--out", in(out), "--map", in("word.map")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return runMuster(arguments);
  };
  EXPECT_EQ(redact("w1", {"--word", "falcon"}).out.find("note:"), std::string::npos);
  const auto without = redact("w2", {});
  EXPECT_NE(without.out.find("note: 1 word of the map not replaced"), std::string::npos) << without.out;
}

TEST(Compare, FindsNothingBetweenAFleetAndItself) {
  const auto same = runMuster({"compare", in("run"), in("run")});
  EXPECT_EQ(same.exitCode, 0) << same.out;
  size_t pairs = 0;
  for (size_t at = 0; (at = same.out.find("\n0 metrics changed", at)) != std::string::npos; ++at) ++pairs;
  EXPECT_EQ(pairs, 4u) << same.out;
}

TEST(Compare, TellsAShiftOfTheFleetFromThatOfANode) {
  FleetRun before, after;
  std::string faults = testing::slowFault("node = 2\ndevice = 5", 0.8);
  for (int node = 0; node < 8; ++node)
    faults += testing::slowNode(fmt::format("node = {}", node), node == 1 ? 0.7 : 0.95);
  before.simulate(8, "");
  after.simulate(8, faults);
  const auto compared =
      runMuster({"compare", (before.path() / "run").string(), (after.path() / "run").string()});
  EXPECT_EQ(compared.exitCode, 1);
  EXPECT_NE(compared.out.find("SIMULATED 8 nodes before, 8 after, 8 on both sides"), std::string::npos)
      << compared.out;
  const size_t shifts = compared.out.find("Metrics of the whole fleet beyond the noise");
  const size_t odd = compared.out.find("Nodes that changed otherwise than the fleet");
  ASSERT_LT(shifts, odd) << compared.out;
  ASSERT_NE(odd, std::string::npos) << compared.out;
  EXPECT_NE(compared.out.find("WORSE   gemm compute.gemm_throughput", shifts), std::string::npos)
      << compared.out;
  EXPECT_NE(compared.out.find("WORSE   sim-node-0001 gemm compute.gemm_throughput", odd), std::string::npos)
      << compared.out;
  EXPECT_NE(compared.out.find("WORSE   sim-node-0002 gpu5 gemm compute.gemm_throughput", odd),
            std::string::npos)
      << compared.out;
  EXPECT_EQ(compared.out.find("sim-node-0003 gemm", odd), std::string::npos) << compared.out;
  EXPECT_NE(compared.out.find("\nVerdicts\n  sim-node-0001: accepted -> rejected\n"), std::string::npos)
      << compared.out;
}

TEST(Compare, NamesWhatOneSideAloneMeasured) {
  const std::string plan = testing::kFleetPlan;
  const auto peer = fleet().write("peer.toml", plan.substr(0, plan.rfind("[[stage]]\n")));
  runMuster(
      {"run", peer.string(), "--simulate", in("scene.toml"), "--nodes", "4", "--plain", "--out", in("peer")});
  const auto before = runMuster({"compare", in("run"), in("peer")});
  EXPECT_NE(before.out.find("\nMetrics only before\n  gemm: "), std::string::npos) << before.out;
  EXPECT_EQ(before.out.find("\nMetrics only after\n"), std::string::npos) << before.out;
  const auto after = runMuster({"compare", in("peer"), in("run")});
  EXPECT_NE(after.out.find("\nMetrics only after\n  gemm: "), std::string::npos) << after.out;
  const auto json = parseJson(runMuster({"compare", in("run"), in("peer"), "--json"}).out);
  ASSERT_TRUE(json.ok());
  EXPECT_FALSE(json->value("figures_only_before", Json::array()).empty());
  EXPECT_TRUE(json->value("figures_only_after", Json::array({1})).empty());
}

TEST(Compare, RefusesFleetsWithoutACommonNode) {
  fs::create_directories(in("one"));
  fs::create_directories(in("two"));
  for (const auto& [folder, node] : {std::pair{"one", 0}, {"one", 1}, {"two", 2}, {"two", 3}})
    fs::copy(in(fmt::format("run/sim-node-{:04}", node)), in(fmt::format("{}/{}", folder, node)),
             fs::copy_options::recursive);
  const auto compared = runMuster({"compare", in("one"), in("two")});
  EXPECT_EQ(compared.exitCode, 2);
  EXPECT_NE(compared.err.find("no node has a record on both sides"), std::string::npos) << compared.err;
}

TEST(Compare, MissesANodeThatWasAccepted) {
  fs::create_directories(in("some"));
  for (const int node : {0, 2})
    fs::copy(in(fmt::format("run/sim-node-{:04}", node)), in(fmt::format("some/{}", node)),
             fs::copy_options::recursive);
  const auto fewer = runMuster({"compare", in("run"), in("some")});
  EXPECT_EQ(fewer.exitCode, 1) << fewer.out;
  EXPECT_NE(fewer.out.find("Only before: sim-node-0001, sim-node-0003"), std::string::npos) << fewer.out;
  EXPECT_EQ(runMuster({"compare", in("some"), in("run")}).exitCode, 0);
}

/// The record of node 2 with three million packed samples of gemm.
std::string packedRecord() {
  Json record = Json::parse(readWhole(recordOf(2)));
  for (Json& stage : record["stages"]) {
    if (stage["name"] != "gemm") continue;
    Json many;
    for (const Json& one : stage["measurements"])
      if (one["metric"] == "compute.gemm_warmup") many = one;
    for (const char* key : {"samples", "exponent", "device", "rank", "rows"}) many.erase(key);
    many["informational"] = true;
    const Json pack = {{"n", 1000}, {"value", 0}};
    Json rows;
    for (int i = 0; i < 3000; ++i) {
      rows["labels"].push_back({{"x", std::to_string(i)}});
      rows["rank"].push_back(0);
      rows["device"].push_back("gpu0");
      rows["samples"].push_back(pack);
    }
    many.erase("labels");
    many["rows"] = rows;
    stage["measurements"].push_back(many);
  }
  fs::create_directories(in("packed"));
  std::ofstream(in("packed/record.json")) << record.dump();
  return in("packed/record.json");
}

TEST(ReportFormat, LeavesOutWhatIsTooLongAndSaysSo) {
  const std::string packed = packedRecord();
  const auto csv = runMuster({"report", packed, "--format", "csv", "--out", in("packed/csv")});
  EXPECT_EQ(csv.exitCode, 1);
  EXPECT_NE(csv.err.find("entries are left out"), std::string::npos) << csv.err;
  EXPECT_LT(fs::file_size(in("packed/csv")), 256u << 20);
  const auto rma = runMuster({"rma", packed, "--device", "gpu5", "--out", in("packed/rma")});
  EXPECT_EQ(rma.exitCode, 0);
  EXPECT_NE(rma.err.find("samples.csv: "), std::string::npos) << rma.err;
  EXPECT_LT(fs::file_size(in("packed/rma/samples.csv")), 256u << 20);
  fs::remove_all(in("packed"));
}

TEST(Rma, CollectsWhatConcernsTheDevice) {
  const auto made = runMuster({"rma", recordOf(2), "--device", "gpu5", "--out", in("rma")});
  ASSERT_EQ(made.exitCode, 0) << made.err;
  EXPECT_NE(readWhole(in("rma/findings.md")).find("--only gemm --device gpu5"), std::string::npos);
  const Json device = Json::parse(readWhole(in("rma/device.json")));
  EXPECT_EQ(device["device"]["id"], "gpu5");
  EXPECT_NE(readWhole(in("rma/findings.md")).find(device["device"]["serial"].get<std::string>()),
            std::string::npos);
  const std::string checks = readWhole(in("rma/checks.csv"));
  EXPECT_NE(checks.find(",fail,"), std::string::npos);
  for (const char* gpu : {",gpu0,", ",gpu5,"})
    for (const char* file : {"rma/samples.csv", "rma/telemetry.csv"})
      EXPECT_NE(readWhole(in(file)).find(gpu), std::string::npos) << gpu << " in " << file;
  ASSERT_FALSE(fs::is_empty(in("rma/artifacts")));
  // What its sender cannot read goes to no vendor, even if its digest is known.
  const fs::path run = fs::path(recordOf(2)).parent_path();
  fs::copy(run, in("led"), fs::copy_options::recursive);
  fs::remove_all(in("led/artifacts"));
  fs::create_directory_symlink(run / "artifacts", in("led/artifacts"));
  const auto led = runMuster({"rma", in("led/record.json"), "--device", "gpu5", "--out", in("rma-led")});
  EXPECT_EQ(led.exitCode, 0) << led.err;
  EXPECT_NE(led.out.find("not copied: artifacts/"), std::string::npos) << led.out;
  EXPECT_FALSE(fs::exists(in("rma-led/artifacts")));
  ASSERT_EQ(runMuster({"rma", recordOf(2), "--device", "gpu1", "--out", in("rma1")}).exitCode, 0);
  EXPECT_TRUE(readWhole(in("rma1/findings.md")).starts_with("**No check of gpu1 failed.**"));
  EXPECT_EQ(runMuster({"rma", recordOf(2), "--device", "gpu9", "--out", in("rma9")}).exitCode, 2);
  EXPECT_EQ(runMuster({"rma", recordOf(2), "--device", "gpu5", "--out", in("rma")}).exitCode,
            2);  // not empty
}

}  // namespace
}  // namespace muster

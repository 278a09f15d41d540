// SPDX-License-Identifier: Apache-2.0
// The command line: help that teaches, lists, judging and rendering records again, the event stream,
// completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/core/json.h"
#include "runner/core/text.h"
#include "runner/system/files.h"
#include "tests/e2e/muster.h"
#include "tests/runner/import/import_samples.h"

namespace muster::testing {
namespace {

TEST(Cli, HelpTeachesByExample) {
  const auto result = runMuster({"--help"});
  EXPECT_EQ(result.exitCode, 0);
  for (const char* part : {"muster run plans/quickstart.toml", "--resume", "Exit codes"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part;
}

TEST(Cli, VersionNamesTheBuild) {
  const auto result = runMuster({"--version"});
  EXPECT_EQ(result.exitCode, 0);
  EXPECT_EQ(result.out.rfind("muster ", 0), 0u) << result.out;
}

/// Records are compared by it: it must not be that of the day on which somebody configured the build.
TEST(Cli, VersionNamesTheCommitThatWasBuilt) {
  const auto head = runProcess({"git", "-C", sourceDir().string(), "rev-parse", "--short=12", "HEAD"});
  if (head.exitCode != 0) GTEST_SKIP() << "these sources are no git repository";
  EXPECT_NE(runMuster({"--version"}).out.find("+" + head.out.substr(0, 12)), std::string::npos) << head.out;
}

TEST(Cli, ListsPluginsWithTheirTests) {
  const auto result = runMuster({"plugins"});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  for (const char* name : {"compute", "memory", "env"}) EXPECT_NE(result.out.find(name), std::string::npos);
  EXPECT_TRUE(result.err.empty()) << result.err;
  const auto compute = runMuster({"plugins", "compute"});
  EXPECT_NE(compute.out.find("compute.gemm_throughput"), std::string::npos) << compute.out;
  EXPECT_EQ(runMuster({"plugins", "compte"}).exitCode, 2);
}

TEST(Cli, ListsProfilesWithTheirSources) {
  const auto result = runMuster({"skus"});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  for (const char* name : {"h100-sxm5-80gb", "h200-sxm", "a100-sxm4-80gb", "b200", "host"})
    EXPECT_NE(result.out.find(name), std::string::npos) << name;
  EXPECT_NE(runMuster({"skus", "h100-sxm5-80gb"}).out.find("source:"), std::string::npos);
}

TEST(Cli, EveryReadyPlanIsGood) {
  std::vector<std::string> arguments = {"check"};
  for (const auto& entry : std::filesystem::directory_iterator(distDir() / "share/muster/plans"))
    if (entry.is_regular_file() && entry.path().extension() != ".md")
      arguments.push_back(entry.path().string());
  ASSERT_GE(arguments.size(), 6u);
  const auto result = runMuster(arguments);
  EXPECT_EQ(result.exitCode, 0) << result.err;
}

TEST(Cli, CompletionWorksInBash) {
  const std::string script =
      "source <(\"$0\" completion bash); COMP_WORDS=(muster ju); COMP_CWORD=1; _muster; echo ${COMPREPLY[@]}";
  const auto result = runProcess({"bash", "-c", script, (distDir() / "bin/muster").string()});
  EXPECT_EQ(std::string(trim(result.out)), "judge") << result.err;
}

class JudgeAgain : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto result =
        runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-healthy"), "--out", out()});
    ASSERT_EQ(result.exitCode, 0) << result.out << result.err;
  }
  std::string out() { return (dir_.path() / "run").string(); }
  std::string record() { return out() + "/record.json"; }
  TempDir dir_;
};

TEST_F(JudgeAgain, GivesTheSameOutcomeUnderTheSameProfile) {
  const auto same = runMuster({"judge", record()});
  EXPECT_EQ(same.exitCode, 0) << same.out << same.err;
  const auto named =
      runMuster({"judge", record(), "--sku", plan("skus/h100-sxm5-80gb.toml"), "--out", out() + "-again"});
  EXPECT_EQ(named.exitCode, 0) << named.out << named.err;
  EXPECT_EQ(recordIn(out() + "-again").accounting.counts, recordIn(out()).accounting.counts);
  EXPECT_TRUE(recordIn(out()).rejudged.empty());
  const Record again = recordIn(out() + "-again");
  ASSERT_EQ(again.rejudged.size(), 1u) << "a re-judged record says so";
  EXPECT_EQ(again.rejudged[0].fromSha256, sha256Hex(readWhole(record())));
  EXPECT_EQ(again.rejudged[0].profile, "h100-sxm5-80gb");
  EXPECT_NE(named.out.find("RE-JUDGED"), std::string::npos) << named.out;
  const auto third = runMuster({"judge", out() + "-again/record.json", "--out", out() + "-third"});
  EXPECT_EQ(third.exitCode, 0) << third.err;
  EXPECT_EQ(recordIn(out() + "-third").rejudged.size(), 2u);
}

/// A run would count these devices as not of the profile: other limits do not let them pass.
TEST_F(JudgeAgain, RefusesTheProfileOfOtherDevices) {
  for (const char* other : {"a100-sxm4-80gb", "h200-sxm", "host"}) {
    const auto result = runMuster({"judge", record(), "--sku", plan("skus/" + std::string(other) + ".toml")});
    EXPECT_EQ(result.exitCode, 2) << result.out;
    EXPECT_THAT(result.err, ::testing::HasSubstr("is not a " + std::string(other) + ": "));
  }
}

/// Imported results have no inventory: what the profile says of a node's devices holds for them all the same.
TEST(JudgeImported, GivesWhatTheImportGaveUnderTheSameProfile) {
  TempDir dir;
  copyIncluded("skus", dir.path());
  const auto profile = dir.write("p.toml", readWhole(plan("skus/h100-sxm5-80gb.toml")) + R"(
[[expect]]
metric = "collective.large_message_bus_bandwidth"
cv_max = "5%"
source = "a test"
remedy = "none"
[[expect]]
metric = "collective.large_message_bus_bandwidth"
where = { nodes = "2" }
of_peak = "50%"
source = "a test"
remedy = "none"
)");
  const auto table = [](int ranks, double rate, int hosts) {
    NcclTable made;
    made.fewest = 2l << 30;
    made.ranks = ranks;
    made.rate = rate;
    std::string text = made.text();
    size_t at = 0;
    for (int rank = 0; rank < ranks && (at = text.find("on      node1", at + 1)) != text.npos; ++rank)
      if (hosts == 2 && rank % 2 == 1) text[at + 12] = '2';
    return text;
  };
  for (const auto& [ranks, rate, hosts, exitCode] : {std::tuple(8, 300.0, 1, 0),
                                                     {8, 250.0, 1, 1},
                                                     {7, 300.0, 1, 1},
                                                     {8, 300.0, 2, 1},
                                                     {16, 200.0, 2, 0}}) {
    const std::string run = (dir.path() / fmt::format("run-{}-{}-{}", ranks, rate, hosts)).string();
    const auto imported = runMuster({"import", dir.write("t.txt", table(ranks, rate, hosts)).string(),
                                     "--sku", profile.string(), "--out", run});
    EXPECT_EQ(imported.exitCode, exitCode) << run << imported.out << imported.err;
    const auto judged =
        runMuster({"judge", run + "/record.json", "--sku", profile.string(), "--out", run + "-again"});
    EXPECT_EQ(judged.exitCode, exitCode) << run << judged.out << judged.err;
    EXPECT_EQ(recordIn(run + "-again").accounting.counts, recordIn(run).accounting.counts) << judged.out;
    EXPECT_EQ(recordIn(run + "-again").peaks, recordIn(run).peaks) << run;
  }
}

TEST_F(JudgeAgain, RejectsUnderAHarderProfile) {
  std::string profile = readWhole(plan("skus/h100-sxm5-80gb.toml"));
  profile +=
      "\n[[expect]]\nmetric = \"compute.gemm_throughput\"\nmin = \"5000 TFLOP/s\"\nsource = \"a "
      "test\"\nremedy = \"none\"\n";
  copyIncluded("skus", dir_.path());
  const auto file = dir_.write("hard.toml", profile);
  const auto result = runMuster({"judge", record(), "--sku", file.string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_EQ(recordIn(out()).exitCode, 0) << "the record itself is never changed";
}

TEST_F(JudgeAgain, RendersTheReportsAgain) {
  const auto result = runMuster({"report", record(), "--out", out() + "-report"});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_EQ(readWhole(out() + "-report/report.html"), readWhole(out() + "/report.html"));
}

TEST_F(JudgeAgain, PrintsWhatPeopleSayAboutTheAcceptance) {
  const auto file = dir_.write("acceptance.toml", "schema = 1\n[document]\nnumber = \"ATR-4711\"\n").string();
  const auto result = runMuster({"report", record(), "--out", out() + "-report", "--acceptance", file});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_NE(readWhole(out() + "-report/report.html").find("ATR-4711"), std::string::npos);
}

TEST_F(JudgeAgain, RefusesAMistakenAcceptanceDocument) {
  const auto file = dir_.write("acceptance.toml", "schema = 1\n[document]\nnumbr = \"7\"\n").string();
  const auto wrong = runMuster({"report", record(), "--out", out() + "-report", "--acceptance", file});
  EXPECT_EQ(wrong.exitCode, 2);
  EXPECT_NE(wrong.err.find("acceptance.toml:3:1"), std::string::npos) << wrong.err;
  const auto nowhere = runMuster({"report", record(), "--acceptance", file});
  EXPECT_EQ(nowhere.exitCode, 2);
  EXPECT_NE(nowhere.err.find("--out DIR"), std::string::npos) << nowhere.err;
}

TEST(Cli, EventsAreOneJsonObjectALine) {
  TempDir dir;
  const auto result =
      runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-one-slow-gpu"), "--out",
                 (dir.path() / "run").string(), "--json"});
  EXPECT_EQ(result.exitCode, 1) << result.err;
  std::vector<std::string> events;
  for (const std::string& line : split(std::string(trim(result.out)), '\n')) {
    const auto json = parseJson(line);
    ASSERT_TRUE(json.ok()) << line;
    events.push_back(json->value("event", ""));
  }
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events.front(), "run_started");
  EXPECT_EQ(events.back(), "run_ended");
}

}  // namespace
}  // namespace muster::testing

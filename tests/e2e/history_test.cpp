// SPDX-License-Identifier: Apache-2.0
// `muster history` as a user runs it: runs are kept once, a slow GPU is seen beside the last acceptance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runner/core/json.h"
#include "runner/record/record_check.h"
#include "runner/system/files.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class History : public ::testing::Test {
 protected:
  /// A simulated run, its noise by `seed`; where it lies. A scenario's name makes the serials of its parts,
  /// so it is the same in all: these are runs of one machine.
  std::string run(const std::string& scene, int seed) {
    std::string out = (dir_.path() / (scene + std::to_string(seed))).string();
    std::string text = readFile(scenario(scene)).value();
    text.replace(text.find("name = \"" + scene), ("name = \"" + scene).size(), "name = \"machine");
    const auto result = runMuster({"run", plan("node-quick.toml"), "--simulate",
                                   writeScenario(dir_.path() / (scene + ".toml"), text).string(), "--seed",
                                   std::to_string(seed), "--out", out});
    EXPECT_TRUE(result.exitCode == 0 || result.exitCode == 1) << result.out << result.err;
    return out;
  }
  ProcessResult history(const std::vector<std::string>& arguments) {
    ProcessOptions options;
    options.environment["MUSTER_HISTORY"] = database();
    return runMuster(std::vector<std::string>{"history"} + arguments, options);
  }
  std::string database() { return (dir_.path() / "state/history.sqlite").string(); }
  TempDir dir_;
};

TEST_F(History, KeepsARunOnceAndComparesItWithTheLastAcceptance) {
  const std::string good = run("h100x8-healthy", 1), slow = run("h100x8-one-slow-gpu", 2);
  const auto added = history({"add", good, slow});
  EXPECT_EQ(added.exitCode, 0) << added.out << added.err;
  EXPECT_THAT(added.out, HasSubstr("2 added, 0 already known"));
  EXPECT_THAT(history({"add", good + "/record.json"}).out, HasSubstr("0 added, 1 already known"));
  ProcessOptions beside;
  beside.folder = dir_.path();
  beside.environment["MUSTER_HISTORY"] = database();
  EXPECT_THAT(runMuster({"history", "add", "h100x8-healthy1"}, beside).out,
              HasSubstr("0 added, 1 already known"));

  const auto list = history({"list"});
  EXPECT_THAT(list.out, HasSubstr("accepted"));
  EXPECT_THAT(list.out, HasSubstr("rejected"));
  EXPECT_THAT(list.out, HasSubstr("SIMULATED"));
  EXPECT_THAT(history({"show", "2"}).out, HasSubstr("gpu5"));
  const auto shown = parseJson(history({"show", "2", "--json"}).out);
  ASSERT_TRUE(shown.ok());
  const Json figures = (*shown)["figures"];
  EXPECT_TRUE(std::any_of(figures.begin(), figures.end(), [](const Json& f) { return f["cv"] > 0; }));

  const auto compared = history({"compare", "2"});
  EXPECT_EQ(compared.exitCode, 1) << compared.out << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("WORSE   gpu5 gemm compute.gemm_throughput"));
  EXPECT_THAT(compared.out, Not(HasSubstr(" : ")));  // a figure without labels
  EXPECT_EQ(history({"compare", "2", "2"}).exitCode, 0);
  ASSERT_EQ(history({"add", run("h100x8-ecc-burst", 3)}).exitCode, 0);
  const auto counted = history({"compare", "1", "3"});
  EXPECT_EQ(counted.exitCode, 1) << "errors are counts, which are not compared: " << counted.out;
  EXPECT_THAT(counted.out, HasSubstr("the later run is rejected: muster history show 3"));

  const auto json = parseJson(history({"compare", "1", "2", "--json"}).out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["before"]["number"], 1);
  EXPECT_TRUE((*json)["figures"][0]["worse"]);
}

/// Jobs of one node that measure different things, one for itself and one with others, are not compared.
TEST_F(History, ComparesWithWhatMeasuredTheSame) {
  const auto environment = [&](int seed) {
    const std::string out = (dir_.path() / ("environment" + std::to_string(seed))).string();
    const auto made = runMuster({"run", plan("environment.toml"), "--set", "backend=cuda", "--sku", "auto",
                                 "--simulate", (dir_.path() / "h100x8-healthy.toml").string(), "--seed",
                                 std::to_string(seed), "--out", out});
    EXPECT_EQ(made.exitCode, 0) << made.out << made.err;
    return out;
  };
  std::vector<std::string> before = {run("h100x8-healthy", 1)};
  before.push_back(environment(2));
  std::vector<std::string> after = {run("h100x8-one-slow-gpu", 3)};
  after.push_back(environment(4));
  ASSERT_EQ(history({"add", before[0], before[1], after[0], after[1]}).exitCode, 0);
  const auto kept = history({"compare", "3"});
  EXPECT_EQ(kept.exitCode, 1) << kept.out << kept.err;
  EXPECT_THAT(kept.out, HasSubstr("WORSE   gpu5 gemm compute.gemm_throughput"));
  EXPECT_EQ(history({"compare", "4"}).exitCode, 0);
  EXPECT_THAT(history({"compare", "2"}).err, HasSubstr("that measured the same"));
  for (const auto& [side, runs] : {std::pair("before", before), std::pair("after", after)}) {
    std::filesystem::create_directories(dir_.path() / side);
    for (const std::string& one : runs)
      std::filesystem::copy(one, dir_.path() / side / std::filesystem::path(one).filename(),
                            std::filesystem::copy_options::recursive);
  }
  const auto both = [&](const char* a, const char* b) {
    return runMuster({"compare", (dir_.path() / a).string(), (dir_.path() / b).string()});
  };
  const auto compared = both("before", "after");
  EXPECT_EQ(compared.exitCode, 1) << compared.out << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("accepted -> rejected"));
  EXPECT_EQ(both("before", "before").exitCode, 0);
  std::filesystem::remove_all(dir_.path() / "after" / "h100x8-one-slow-gpu3");
  EXPECT_EQ(both("before", "after").exitCode, 1) << "of what was accepted one part is gone";
}

/// A run that found no device measured nothing, so it is like no other one: the newest of its node counts.
TEST_F(History, AnAcceptedRunDoesNotHideANewerOneWithoutDevices) {
  const auto put = [&](const std::string& made, const std::string& to, double days) {
    Record record = readRecord(made + "/record.json").value();
    record.started += days * 86400;
    record.finished += days * 86400;
    for (StageRecord& stage : record.stages) stage.started += days * 86400;
    record.runId = runIdOf(record.node, record.started);
    std::filesystem::create_directories(dir_.path() / to);
    EXPECT_TRUE(writeRecord(recordText(record), dir_.path() / to / "record.json").ok());
  };
  const std::string good = run("h100x8-healthy", 1);
  std::string text = readFile(dir_.path() / "h100x8-healthy.toml").value();
  for (int device = 0; device < 8; ++device)
    text += fmt::format("[[fault]]\nkind = \"missing\"\ndevice = {}\n", device);
  const std::string none = (dir_.path() / "none").string();
  EXPECT_EQ(runMuster({"run", plan("node-quick.toml"), "--set", "sku=h100-sxm5-80gb", "--simulate",
                       writeScenario(dir_.path() / "none.toml", text).string(), "--out", none})
                .exitCode,
            1);
  put(good, "before/good", -3);
  put(good, "broken/good", -2), put(none, "broken/none", -1);
  put(good, "fixed/good", -1), put(none, "fixed/none", -2);
  const auto compare = [&](const std::string& after) {
    return runMuster({"compare", (dir_.path() / "before").string(), (dir_.path() / after).string()});
  };
  const auto broken = compare("broken");
  EXPECT_EQ(broken.exitCode, 1) << broken.out << broken.err;
  EXPECT_THAT(broken.out, HasSubstr("Only after: a run of"));
  EXPECT_THAT(broken.out, HasSubstr(", rejected)"));
  const auto fixed = compare("fixed");
  EXPECT_EQ(fixed.exitCode, 0) << fixed.out << fixed.err;
}

TEST_F(History, WarnsOfADateThatAClockMayHaveGotWrong) {
  const std::string now = run("h100x8-healthy", 1);
  const auto dated = [&](double days) {
    auto record = readRecord(now + "/record.json");
    EXPECT_TRUE(record.ok());
    record->started += days * 86400;
    record->finished += days * 86400;
    for (StageRecord& stage : record->stages) stage.started += days * 86400;
    record->runId = runIdOf(record->node, record->started);
    const auto path = dir_.path() / ("dated" + std::to_string(static_cast<int>(days))) / "record.json";
    std::filesystem::create_directories(path.parent_path());
    EXPECT_TRUE(writeRecord(recordText(*record), path).ok());
    return path.string();
  };
  EXPECT_THAT(history({"add", dated(-1000)}).err, Not(HasSubstr("warning")));
  EXPECT_THAT(history({"add", now}).err, Not(HasSubstr("warning")));
  const auto old = history({"add", dated(-9000), dated(-8000)});
  EXPECT_EQ(old.exitCode, 0) << old.err;
  EXPECT_THAT(old.err, HasSubstr("warning: 2 of the added runs have an odd date; one of "));
  EXPECT_THAT(old.err, HasSubstr(", before run #2 of "));
  EXPECT_THAT(history({"add", dated(2)}).err, HasSubstr("in the future"));
  EXPECT_THAT(history({"add", dated(-8000)}).err, Not(HasSubstr("warning"))) << "it is known";
}

TEST_F(History, SeesAGpuThatBecameSlow) {
  for (int i = 1; i <= 4; ++i) ASSERT_EQ(history({"add", run("h100x8-healthy", i)}).exitCode, 0);
  const auto healthy = history({"trend"});
  EXPECT_EQ(healthy.exitCode, 0) << healthy.out << healthy.err;
  for (int i = 5; i <= 6; ++i) ASSERT_EQ(history({"add", run("h100x8-one-slow-gpu", i)}).exitCode, 0);
  const auto trend = history({"trend", "--node", "sim-node-0000"});
  EXPECT_THAT(trend.out, HasSubstr("series"));
  EXPECT_EQ(trend.exitCode, 1) << trend.out;
  EXPECT_THAT(trend.out, HasSubstr("between run #4"));
  EXPECT_THAT(trend.out, HasSubstr("gpu5"));
}

TEST_F(History, IsThinnedByARuleOnlyWhenToldTo) {
  const std::string first = run("h100x8-healthy", 1);
  ASSERT_EQ(history({"add", first, run("h100x8-healthy", 2), run("h100x8-one-slow-gpu", 3)}).exitCode, 0);
  EXPECT_THAT(history({"prune"}).out, HasSubstr("removes 0 runs"));
  const std::vector<std::string> rule = {"prune", "--keep-days", "0",   "--keep-newest",
                                         "1",     "--every",     "1000"};
  const auto dry = history(rule);
  EXPECT_EQ(dry.exitCode, 0) << dry.err;
  for (const char* line :
       {"3 runs of 1 nodes", "keeps 2 runs", "1  older, but among the newest 1 of their node",
        "1  older, the last acceptance", "removes 1 runs", "use --apply to remove"})
    EXPECT_THAT(dry.out, HasSubstr(line));
  EXPECT_THAT(history({"list"}).out, HasSubstr("#1"));

  const auto applied = history(rule + std::vector<std::string>{"--apply", "--json"});
  const auto json = parseJson(applied.out);
  ASSERT_TRUE(json.ok()) << applied.out << applied.err;
  EXPECT_EQ((*json)["removed"], Json::array({1}));
  EXPECT_TRUE((*json)["applied"]);
  EXPECT_THAT(history({"list"}).out, Not(HasSubstr("#1 ")));
  EXPECT_THAT(history({"add", first}).out, HasSubstr("0 added, 1 already known"));
  EXPECT_EQ(history({"compare", "3"}).exitCode, 1) << "its node's last acceptance was kept";
  EXPECT_TRUE(std::filesystem::exists(first + "/record.json"));
  EXPECT_THAT(history({"prune", "--help"}).out, HasSubstr("muster history prune --apply"));
  EXPECT_EQ(history({"prune", "--every", "0"}).exitCode, 2);
}

TEST_F(History, NamesARecordThatCannotBeReadAndKeepsTheRest) {
  const std::string good = run("h100x8-healthy", 1);
  const std::string torn = dir_.write("torn/record.json", "{\"schema\": 1, \"acc").string();
  const auto added = history({"add", torn, good});
  EXPECT_EQ(added.exitCode, 3);
  EXPECT_THAT(added.out, HasSubstr("1 added"));
  EXPECT_THAT(added.err, HasSubstr("torn/record.json: not added"));
}

/// One number of a record that no limit is about must not make its run unreadable.
TEST_F(History, KeepsNoNumberThatNoMeasurementGives) {
  Record record = readRecord(run("h100x8-healthy", 1) + "/record.json").value();
  size_t changed = 0;
  for (StageRecord& stage : record.stages)
    for (Measurement& measured : stage.measurements)
      if (measured.metric == "env.power" && measured.informational) {
        for (double& sample : measured.samples) sample = 1e300;
        ++changed;
      }
  ASSERT_GT(changed, 0u);
  std::filesystem::create_directories(dir_.path() / "odd");
  ASSERT_TRUE(writeRecord(recordText(record), dir_.path() / "odd/record.json").ok());
  const auto added = history({"add", (dir_.path() / "odd").string()});
  EXPECT_EQ(added.exitCode, 0) << added.err;
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"trend"}, {"show", "1"}, {"compare", "1", "1"}}) {
    const auto read = history(command);
    EXPECT_EQ(read.exitCode, 0) << read.err;
  }
}

TEST_F(History, NamesARunThatCannotBeReadAndKeepsTheOthers) {
  const std::string good = run("h100x8-healthy", 1), other = run("h100x8-healthy", 2);
  const std::filesystem::path bad = dir_.path() / "slurm-run";
  std::filesystem::create_directories(bad / "records");
  std::filesystem::rename(other, bad / "records/node1");
  dir_.write("slurm-run/slurm.json", "{\"schema\"");
  const auto alone = history({"add", bad.string()});
  EXPECT_EQ(alone.exitCode, 2) << alone.out << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("slurm-run/slurm.json"));
  for (const auto& named : {std::vector<std::string>{bad.string(), good}, {dir_.path().string()}}) {
    const auto added = history(std::vector<std::string>{"add"} + named);
    EXPECT_EQ(added.exitCode, 3) << added.out << added.err;
    EXPECT_THAT(added.out, AnyOf(HasSubstr("1 added"), HasSubstr("1 already known")));
    EXPECT_THAT(added.err, ContainsRegex("records/node1/record.json: not added: .*slurm.json"));
  }
}

TEST_F(History, LeavesADamagedFileAsItIs) {
  const std::string junk(5000, '#');
  dir_.write("state/history.sqlite", junk);
  const auto added = history({"add", run("h100x8-healthy", 1)});
  EXPECT_EQ(added.exitCode, 2);
  EXPECT_THAT(added.err, HasSubstr("history.sqlite"));
  EXPECT_EQ(readFile(database()).value(), junk);
}

TEST_F(History, SaysHowToBegin) {
  const auto list = history({"list"});
  EXPECT_EQ(list.exitCode, 2);
  EXPECT_THAT(list.err, HasSubstr("muster history add"));
  EXPECT_THAT(history({"--help"}).out, HasSubstr("muster history compare 12"));
  EXPECT_EQ(history({"compare", "1"}).exitCode, 2);
}

}  // namespace
}  // namespace muster::testing

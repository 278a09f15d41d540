// SPDX-License-Identifier: Apache-2.0
// `muster import`: other tools' results under Muster's limits, beside what the tools say, and apart from what
// Muster measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "runner/core/json.h"
#include "tests/e2e/muster.h"
#include "tests/runner/import/import_samples.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// As of a healthy node: its largest size is the one of the profile's limit.
NcclTable healthy() {
  NcclTable table;
  table.fewest = 2l << 30;
  return table;
}

class Imported : public ::testing::Test {
 protected:
  ProcessResult import(const std::string& text,
                       const std::vector<std::string>& more = {"--sku", "h100-sxm5-80gb"}) {
    const fs::path file = dir_.write("results.txt", text);
    return runMuster(std::vector<std::string>{"import", file.string()} + more);
  }
  /// Imports into out().
  ProcessResult kept(const std::string& text) {
    return import(text, {"--sku", "h100-sxm5-80gb", "--out", out().string()});
  }
  [[nodiscard]] fs::path out() const { return dir_.path() / "runs/imported"; }
  TempDir dir_;
};

/// Anybody may leave a file of a profile's name in a shared folder.
TEST_F(Imported, AProfilesNameIsNoFileOfThisFolder) {
  const fs::path file = dir_.write("results.txt", healthy().text());
  dir_.write("h100-sxm5-80gb", "schema = 1\nname = \"h100-sxm5-80gb\"\nlax = true\n");
  ProcessOptions here;
  here.folder = dir_.path();
  const auto result = runMuster({"import", file.string(), "--sku", "h100-sxm5-80gb"}, here);
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const auto named = runMuster({"import", file.string(), "--sku", "./h100-sxm5-80gb"}, here);
  EXPECT_EQ(named.exitCode, 2) << "a path is a file: " << named.out;
  EXPECT_THAT(named.err, HasSubstr("lax"));
}

TEST_F(Imported, ValuesAreJudgedByTheProfile) {
  const auto good = kept(healthy().text());
  EXPECT_EQ(good.exitCode, 0) << good.out << good.err;
  EXPECT_THAT(good.out, HasSubstr(" IMPORTED "));
  EXPECT_THAT(good.out, HasSubstr("The tool said: Out of bounds values: 0 OK"));
  const Record record = recordIn(out());
  ASSERT_EQ(record.imported.size(), 1u);
  EXPECT_EQ(record.imported[0].tool, "nccl-tests 2.17.6, NCCL 2.28.9");
  EXPECT_EQ(record.imported[0].differs, "");
  EXPECT_EQ(record.imported[0].sha256.size(), 64u);
  EXPECT_EQ(record.stages.at(0).outcome, Outcome::kPass);
}

TEST_F(Imported, ASlowResultIsRejectedThoughItsToolSaysOk) {
  NcclTable slow = healthy();
  slow.rate = 250;
  const auto result = kept(slow.text());
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("collective.large_message_bus_bandwidth"));
  EXPECT_THAT(result.out, HasSubstr("437.5 GB/s"));
  EXPECT_THAT(recordIn(out()).imported.at(0).differs,
              HasSubstr("the tool judges correct results, and no rate; Muster: "));
}

/// MB/s or Gbit/s in place of GB/s: by the rates of NVLink and PCIe.
TEST_F(Imported, ValuesAboveWhatTheSkuCanDoAreAnError) {
  NcclTable large = healthy();
  large.rate = 300e3;
  const std::string toHost =
      nvbandwidthJson(nvbandwidthTest("device_to_host_memcpy_ce", R"([["440", "440"]])", "880"));
  const std::string peers = nvbandwidthJson(nvbandwidthTest(
      "device_to_device_memcpy_write_ce", R"([["N/A", "390000"], ["390000", "N/A"]])", "780000"));
  EXPECT_EQ(import(large.text()).exitCode, 3);
  for (const auto& [text, limit] : {std::pair(large.text(), "18 NVLinks of"),
                                    {toHost, "PCIe generation 5 x16"},
                                    {peers, "18 NVLinks of"}}) {
    const auto result = import(text);
    EXPECT_THAT(result.out, HasSubstr(std::string("above what this SKU can do (") + limit)) << result.err;
    EXPECT_THAT(result.out, HasSubstr("check the unit"));
  }
}

/// Two GPUs of unknown links, with this limit of copies to them.
std::string twoGpus(const std::string& limit) {
  return R"(schema = 1
name = "own"
description = "two GPUs of unknown links"
device_count = 2
[match]
kind = "gpu"
pci_ids = ["10de:2330"]
names = ["NVIDIA H100 80GB HBM3"]
memory_min = "79 GB"
memory_max = "87 GB"
[[expect]]
metric = "memory.host_to_device_bandwidth"
source = "made for this test"
)" + limit;
}

/// Where nothing says what is physically possible, by the profile's own baseline. What a contract asks for at
/// least says nothing of it.
TEST_F(Imported, ValuesOfManyTimesTheBaselineAreAnError) {
  const auto exitOf = [&](const std::string& limit, const std::string& rate) {
    const std::string profile = dir_.write("own.toml", twoGpus(limit)).string();
    const auto result = import(
        nvbandwidthJson(nvbandwidthTest("host_to_device_memcpy_ce", fmt::format(R"([["{}", "25"]])", rate),
                                        std::to_string(std::stoi(rate) + 25))),
        {"--sku", profile});
    EXPECT_EQ(result.exitCode == 3,
              result.out.find("(3 times the baseline of profile own)") < std::string::npos)
        << result.out << result.err;
    return result.exitCode;
  };
  for (const auto& [rate, exitCode] : {std::pair("18", 1), {"59", 0}, {"61", 3}})
    EXPECT_EQ(exitOf("baseline = \"20 GB/s\"\ntolerance = \"5%\"\n", rate), exitCode) << rate;
  for (const auto& [rate, exitCode] : {std::pair("19", 1), {"61", 0}, {"600", 0}})
    EXPECT_EQ(exitOf("min = \"20 GB/s\"\n", rate), exitCode) << rate;
}

/// What a record comes to, and by what.
std::multiset<std::string> resultsIn(const Record& record) {
  std::multiset<std::string> all = {fmt::format("exit {}", record.exitCode)};
  for (const StageRecord& stage : record.stages)
    for (const Verdict& v : stage.verdicts)
      all.insert(
          fmt::format("{} {} {} {} {}", outcomeName(v.outcome), v.metric, v.caseId, v.device, v.detail));
  return all;
}

/// Judged again with a profile, a file comes to what it comes to when it is imported with that one.
TEST_F(Imported, AProfileHoldsAlikeForARecordAndAFile) {
  const std::string h100 = (distDir() / "share/muster/plans/skus/h100-sxm5-80gb.toml").string();
  const std::string own =
      dir_.write("own.toml", twoGpus("baseline = \"40 GB/s\"\ntolerance = \"5%\"\n")).string();
  const std::vector<std::string> profiles = {"", h100, own};
  NcclTable four = healthy(), large = healthy();
  four.ranks = 4;
  large.rate = 300e3;
  std::vector<int> exitCodes;
  int number = 0;
  for (const std::string& text :
       {healthy().text(), NcclTable().text(), four.text(), large.text(), superBench("a") + superBench("b"),
        nvbandwidthJson(nvbandwidthTest("host_to_device_memcpy_ce", R"([["130", "41"]])", "171")),
        gpuBurn()}) {
    std::vector<fs::path> out;
    for (const std::string& profile : profiles) {
      out.push_back(dir_.path() / std::to_string(++number));
      std::vector<std::string> more = {"--out", out.back().string()};
      if (!profile.empty()) more.insert(more.end(), {"--sku", profile});
      exitCodes.push_back(import(text, more).exitCode);
    }
    for (size_t from = 0; from < profiles.size(); ++from)
      for (size_t to = 1; to < profiles.size(); ++to) {
        const fs::path again = dir_.path() / std::to_string(++number);
        const auto judged = runMuster(
            {"judge", (out[from] / "record.json").string(), "--sku", profiles[to], "--out", again.string()});
        EXPECT_EQ(judged.exitCode, exitCodes[exitCodes.size() - profiles.size() + to]) << judged.err;
        const Record record = recordIn(again), direct = recordIn(out[to]);
        EXPECT_EQ(resultsIn(record), resultsIn(direct)) << text.substr(0, 300) << from << to;
        EXPECT_TRUE(record.imported.at(0).differs.empty() ||
                    record.imported.at(0).differs == direct.imported.at(0).differs)
            << record.imported.at(0).differs;
      }
  }
  EXPECT_EQ(std::set<int>(exitCodes.begin(), exitCodes.end()), (std::set<int>{0, 1, 3}));
}

/// A fleet looks for no records below one.
TEST_F(Imported, NoRecordIsPutAboveThoseOfNodes) {
  ASSERT_EQ(kept(healthy().text()).exitCode, 0);
  const std::string record = (out() / "record.json").string(), above = out().parent_path().string();
  const std::string file = (dir_.path() / "results.txt").string();
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"judge", record, "--out", above},
        {"import", file, "--sku", "h100-sxm5-80gb", "--out", above}}) {
    const auto result = runMuster(command);
    EXPECT_EQ(result.exitCode, 2) << result.out;
    EXPECT_THAT(result.err,
                HasSubstr("this directory holds the runs of other nodes, such as imported; choose"));
    EXPECT_FALSE(fs::exists(fs::path(above) / "record.json"));
  }
}

TEST_F(Imported, ASlowCycleOfManyIsRejected) {
  NcclTable table = healthy();
  std::string rows;
  for (const double rate : {300.0, 60.0, 300.0}) {
    table.rate = rate;
    for (const long size : {1, 2, 4}) rows += table.row(size * table.fewest);
  }
  const auto result = import(table.head() + rows + table.foot());
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("105 GB/s"));
}

TEST_F(Imported, WrongResultsAndTheToolsOwnFailuresReject) {
  NcclTable wrong = healthy();
  wrong.wrong = "1";
  EXPECT_EQ(import(wrong.text()).exitCode, 1);
  NcclTable failed = healthy();
  failed.bounds = "1 FAILED";
  const auto result = import(failed.text());
  EXPECT_EQ(result.exitCode, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr("imported.tool_failures"));
}

/// What other tools let pass: no profile, no limit at this size, no result, an allocation error, fewer GPUs.
TEST_F(Imported, NothingPassesForLackOfEvidence) {
  const auto exitOf = [&](const std::string& text, const std::string& said) {
    const auto result = import(text);
    EXPECT_THAT(result.out, HasSubstr(said)) << result.err;
    return result.exitCode;
  };
  const NcclTable good = healthy();
  EXPECT_EQ(import(good.text(), {}).exitCode, 3);
  EXPECT_EQ(exitOf(NcclTable().text(), "measurements have no limit"), 3);
  EXPECT_EQ(exitOf(good.head() + good.foot(), "the file holds no result"), 3);
  EXPECT_EQ(exitOf(good.head() + "node1: Test CUDA failure common.cu:954 'out of memory'\n", "out of memory"),
            3);
  NcclTable four = healthy();
  four.ranks = 4;
  EXPECT_EQ(exitOf(four.text(), "imported.devices"), 1);
}

TEST_F(Imported, DamagedAndForeignFilesAreRefused) {
  const std::string whole = healthy().text();
  const auto cut = import(whole.substr(0, whole.size() - 150));
  EXPECT_EQ(cut.exitCode, 2) << cut.out;
  EXPECT_THAT(cut.err, HasSubstr("results.txt:"));
  NcclTable other = healthy();
  std::string a100 = other.text();
  for (size_t at; (at = a100.find("H100 80GB HBM3")) != std::string::npos;)
    a100.replace(at, 14, "A100-SXM4-80GB");
  const auto foreign = import(a100);
  EXPECT_EQ(foreign.exitCode, 2) << foreign.out;
  EXPECT_THAT(foreign.err, HasSubstr("it is about \"NVIDIA A100-SXM4-80GB\""));
  const auto file = dir_.write("one.txt", whole), twin = dir_.write("two.txt", whole);
  EXPECT_THAT(runMuster({"import", file.string(), twin.string()}).err, HasSubstr("the same content as"));
}

/// All NVLinks down: no GPU reaches another, and the tool says Passed.
TEST_F(Imported, DeadLinksDoNotPass) {
  std::string names, matrix;
  for (int i = 0; i < 8; ++i) {
    names += fmt::format("{}\"{}: NVIDIA H100 80GB HBM3 (00000000:{:02x}:00): (node1)\"", i > 0 ? "," : "", i,
                         i + 16);
    matrix += i > 0 ? ",[" : "[";
    for (int j = 0; j < 8; ++j) matrix += j > 0 ? ",\"N/A\"" : "\"N/A\"";
    matrix += "]";
  }
  const std::string text =
      "{\"nvbandwidth\": {\"version\": \"0.8\", \"GPU Device list\": [" + names + "], \"testcases\": [" +
      nvbandwidthTest("device_to_device_memcpy_write_ce", "[" + matrix + "]", "0") + "]}}";
  const auto result = import(text);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("no value between gpu0 and gpu1"));
  EXPECT_THAT(result.out, HasSubstr("The tool said: Passed. Muster's result: error"));
  // Links that came up as PCIe only are slow, which nvbandwidth does not judge.
  std::string slow = text;
  for (size_t at; (at = slow.find("N/A")) != std::string::npos;) slow.replace(at, 3, "50");
  slow.replace(slow.find("\"sum\": 0"), 8, "\"sum\": 3200");
  EXPECT_EQ(import(slow).exitCode, 1);
}

/// Rejected by the limits of its own SKU, it would pass by those of a slower GPU.
TEST_F(Imported, IsNotJudgedAgainByTheProfileOfAnotherGpu) {
  NcclTable slow = healthy();
  slow.rate = 150;
  ASSERT_EQ(kept(slow.text()).exitCode, 1);
  EXPECT_THAT(recordIn(out()).imported.at(0).deviceNames, ElementsAre("NVIDIA H100 80GB HBM3"));
  const std::string other = (distDir() / "share/muster/plans/skus/a100-sxm4-80gb.toml").string();
  const fs::path path = out() / "record.json";
  const auto foreign = runMuster({"judge", path.string(), "--sku", other});
  EXPECT_EQ(foreign.exitCode, 2) << foreign.out;
  EXPECT_THAT(foreign.err,
              HasSubstr("imported-1-nccl-tests is about \"NVIDIA H100 80GB HBM3\"; profile a100"));
  EXPECT_THAT(foreign.err, HasSubstr("--sku " + other));
  // Records of earlier versions do not hold the names.
  auto json = parseJson(readWhole(path));
  ASSERT_TRUE(json.ok());
  (*json)["imported"][0].erase("device_names");
  const auto older = dir_.write("older/record.json", dumpJson(*json));
  EXPECT_EQ(runMuster({"judge", older.string(), "--sku", other}).exitCode, 0);
}

TEST_F(Imported, AToolsOwnVerdictRejectsAndNeverAccepts) {
  std::string results;
  for (int i = 0; i < 8; ++i) results += (i > 0 ? "," : "") + dcgmResult(i, "Pass");
  const auto passed = import(dcgmJson(results));
  EXPECT_EQ(passed.exitCode, 3) << passed.out;
  EXPECT_THAT(passed.out, HasSubstr("the tool's own verdict is no measurement"));
  std::string failed = dcgmJson(results, "Fail");
  failed.replace(failed.find("\"Pass\""), 6, "\"Fail\"");
  const auto rejected = import(failed);
  EXPECT_EQ(rejected.exitCode, 1) << rejected.out;
  EXPECT_THAT(rejected.out, HasSubstr("imported.test_passed"));
  EXPECT_EQ(import(gpuBurn(), {"--sku", "host"}).exitCode, 3);
  EXPECT_EQ(import(gpuBurn("1234", "7  (WARNING!)", "FAULTY"), {"--sku", "host"}).exitCode, 1);
  // Its process died, and gpu-burn says OK.
  const auto died = import(gpuBurn("-1", "0  (DIED!)"), {"--sku", "host"});
  EXPECT_EQ(died.exitCode, 3) << died.out;
  EXPECT_THAT(died.out, HasSubstr("gpu1: its process died; gpu-burn calls it OK"));
}

TEST_F(Imported, ThePlansLimitsHoldAndWhatNoFileCoversIsSkipped) {
  const std::string plan =
      "schema = 1\nname = \"contract\"\nsku = \"h100-sxm5-80gb\"\n"
      "[[stage]]\nname = \"nccl\"\nplugin = \"collective\"\ntest = \"sweep\"\nscope = \"node\"\n"
      "[[stage.expect]]\nmetric = \"collective.large_message_bus_bandwidth\"\nwhere = { bytes = "
      "\"8589934592\" }\n"
      "min = \"530 GB/s\"\nsource = \"contract\"\nremedy = \"none\"\n";
  const auto file = dir_.write("plan.toml", plan);
  const auto strict = import(healthy().text(), {"--plan", file.string()});
  EXPECT_EQ(strict.exitCode, 1) << strict.out << strict.err;
  EXPECT_THAT(strict.out, HasSubstr("required at least 530 GB/s"));
  const auto more = dir_.write("more.toml", plan +
                                                "[[stage]]\nname = \"copies\"\nplugin = \"memory\"\ntest = "
                                                "\"peer\"\nscope = \"node\"\n");
  NcclTable fast = healthy();
  fast.rate = 310;
  const auto partial = import(fast.text(), {"--plan", more.string()});
  EXPECT_EQ(partial.exitCode, 3) << partial.out << partial.err;
  EXPECT_THAT(partial.out, HasSubstr("no imported file holds a value of memory.peer"));
}

/// Copies of the host are no evidence of the memory's own bandwidth, though one plugin measures both.
TEST_F(Imported, AStageIsNotMetByTheValuesOfAnotherTest) {
  const auto plan = dir_.write("plan.toml",
                               "schema = 1\nname = \"two\"\nsku = \"h100-sxm5-80gb\"\nbackend = \"cuda\"\n"
                               "[[stage]]\nname = \"copies\"\ntest = \"memory.host_copy\"\n"
                               "[[stage]]\nname = \"own\"\ntest = \"memory.bandwidth\"\n");
  const auto result =
      import(nvbandwidthJson(nvbandwidthTest("device_to_host_memcpy_ce", R"([["55", "55"]])", "110")),
             {"--plan", plan.string()});
  EXPECT_NE(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("no imported file holds a value of memory.bandwidth"));
  EXPECT_THAT(result.out, Not(HasSubstr("a value of memory.host_copy")));
}

/// What has no metric of a plugin is limited by a plan for `muster import`.
TEST_F(Imported, APlanCanLimitWhatNoPluginMeasures) {
  const auto plan =
      dir_.write("disk.toml",
                 "schema = 1\nname = \"disk\"\nsku = \"host\"\nbackend = \"host\"\n"
                 "[[stage]]\nname = \"fio\"\nplugin = \"imported\"\ntest = \"tool\"\nscope = "
                 "\"node\"\n[[stage.expect]]\nmetric = \"imported.bandwidth\"\nwhere = { name = "
                 "\"seq\", op = \"read\" }\nmin = \"3 GB/s\"\nsource = \"contract\"\nremedy = \"none\"\n");
  const auto good = import(fioJson(), {"--plan", plan.string()});
  EXPECT_EQ(good.exitCode, 0) << good.out << good.err;
  EXPECT_EQ(import(fioJson("2900000000"), {"--plan", plan.string()}).exitCode, 1);
  EXPECT_EQ(import(fioJson(), {"--sku", "host"}).exitCode, 3);
}

/// A throttled GPU that the tool tolerates, and GPUs that are all slow, which it cannot see.
TEST_F(Imported, GpuFryersRatesAreJudgedByTheProfile) {
  const auto eight = [](const std::string& rate, const std::string& throttled) {
    std::string head, results;
    for (int i = 0; i < 8; ++i) {
      head += fmt::format("Detected GPU #{}: \"NVIDIA H100 80GB HBM3\" (x-{})\n", i, i);
      results += fmt::format(
          "GPU #{}: {} Gflops/s (min: 1, max: 2, dev: 3)\n Throttling HW: false, Thermal SW: {}, Thermal HW: "
          "false\n",
          i, rate, i == 3 ? throttled : "false");
    }
    return head + "Using precision(s):  BF16 \n" + results + "All GPUs seem healthy\n";
  };
  const auto good = import(eight("700000", "false"));
  EXPECT_EQ(good.exitCode, 0) << good.out << good.err;
  const auto slow = import(eight("500000", "false"));
  EXPECT_EQ(slow.exitCode, 1) << slow.out << slow.err;
  EXPECT_THAT(slow.out, HasSubstr("The tool said: All GPUs seem healthy"));
  EXPECT_EQ(import(eight("700000", "true")).exitCode, 1);
  const auto large = import(eight("700000000", "false"));
  EXPECT_EQ(large.exitCode, 3) << large.out << large.err;
  EXPECT_THAT(large.out, HasSubstr("700 PFLOP/s, above what this SKU can do (peak flops.bf16 of profile"));
  EXPECT_EQ(import(gpuFryer()).exitCode, 1) << "two of eight GPUs";
}

TEST_F(Imported, ReturnCodesOfSuperBenchAndEndsOfMlperfRunsReject) {
  EXPECT_EQ(import(superBench("node1", "650000", "33")).exitCode, 1);
  EXPECT_EQ(import(superBench()).exitCode, 1) << "two of eight GPUs";
  EXPECT_EQ(import(mllog(), {"--sku", "host"}).exitCode, 3);
  EXPECT_EQ(import(mllog(mllogEnd("aborted")), {"--sku", "host"}).exitCode, 1);
  const auto plan = dir_.write(
      "train.toml",
      "schema = 1\nname = \"train\"\nsku = \"host\"\nbackend = \"host\"\n[[stage]]\nname = \"mlperf\"\n"
      "plugin = \"imported\"\ntest = \"tool\"\nscope = \"node\"\n[[stage.expect]]\nmetric = "
      "\"imported.time\"\n"
      "where = { name = \"resnet\" }\nmax = \"11m\"\nsource = \"contract\"\nremedy = \"none\"\n");
  const auto inTime = import(mllog(), {"--plan", plan.string()});
  EXPECT_EQ(inTime.exitCode, 0) << inTime.out << inTime.err;
  const auto interrupted = import(mllog(""), {"--plan", plan.string()});
  EXPECT_EQ(interrupted.exitCode, 3) << interrupted.out << interrupted.err;
}

/// Metric, labels, device and samples of what stages measured, in any order. No plugin has the number of
/// devices that do not match: the runner counts them itself.
std::multiset<std::string> measuredIn(const Record& record) {
  std::multiset<std::string> all;
  for (const StageRecord& stage : record.stages)
    for (const Measurement& m : stage.measurements)
      if (!m.metric.starts_with("imported.") && m.metric != "env.sku_mismatches")
        all.insert(fmt::format("{} {} {} {} {}", m.metric, labelsText(m.labels), m.device,
                               fmt::join(m.samples, ","), m.text));
  return all;
}

TEST_F(Imported, AStreamOfMusterGivesItsMeasurementsAgain) {
  const fs::path run = dir_.path() / "run", stream = dir_.path() / "stream.jsonl";
  const std::string plan = (distDir() / "share/muster/plans/node-quick.toml").string();
  ASSERT_EQ(
      runMuster({"run", plan, "--simulate", scenario("h100x8-healthy"), "--out", run.string(), "--plain"})
          .exitCode,
      0);
  ASSERT_EQ(runMuster({"report", (run / "record.json").string(), "--format", "ocp", "--out", stream.string()})
                .exitCode,
            0);
  const std::string text = readWhole(stream);
  const auto again = kept(text);
  EXPECT_EQ(again.exitCode, 3) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("no evidence of its own: SIMULATED"));
  const auto measured = measuredIn(recordIn(run));
  EXPECT_GT(measured.size(), 100u);
  EXPECT_EQ(measuredIn(recordIn(out())), measured);
  // Without the mark it is judged as the run was; cut short it is not.
  std::string real = text;
  for (size_t at; (at = real.find("SIMULATED")) != std::string::npos;) real.replace(at, 9, "simulated");
  const std::vector<std::string> rules = {"--sku", "h100-sxm5-80gb", "--plan", plan};
  const auto judged = import(real, rules);
  EXPECT_EQ(judged.exitCode, 0) << judged.out << judged.err;
  const auto interrupted = import(real.substr(0, real.rfind('\n', real.size() - 2) + 1), rules);
  EXPECT_EQ(interrupted.exitCode, 3) << interrupted.out << interrupted.err;
}

/// Nothing takes an imported record for a run of a node.
TEST_F(Imported, CountsNowhereAsAMeasurement) {
  ASSERT_EQ(kept(healthy().text()).exitCode, 0);
  const std::string runs = (dir_.path() / "runs").string();
  const auto nodes = dir_.write("nodes.txt", "imported\n");
  const auto fleet = runMuster({"fleet", runs, "--expect", nodes.string()});
  EXPECT_EQ(fleet.exitCode, 3) << fleet.out << fleet.err;
  EXPECT_THAT(readWhole(dir_.path() / "runs/fleet.json"), HasSubstr("made by `muster import`"));
  const auto learned = runMuster({"baseline", "learn", runs, "-o", (dir_.path() / "learned.toml").string()});
  EXPECT_NE(learned.exitCode, 0) << learned.out;
  EXPECT_FALSE(fs::exists(dir_.path() / "learned.toml"));
  const auto history = runMuster({"history", "add", runs, "--db", (dir_.path() / "history.db").string()});
  EXPECT_THAT(history.out + history.err, HasSubstr("made by `muster import`")) << history.exitCode;
  const auto listed = runMuster({"history", "list", "--db", (dir_.path() / "history.db").string()});
  EXPECT_THAT(listed.out, Not(HasSubstr("imported")));
}

TEST_F(Imported, IsMarkedInEveryReport) {
  ASSERT_EQ(kept(healthy().text()).exitCode, 0);
  EXPECT_THAT(readWhole(out() / "report.html"), HasSubstr("IMPORTED: other tools measured these values"));
  EXPECT_THAT(readWhole(out() / "report.html"), HasSubstr("<title>IMPORTED"));
  EXPECT_THAT(readWhole(out() / "junit.xml"), HasSubstr("name=\"IMPORTED imported-1-nccl-tests\""));
  const auto again = runMuster({"judge", (out() / "record.json").string()});
  EXPECT_EQ(again.exitCode, 0) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr(" IMPORTED "));
}

TEST_F(Imported, TheMarkCannotBeTakenAway) {
  ASSERT_EQ(kept(healthy().text()).exitCode, 0);
  auto json = parseJson(readWhole(out() / "record.json"));
  ASSERT_TRUE(json.ok());
  json->erase("imported");
  const auto bare = dir_.write("bare/record.json", dumpJson(*json));
  EXPECT_THAT(runMuster({"report", bare.string()}).err,
              HasSubstr("0 files were imported, and the backend is imported"));
  const auto nodes = dir_.write("nodes.txt", "imported\n");
  EXPECT_EQ(runMuster({"fleet", (dir_.path() / "bare").string(), "--expect", nodes.string()}).exitCode, 3);
}

}  // namespace
}  // namespace muster::testing

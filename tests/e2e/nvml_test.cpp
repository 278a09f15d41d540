// SPDX-License-Identifier: Apache-2.0
// Whole runs on nodes with GPUs that a fake libnvidia-ml.so.1 makes up: each fault gives its verdict, its
// device, its remedy and the exit code; and what a machine without any GPU says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/muster.h"
#include "tests/fakes/nvml/headers.h"
#include "tests/fakes/nvml/scenario.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

/// The node is looked at, then something "works" on it, during which the scenario's burst happens.
constexpr const char* kPlan = R"(schema = 1
name = "gpus"
sku = "auto"
backend = "cuda"
[[stage]]
name = "health"
plugin = "env"
test = "health"
scope = "node"
ranks = 1
timeout = "4s"
[stage.params]
idle_window = "20ms"
kernel_log = "optional"
)";

/// A stage that watches the GPUs while it works.
std::string workStage(const std::string& name) {
  return "[[stage]]\nname = \"" + name + R"("
plugin = "fake-work"
test = "run"
scope = "node"
ranks = 1
timeout = "20s"
[[stage.expect]]
metric = "fake-work.value"
min = 1
source = "test"
remedy = "test"
)";
}

/// Between two stages that watch the GPUs, a program writes another scenario. The telemetry of its own stage
/// has read the first one by then.
constexpr const char* kBetween = R"(
[[stage]]
name = "between"
test = "exec.command"
scope = "node"
ranks = 1
timeout = "20s"
params = { program = "FOLDER/bin/change", parser = "none" }
)";

class GpuNode {
 public:
  /// `after` is the scenario once the work is done.
  ProcessResult runThrough(const std::string& before, const std::string& after) {
    const auto change =
        dir_.write("bin/change", "#!/bin/sh\ncat '" + dir_.write("after.txt", "count 8\n" + after).string() +
                                     "' > '" + (dir_.path() / "scenario.txt").string() + "'\n");
    std::filesystem::permissions(change, std::filesystem::perms(0755));
    later_ = kBetween + workStage("later");
    later_.replace(later_.find("FOLDER"), 6, dir_.path().string());
    return run(before);
  }
  ProcessResult run(const std::string& scenario, const std::vector<std::string>& more = {}) {
    return start(
        scenario,
        std::vector<std::string>{dir_.write("plan.toml", kPlan + workStage("work") + later_).string(),
                                 "--out", out().string()} +
            more);
  }
  /// Goes on with the run as if it had been interrupted after its inventory.
  ProcessResult resume(const std::string& scenario) {
    const std::string journal = readWhole(out() / "journal.jsonl");
    const size_t inventory = journal.find('\n', journal.find('\n') + 1);
    std::filesystem::resize_file(out() / "journal.jsonl", inventory + 1);
    std::filesystem::remove(out() / "record.json");
    return start(scenario, {"--resume", out().string()});
  }
  [[nodiscard]] std::filesystem::path out() const { return dir_.path() / "run"; }
  /// Exists once work has begun.
  [[nodiscard]] std::filesystem::path work() const { return dir_.path() / "work"; }

 private:
  ProcessResult start(const std::string& scenario, const std::vector<std::string>& more) {
    const auto plugins = dir_.path() / "plugins";
    std::filesystem::create_directories(plugins);
    const auto library = buildDir() / "tests/fakes/nvml/fake-work.so";
    std::filesystem::copy_file(library, plugins / "fake-work.so",
                               std::filesystem::copy_options::overwrite_existing);
    ProcessOptions options;
    options.environment["LD_LIBRARY_PATH"] = (buildDir() / "tests/fakes/nvml").string();
    options.environment[kScenarioVariable] = dir_.write("scenario.txt", "count 8\n" + scenario).string();
    options.environment[kWorkVariable] = work().string();
    options.environment["MUSTER_EXEC_DIR"] = (dir_.path() / "bin").string();
    return runMuster(std::vector<std::string>{"run", "--plugins", plugins.string()} + more, options);
  }

  TempDir dir_;
  std::string later_;
};

/// A verdict of one stage that is not a pass, warnings about the test machine's own load left out.
struct Finding {
  std::string stage;
  Verdict verdict;
};

std::vector<Finding> findingsIn(const Record& record) {
  std::vector<Finding> findings;
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      if (verdict.outcome != Outcome::kPass && verdict.metric != "env.busy_share" &&
          verdict.metric != "env.steal_share")
        findings.push_back({stage.name, verdict});
  return findings;
}

/// A fault, and what must be said of it. Every finding must be about this metric and device, and the stage
/// named must have one.
struct Fault {
  const char* name;
  const char* scenario;
  int exitCode;
  Outcome outcome;
  const char* stage;
  const char* metric;  ///< empty: of the stage itself
  const char* device;  ///< empty: of the node
  const char* words;   ///< in the verdict's labels or detail
  const char* remedy;  ///< in the terminal
};

void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.name;
}

class GpuFault : public ::testing::TestWithParam<Fault> {};

TEST_P(GpuFault, GivesItsVerdict) {
  const Fault& fault = GetParam();
  GpuNode node;
  const auto result = node.run(fault.scenario);
  EXPECT_EQ(result.exitCode, fault.exitCode) << result.out << result.err;
  const auto findings = findingsIn(recordIn(node.out()));
  bool found = false;
  for (const auto& [stage, verdict] : findings) {
    EXPECT_EQ(verdict.metric, fault.metric) << stage << ": " << verdict.detail;
    EXPECT_EQ(verdict.device, fault.device) << stage << ": " << verdict.detail;
    EXPECT_EQ(verdict.outcome, fault.outcome) << stage << ": " << verdict.detail;
    std::string words = verdict.detail;
    for (const auto& [label, value] : verdict.labels) words += " " + label + "=" + value;
    found |= stage == fault.stage && words.find(fault.words) != std::string::npos;
  }
  EXPECT_TRUE(found) << fault.words << " in " << result.out;
  EXPECT_THAT(result.out, HasSubstr(fault.remedy));
}

constexpr auto kFail = Outcome::kFail;
constexpr auto kWarn = Outcome::kWarn;
constexpr auto kError = Outcome::kError;

INSTANTIATE_TEST_SUITE_P(
    All, GpuFault,
    ::testing::Values(
        Fault{"EccBurst", "gpu 2 ecc_uncorrected 4 working\n", 1, kFail, "work", "env.ecc_uncorrected",
              "gpu2", "4", "Drain the node, reset the GPU"},
        Fault{"EccEver", "gpu 2 ecc_sram 1\n", 1, kFail, "health", "env.ecc_errors", "gpu2", "memory=sram",
              "field diagnostic"},
        Fault{"EccOff", "gpu 2 ecc 0\n", 1, kFail, "health", "env.ecc_mode", "gpu2", "false", "Turn ECC on"},
        Fault{"RemapPending", "gpu 2 remap_pending 1\n", 1, kFail, "work", "env.row_remap_pending", "gpu2",
              "true", "Reset the GPU"},
        Fault{"Xid79", "gpu 5 xid 79 working\n", 1, kFail, "work", "env.xid_fatal", "gpu5",
              "XID 79 (GPU has fallen off the bus)", "NVIDIA's catalogue"},
        Fault{"Xid31", "gpu 5 xid 31 working\n", 0, kWarn, "work", "env.xid_application", "gpu5", "XID 31",
              "process that caused it"},
        Fault{"ThermalThrottle", "gpu 1 thermal_ns 2000000000 working\n", 1, kFail, "work",
              "env.throttle_thermal", "gpu1", "2s", "Check fans"},
        Fault{"ThermalThrottleOfHardware", "gpu 1 clock_reasons 72 working\n", 1, kFail, "work",
              "env.throttle_thermal", "gpu1", "s", "Check fans"},
        Fault{"ThermalThrottleR575", "header 12.9.79\ngpu 1 hw_thermal_ns 2000000000 working\n", 1, kFail,
              "work", "env.throttle_thermal", "gpu1", "2s", "Check fans"},
        Fault{"TargetTemperatureR575", "header 12.9.79\ngpu 1 thermal_ns 2000000000 working\n", 1, kFail,
              "work", "env.throttle_software_share", "gpu1", "required at most 1%", "its target temperature"},
        Fault{"TargetTemperatureBySamples", "gpu 1 clock_reasons 32 working\n", 1, kFail, "work",
              "env.throttle_software_share", "gpu1", "required at most 1%", "its target temperature"},
        Fault{"TargetTemperatureForAMoment", "header 12.9.79\ngpu 1 thermal_ns 1000000 working\n", 0, kWarn,
              "work", "env.throttle_software_share", "gpu1", "inside the warning band",
              "its target temperature"},
        Fault{"EccCorrectedInSram", "gpu 2 ecc_sram 10001 working\n", 1, kFail, "work", "env.ecc_corrected",
              "gpu2", "memory=sram", "run the memory pattern test"},
        Fault{"EccCorrectedInDram", "gpu 2 ecc_corrected 20000001 working\n", 1, kFail, "work",
              "env.ecc_corrected", "gpu2", "memory=dram", "run the memory pattern test"},
        Fault{"RowsRemapped", "gpu 2 remapped_rows 512\n", 1, kFail, "health", "env.remapped_rows", "gpu2",
              "kind=uncorrected", "field diagnostic"},
        Fault{"BankWithoutSpareRows", "gpu 2 banks_without_rows 1\n", 0, kWarn, "health", "env.remap_banks",
              "gpu2", "spare_rows=none", "plan a replacement"},
        Fault{"InforomCorrupted", "gpu 2 call nvmlDeviceValidateInforom 14\n", 1, kFail, "health",
              "env.inforom_valid", "gpu2", "false", "have it flashed"},
        Fault{"NearTheSlowdown", "gpu 2 margin 1 working\n", 0, kWarn, "work", "env.slowdown_margin", "gpu2",
              "3", "Check fans"},
        Fault{"AnotherClique", "gpu 2 fabric_clique 4\n", 1, kFail, "health", "env.fabric_clique_differs",
              "gpu2", "where most of its peers have", "partitions of the fabric"},
        Fault{"NvlinkReplay", "gpu 6 nvlink_replays 1 working\n", 1, kFail, "work", "env.nvlink_errors",
              "gpu6", "links=link 0: 1", "nvidia-smi nvlink -e"},
        Fault{"NvlinkCrc", "gpu 6 nvlink_crc 100000 working\n", 1, kFail, "work", "env.nvlink_crc_per_second",
              "gpu6", "links=link 2: 100000", "nvidia-smi nvlink -e"},
        Fault{"PcieReplays", "gpu 4 pcie_replays 32 working\n", 1, kFail, "work",
              "env.pcie_replays_per_minute", "gpu4", "32", "check riser and retimer"},
        Fault{"PowerBrake", "gpu 1 clock_reasons 136 working\n", 1, kFail, "work", "env.throttle_power_brake",
              "gpu1", "s", "Check power supplies"},
        Fault{"PowerBrakeR575", "header 12.9.79\ngpu 1 power_brake_ns 1000000000 working\n", 1, kFail, "work",
              "env.throttle_power_brake", "gpu1", "1s", "Check power supplies"},
        Fault{"PowerBrakeR590", "header 13.1.115\ngpu 1 power_brake_ns 1000000000 working\n", 1, kFail,
              "work", "env.throttle_power_brake", "gpu1", "1s", "Check power supplies"},
        Fault{"PowerCapFarBelowItsPeers", "gpu 1 power_cap_ns 1000000000 working\ngpu 1 clock 1100 working\n",
              1, kFail, "work", "env.throttle_power_excess", "gpu1", "1s", "far more than its peers"},
        Fault{"HardwareSlowdown", "gpu 1 clock_reasons 8 working\n", 0, kWarn, "work",
              "env.throttle_hardware", "gpu1", "s", "it can be a change of clocks"},
        Fault{"RecoveryAction", "gpu 4 recovery_action 4\n", 1, kFail, "health", "env.recovery_needed",
              "gpu4", "stop peer-to-peer work, then reset the GPU", "Do what the label names"},
        Fault{"SramThreshold", "gpu 4 sram_threshold 1\n", 1, kFail, "health", "env.sram_threshold_exceeded",
              "gpu4", "true", "field diagnostic"},
        Fault{"FabricDegraded", "gpu 3 fabric_mask 425\n", 1, kFail, "health", "env.fabric_healthy", "gpu3",
              "degraded bandwidth", "See nvidia-smi -q (Fabric)"},
        Fault{"FabricUnhealthy", "gpu 3 fabric_summary 2 working\n", 1, kFail, "work", "env.fabric_healthy",
              "gpu3", "unhealthy", "See nvidia-smi -q (Fabric)"},
        Fault{"NvlinkDown", "gpu 6 nvlink_down 7\n", 1, kFail, "health", "env.nvlinks_active", "gpu6",
              "inactive=7", "nvidia-smi nvlink -s"},
        Fault{"NvlinkGoesDown", "gpu 6 nvlink_down 7 working\n", 1, kFail, "work", "env.nvlinks_active",
              "gpu6", "inactive=7", "nvidia-smi nvlink -s"},
        Fault{"C2cLinkDown", "gpu * c2c_links 10\ngpu 2 c2c_down 7\n", 1, kFail, "health",
              "env.c2c_links_down", "gpu2", "inactive=7", "nvidia-smi c2c -s"},
        Fault{"NvlinkSlow", "gpu 6 nvlink_speed 13281\n", 1, kFail, "health", "env.nvlink_speed", "gpu6",
              "13.28 GB/s", "came up at a lower rate"},
        Fault{"PcieX8", "gpu 4 pcie_width 8\n", 1, kFail, "health", "env.pcie_link_width", "gpu4", "8",
              "Lanes are missing"},
        Fault{"PcieGeneration", "gpu 4 pcie_generation 4\n", 1, kFail, "work", "env.pcie_link_generation",
              "gpu4", "4", "below its rate"},
        Fault{"WrongVbios", "gpu 7 vbios 96.00.61.00.02\n", 1, kFail, "health", "env.vbios_differs", "gpu7",
              "96.00.61.00.02, where most of its peers have 96.00.74.00.01", "Flash the VBIOS"},
        Fault{"MigOn", "gpu 0 mig 1\n", 1, kFail, "health", "env.mig_mode", "gpu0", "true", "-mig 0"},
        Fault{"PowerCapped", "gpu 3 power_limit_mw 350000\n", 1, kFail, "health", "env.power_limit", "gpu3",
              "350 W", "-pl WATTS"},
        Fault{"ClockLimit", "gpu 3 clock_max 1200\n", 1, kFail, "health", "env.clock_max", "gpu3", "1.2 GHz",
              "Clocks are capped"},
        Fault{"Busy", "gpu 3 process 4711\n", 3, kError, "health", "env.gpu_processes", "gpu3",
              "pid 4711 (python3)", "Stop the processes"},
        Fault{"FabricNotReady", "gpu 3 fabric 2\n", 1, kFail, "health", "env.fabric_ready", "gpu3",
              "registration is under way", "nvidia-fabricmanager"},
        Fault{"NotPersistent", "gpu 3 persistence 0\n", 0, kWarn, "health", "env.persistence_mode", "gpu3",
              "false", "nvidia-persistenced"},
        Fault{"LostMeanwhile", "gpu 3 call * 15 working\n", 1, kFail, "work", "env.device_lost", "gpu3",
              "gpu3 at 0000:4e:00.0: GPU is lost (NVML 15)", "power-cycle"},
        Fault{"NotSupportedWhereWanted", "gpu * call nvmlDeviceGetEccMode 3\n", 3, kError, "health",
              "env.ecc_mode", "", "no measurement", "Turn ECC on"},
        Fault{"NotSupportedByOne", "gpu 3 call nvmlDeviceGetEccMode 3\n", 3, kError, "health", "", "",
              "ecc_mode of gpu3: the driver reports", "rerun"}),
    [](const auto& info) { return info.param.name; });

TEST(Gpus, AHealthyNodeIsAcceptedUnderItsProfile) {
  GpuNode node;
  const auto result = node.run("");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const Record record = recordIn(node.out());
  EXPECT_TRUE(findingsIn(record).empty());
  EXPECT_THAT(result.out, HasSubstr("h100-sxm5-80gb, matched by PCI id 10de:2330"));
  ASSERT_EQ(record.inventory["devices"].size(), 8u);
  EXPECT_EQ(record.inventory["devices"][5]["uuid"], "GPU-00000000-0000-0000-0000-000000000005");
  EXPECT_EQ(record.inventory["software"]["nvidia_driver"], "580.95.05");
}

/// What a healthy GPU may count, and what it counted before.
TEST(Gpus, ErrorsWithinTheirLimitsAreAccepted) {
  GpuNode node;
  const auto result = node.run(
      "gpu 2 ecc_corrected 15000 working\ngpu 3 remapped_rows 511\n"
      "gpu 4 pcie_replays 31 working\ngpu 5 nvlink_crc 99 working\ngpu 6 nvlink_replays 7\n");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_TRUE(findingsIn(recordIn(node.out())).empty()) << result.out;
}

/// Drivers of every age, none of which slows a GPU down, though some answer other things at the ids that
/// others have the slowdowns at; the power limit holds all GPUs alike.
TEST(Gpus, AHealthyNodeIsAcceptedUnderEveryDriver) {
  for (const HeaderFacts& header : kHeaders) {
    if (header.fabricInfo == 0) continue;  // no H100 has so old a driver, and its profile asks for the fabric
    GpuNode node;
    const auto result = node.run(std::string("header ") + header.version +
                                 "\ngpu * power_smoothing 95 working\ngpu * power_cap_ns 1000000000 working\n"
                                 "gpu * board_limit_ns 1000000000 working\ngpu * clock 1300 working\n");
    EXPECT_EQ(result.exitCode, 0) << header.version << result.out << result.err;
    EXPECT_TRUE(findingsIn(recordIn(node.out())).empty()) << header.version;
  }
}

TEST(Gpus, ErrorsBetweenTwoStagesCountInTheLaterOne) {
  GpuNode node;
  const auto result = node.runThrough("gpu 2 nvlink_replays 7\n", "gpu 2 nvlink_replays 9\n");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const Record record = recordIn(node.out());
  const auto findings = findingsIn(record);
  ASSERT_EQ(findings.size(), 1u) << result.out;
  EXPECT_EQ(findings[0].stage, "later");
  EXPECT_EQ(findings[0].verdict.metric, "env.nvlink_errors");
  EXPECT_EQ(findings[0].verdict.device, "gpu2");
  EXPECT_EQ(findings[0].verdict.observed, 2);
  EXPECT_THAT(record.stages.back().log, ::testing::Contains(::testing::AllOf(
                                            HasSubstr("env.nvlink_errors device=gpu2"),
                                            HasSubstr("counts 2 from before this stage's ranks started"))));
}

/// Neither a reset between two stages nor other numbers of the GPUs, one of which is gone, are errors.
TEST(Gpus, CountersThatBeginAnewBetweenTwoStagesAreNoErrors) {
  for (const auto& [before, after] :
       {std::pair{"gpu 2 nvlink_replays 7\ngpu 3 pcie_replays 5000\n", "gpu 3 pcie_replays 4000\n"},
        {"gpu 7 nvlink_replays 7\n", "count 7\ngpu 6 nvlink_replays 7\n"}}) {
    GpuNode node;
    const auto result = node.runThrough(before, after);
    EXPECT_EQ(result.exitCode, 0) << after << result.out << result.err;
    EXPECT_TRUE(findingsIn(recordIn(node.out())).empty()) << after << result.out;
  }
}

TEST(Gpus, WithoutRootErrorsOfTheChipsMemoriesAreARemark) {
  GpuNode node;
  const auto result = node.run("gpu * call nvmlDeviceGetSramEccErrorStatus 4\ngpu * ecc_sram none\n");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_TRUE(findingsIn(recordIn(node.out())).empty());
  EXPECT_THAT(readWhole(node.out() / "record.json"),
              HasSubstr("Insufficient Permissions (NVML 4); run as root"));
}

TEST(Gpus, WhatADeviceLacksIsNotAFault) {
  GpuNode node;
  const auto result = node.run(
      "gpu * call nvmlDeviceGetSerial 3\ngpu * call nvmlDeviceGetPcieReplayCounter 3\n"
      "gpu * memory_temperature none\n");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_EQ(recordIn(node.out()).inventory["devices"][0].value("serial", ""), "");
}

TEST(Gpus, OneThatFellOffTheBusFailsByNameAndByCount) {
  GpuNode node;
  const auto result = node.run("gpu 3 call * 15\n");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  std::vector<std::string> metrics;
  for (const auto& [stage, verdict] : findingsIn(recordIn(node.out()))) {
    metrics.push_back(stage + " " + verdict.metric);
    EXPECT_EQ(verdict.device, verdict.metric == "env.device_lost" ? "gpu3" : "");
  }
  EXPECT_THAT(metrics, ::testing::UnorderedElementsAre("muster:inventory env.device_count",
                                                       "health env.device_lost", "work env.device_lost"));
}

TEST(Gpus, OnesThatChangedMeanwhileAreNotResumedWith) {
  GpuNode node;
  ASSERT_EQ(node.run("").exitCode, 0);
  for (const auto& [scenario, change] :
       {std::pair{"gpu 2 ecc 0\n", "gpu2 ecc: was on, is off"},
        {"gpu 3 serial 999\n", "gpu3 serial: was 1651023010003, is 999"},
        {"gpu 1 power_limit_mw 500000\n", "gpu1 power_limit: was 700 W, is 500 W"},
        {"count 7\n", "gpu7 is missing"}}) {
    const auto refused = node.resume(scenario);
    EXPECT_EQ(refused.exitCode, 2) << refused.out << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(change));
    EXPECT_THAT(refused.err, HasSubstr("start a new run with --out"));
    EXPECT_FALSE(std::filesystem::exists(node.out() / "record.json"));
  }
  // What may differ: a temperature, a counter.
  const auto resumed = node.resume("gpu 2 temperature 41\ngpu 2 ecc_corrected 1\n");
  EXPECT_EQ(resumed.exitCode, 0) << resumed.out << resumed.err;
  EXPECT_EQ(recordIn(node.out()).acceptance, Acceptance::kAccepted);
}

TEST(Gpus, SevenOfEightIsAFail) {
  GpuNode node;
  const auto result = node.run("count 7\n");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const auto findings = findingsIn(recordIn(node.out()));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].verdict.metric, "env.device_count");
}

TEST(Gpus, ACallThatFailsIsAnUnreadableSourceInNvmlsWords) {
  GpuNode node;
  const auto result = node.run("gpu 2 call nvmlDeviceGetPowerUsage 999\n");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const auto findings = findingsIn(recordIn(node.out()));
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].verdict.outcome, Outcome::kError);
  EXPECT_THAT(findings[0].verdict.detail, HasSubstr("power of gpu2: Unknown Error (NVML 999)"));
  EXPECT_EQ(findings[1].verdict.metric, "env.unreadable_sources");
}

TEST(Gpus, ACallThatHangsCostsOneProcess) {
  GpuNode node;
  const auto result = node.run("gpu 2 call nvmlDeviceGetPowerUsage hang\n");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const auto findings = findingsIn(recordIn(node.out()));
  ASSERT_EQ(findings.size(), 2u) << result.out;
  EXPECT_THAT(findings[0].verdict.detail, HasSubstr("timed out after 4s"));
  EXPECT_EQ(findings[1].verdict.outcome, Outcome::kError);
  EXPECT_THAT(
      findings[1].verdict.detail,
      HasSubstr("telemetry: no reading came within 20s. Without a first reading of the error counters no "
                "rank was started. See output/work.telemetry.txt"));
  EXPECT_FALSE(std::filesystem::exists(node.work()))
      << "errors under a load that nobody watched do not count";
  // What the killed process wrote last names the call and the GPU.
  EXPECT_THAT(readWhole(node.out() / "record.json"),
              HasSubstr("NVML: nvmlDeviceGetPowerUsage of gpu2 has not returned for 0.5 s"));
  EXPECT_TRUE(processesWith(node.out().string()).empty());
}

TEST(Gpus, ACallThatCrashesIsAnErrorWithItsSignal) {
  GpuNode node;
  const auto result = node.run("gpu 2 call nvmlDeviceGetPowerUsage crash\n");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const auto findings = findingsIn(recordIn(node.out()));
  ASSERT_EQ(findings.size(), 2u) << result.out;
  for (const auto& [stage, verdict] : findings) EXPECT_THAT(verdict.detail, HasSubstr("SIGSEGV"));
}

TEST(Gpus, ADriverTooOldIsOneLineWithWhatToDo) {
  if (std::string_view(MUSTER_BUILD_CUDA) == "none")
    GTEST_SKIP() << "this build has no CUDA kernels that need a driver";
  GpuNode node;
  const auto result = node.run("driver 470.256.02\ncuda 11040\n", {"--no-gpu=skip"});
  EXPECT_EQ(result.exitCode, 3) << "a GPU whose driver is too old is no machine without GPU: " << result.out;
  EXPECT_THAT(result.out, HasSubstr("the NVIDIA driver 470.256.02 (CUDA 11.4) is too old"));
  EXPECT_THAT(result.out, HasSubstr("cuda-compat-"));
}

/// A driver library without symbols, in the place of the real one.
TEST(Gpus, ALibraryThatIsNotNvmlIsNamedWithWhatItLacks) {
  const TempDir dir;
  std::filesystem::copy_file(buildDir() / "tests/fakes/nvml/fake-nvml-torn.so",
                             dir.path() / "libnvidia-ml.so.1");
  ProcessOptions options;
  options.environment["LD_LIBRARY_PATH"] = dir.path().string();
  const auto result = runMuster(
      {"run", plan("node-quick.toml"), "--out", (dir.path() / "run").string(), "--no-gpu=skip"}, options);
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("this library lacks nvmlShutdown"));
}

bool hasNvidiaDriver() {
  return std::filesystem::exists("/proc/driver/nvidia/version");
}

/// Without the folders that a test runner adds for its own libraries: the fake driver is in one of them.
ProcessOptions noLibraryPath() {
  ProcessOptions options;
  options.environment["LD_LIBRARY_PATH"] = "";
  return options;
}

TEST(NoGpu, NodeFullIsIncompleteAndSaysInOneLineThatThereIsNoDriver) {
  if (hasNvidiaDriver()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  const TempDir dir;
  const auto result =
      runMuster({"run", plan("node-full.toml"), "--out", (dir.path() / "run").string()}, noLibraryPath());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out + result.err, HasSubstr("no NVIDIA driver was found (libnvidia-ml.so.1"));
}

TEST(NoGpu, NodeFullIsSkippedWhereThatIsAllowed) {
  if (hasNvidiaDriver()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  const TempDir dir;
  const auto result =
      runMuster({"run", plan("node-full.toml"), "--out", (dir.path() / "run").string(), "--no-gpu=skip"},
                noLibraryPath());
  EXPECT_EQ(result.exitCode, 5) << result.out << result.err;
  EXPECT_EQ(recordIn(dir.path() / "run").acceptance, Acceptance::kNoGpu);
}

}  // namespace
}  // namespace muster::testing

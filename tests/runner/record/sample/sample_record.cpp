// SPDX-License-Identifier: Apache-2.0
// See sample_record.h.
#include "tests/runner/record/sample/sample_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runner/core/units.h"
#include "runner/system/files.h"

namespace muster::testing {
namespace {

constexpr int kGpus = 8;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kStart = 1795230000;

/// A number in [-1, 1] that depends on its arguments only.
double wobble(int a, int b, int c = 0) {
  const double x = std::sin(a * 12.9898 + b * 78.233 + c * 37.719) * 43758.5453;
  return 2 * (x - std::floor(x)) - 1;
}

std::string gpu(int index) {
  return fmt::format("gpu{}", index);
}

/// One metric of one case: its expectation and what every GPU reached.
struct Figure {
  std::string metric;
  std::string unit;
  Labels labels;
  double typical = 0;
  double limit = 0;
  CheckKind kind = CheckKind::kMin;
  std::string source;
  std::string remedy;
  Severity severity = Severity::kFail;
};

Expectation expectationOf(const Figure& figure) {
  Expectation e;
  e.metric = figure.metric;
  e.where = figure.labels;
  e.kind = figure.kind;
  e.limit = figure.limit;
  e.unit = figure.unit;
  e.severity = figure.severity;
  e.source = figure.source;
  e.remedy = figure.remedy;
  e.origin = "profile h100-sxm5-80gb";
  e.at = "h100-sxm5-80gb.toml:41";
  return e;
}

std::string caseIdOf(const StageRecord& stage, const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += (text.empty() ? "" : ",") + key + "=" + value;
  return text.empty() ? stage.name : fmt::format("{}[{}]", stage.name, text);
}

Measurement measure(const StageRecord& stage, const Figure& figure, int index, double value) {
  Measurement m;
  m.metric = figure.metric;
  m.unit = figure.unit;
  m.direction = figure.kind == CheckKind::kMax ? Direction::kLower : Direction::kHigher;
  m.labels = figure.labels;
  m.caseId = caseIdOf(stage, figure.labels);
  m.rank = index;
  m.device = gpu(index);
  for (int i = 0; i < 10; ++i) m.samples.push_back(value * (1 + 0.002 * wobble(index, i, 3)));
  return m;
}

Verdict judge(const StageRecord& stage, const Figure& figure, int index, const Measurement& m) {
  Verdict v;
  v.stage = stage.name;
  v.caseId = m.caseId;
  v.metric = m.metric;
  v.device = gpu(index);
  v.rank = index;
  v.labels = m.labels;
  v.expectation = expectationOf(figure);
  v.observed = summarize(m.samples).median;
  v.observedText = formatQuantity(v.observed, m.unit);
  v.limit = figure.limit;
  const bool isMax = figure.kind == CheckKind::kMax;
  v.limitText = (isMax ? "at most " : "at least ") + formatQuantity(figure.limit, figure.unit);
  v.margin = figure.limit == 0 ? kNaN : (isMax ? -1 : 1) * (v.observed - figure.limit) / figure.limit;
  const bool met = isMax ? v.observed <= figure.limit : v.observed >= figure.limit;
  v.outcome = met ? Outcome::kPass : figure.severity == Severity::kWarn ? Outcome::kWarn : Outcome::kFail;
  if (!met)
    v.detail = fmt::format("{} on {}: {}, required {}", figure.metric, v.device, v.observedText, v.limitText);
  v.remedy = figure.remedy;
  return v;
}

/// Measures and judges `figure` on every GPU; `slow` of them reaches only `share`.
void addFigure(StageRecord& stage, const Figure& figure, int slow = -1, double share = 1) {
  const std::string id = caseIdOf(stage, figure.labels);
  const bool known =
      std::any_of(stage.cases.begin(), stage.cases.end(), [&](const auto& c) { return c.id == id; });
  if (!known) {
    Json params = Json::object();
    for (const auto& [key, value] : figure.labels) params[key] = value;
    params["warmup"] = 2;
    stage.cases.push_back({id, params});
  }
  for (int i = 0; i < kGpus; ++i) {
    const double value = figure.typical * (1 + 0.012 * wobble(i, static_cast<int>(figure.metric.size()))) *
                         (i == slow ? share : 1);
    stage.measurements.push_back(measure(stage, figure, i, value));
    stage.verdicts.push_back(judge(stage, figure, i, stage.measurements.back()));
  }
}

StageRecord makeStage(const std::string& name, const std::string& plugin, const std::string& test,
                      double started, double duration) {
  StageRecord stage;
  stage.name = name;
  stage.plugin = plugin;
  stage.pluginVersion = "0.1.0";
  stage.test = test;
  stage.scope = Scope::kDevice;
  stage.state = StageState::kRan;
  stage.started = kStart + started;
  stage.duration = duration;
  stage.timeout = 300;
  stage.outcome = Outcome::kPass;
  for (int i = 0; i < kGpus; ++i) {
    RankRecord rank;
    rank.rank = i;
    rank.device = gpu(i);
    rank.state = RankOutcome::kOk;
    rank.rerun = fmt::format("muster-host --request muster-out/requests/{}-rank{}.json", name, i);
    stage.ranks.push_back(rank);
  }
  return stage;
}

TelemetrySeries makeSeries(const std::string& metric, const std::string& unit, int index, double idle,
                           double load, double rise, double duration) {
  TelemetrySeries series;
  series.metric = metric;
  series.unit = unit;
  series.device = gpu(index);
  for (int i = 0; i < 120; ++i) {
    const double t = duration * i / 119;
    series.time.push_back(std::round(t * 100) / 100);
    const double share = 1 - std::exp(-t / rise);
    series.value.push_back(std::round(10 * (idle + (load - idle) * share + 0.01 * load * wobble(index, i))) /
                           10);
  }
  series.summary = summarize(series.value);
  return series;
}

void addTelemetry(StageRecord& stage, double load, int hot) {
  for (int i = 0; i < kGpus; ++i) {
    const bool isHot = i == hot;
    stage.telemetry.push_back(makeSeries("telemetry.temperature", "degC", i, 34, (isHot ? 88 : 63) * load,
                                         stage.duration / 4, stage.duration));
    stage.telemetry.push_back(makeSeries("telemetry.power", "W", i, 90, 690 * load, 1, stage.duration));
    stage.telemetry.push_back(makeSeries("telemetry.clock", "Hz", i, 1.98e9, isHot ? 1.31e9 : 1.97e9,
                                         stage.duration / 3, stage.duration));
    TelemetrySeries ecc = makeSeries("telemetry.ecc_uncorrected", "count", i, 0, 0, 1, stage.duration);
    for (auto& value : ecc.value) value = 0;
    ecc.summary = summarize(ecc.value);
    stage.telemetry.push_back(ecc);
  }
}

constexpr const char* kAzure = "Azure AI-benchmarking-guide, H100 SXM5, driver 550.54, CUDA 12.4, n=128";
constexpr const char* kFryer =
    "huggingface/gpu-fryer, H100 SXM5, BF16 8192x8192x8192, 730 TFLOP/s measured, less 8%";
constexpr const char* kHealth = "azurehpc-health-checks, H100 limits";
constexpr const char* kClockRemedy =
    "Check clocks, power cap and cooling: nvidia-smi -q -d PERFORMANCE,CLOCK,POWER. If it stays slow, swap "
    "the GPU.";

Figure gemmFigure(const std::string& dtype, double typical, double limit) {
  return {"compute.gemm_throughput", "FLOP/s", {{"dtype", dtype}}, typical, limit,
          CheckKind::kMin,           kFryer,   kClockRemedy};
}

StageRecord gemmStage(int slow, double share) {
  StageRecord stage = makeStage("gemm", "compute", "gemm", 9, 41.5);
  stage.needs = {"env"};
  stage.repeat = 3;
  addFigure(stage, gemmFigure("bf16", 728e12, 672e12), slow, share);
  addFigure(stage, gemmFigure("fp8_e4m3", 1395e12, 1290e12), slow, share);
  addFigure(stage, gemmFigure("tf32", 372e12, 343e12), slow, share);
  addFigure(stage, {"compute.gemm_mismatches",
                    "count",
                    {{"dtype", "bf16"}},
                    0,
                    0,
                    CheckKind::kMax,
                    "",
                    "Wrong results mean silent data corruption: take the GPU out of service."});
  addTelemetry(stage, 1, slow);
  return stage;
}

StageRecord memoryStage(int slow, double share) {
  StageRecord stage = makeStage("memory-bandwidth", "memory", "bandwidth", 51, 18.2);
  stage.needs = {"env"};
  for (const auto& [op, typical, limit] : {std::tuple<const char*, double, double>{"copy", 2.9e12, 2.75e12},
                                           {"triad", 2.97e12, 2.82e12},
                                           {"read", 3.05e12, 2.9e12},
                                           {"write", 2.98e12, 2.8e12}})
    addFigure(stage,
              {"memory.bandwidth",
               "B/s",
               {{"op", op}},
               typical,
               limit,
               CheckKind::kMin,
               kAzure,
               "Check the memory clock and for row remaps: nvidia-smi -q -d ROW_REMAPPER."},
              slow, share);
  addTelemetry(stage, 0.8, -1);
  return stage;
}

StageRecord hostCopyStage() {
  StageRecord stage = makeStage("host-copy", "memory", "host_copy", 70, 22);
  stage.needs = {"env"};
  for (int power = 16; power <= 30; power += 2)
    for (const char* op : {"h2d", "d2h"}) {
      const double bytes = std::exp2(power);
      const double full = 52e9 * bytes / (bytes + 4e6);
      addFigure(stage, {"memory.host_copy_bandwidth",
                        "B/s",
                        {{"bytes", fmt::format("{:.0f}", bytes)}, {"op", op}},
                        full,
                        full * 0.9,
                        CheckKind::kMin,
                        kHealth,
                        "Check PCIe generation and width under load."});
    }
  return stage;
}

StageRecord envStage() {
  StageRecord stage = makeStage("env", "env", "health", 0, 8.4);
  stage.scope = Scope::kNode;
  stage.ranks.resize(1);
  stage.ranks[0].device = "";
  addFigure(stage,
            {"env.pcie_width", "count", {}, 16, 15, CheckKind::kMin, kHealth, "Reseat the GPU baseboard."});
  Measurement kernel;
  kernel.metric = "env.kernel";
  kernel.unit = "text";
  kernel.text = "6.8.0-1015-nvidia";
  kernel.caseId = "env";
  kernel.informational = true;
  stage.measurements.push_back(kernel);
  return stage;
}

Json deviceJson(int index) {
  return {{"index", index},
          {"id", gpu(index)},
          {"kind", "gpu"},
          {"name", "NVIDIA H100 80GB HBM3"},
          {"uuid", fmt::format("GPU-5f0c1b2a-77aa-4e0d-9c11-0000000000{:02d}", index)},
          {"serial", fmt::format("16523240{:05d}", 41100 + index * 7)},
          {"pci_id", "10de:2330"},
          {"pci_address", fmt::format("0000:{:02x}:00.0", 0x18 + index * 0x11)},
          {"memory_bytes", 85520809984ull},
          {"numa_node", index / 4},
          {"facts", {{"driver", "550.54.15"}, {"vbios", "96.00.A5.00.01"}, {"compute_capability", "9.0"}}}};
}

Json inventoryJson(const std::string& node) {
  Json devices = Json::array();
  for (int i = 0; i < kGpus; ++i) devices.push_back(deviceJson(i));
  return {
      {"host",
       {{"name", node},
        {"cpu", "2 x Intel Xeon Platinum 8480C"},
        {"cores", 112},
        {"memory_bytes", 2164663517184ull},
        {"numa_nodes", 2},
        {"clock_source", "tsc"},
        {"shm_bytes", 1082331758592ull}}},
      {"devices", devices},
      {"software",
       {{"kernel", "6.8.0-1015-nvidia"}, {"os", "Ubuntu 22.04.4 LTS"}, {"cuda", "12.4"}, {"nccl", "2.21.5"}}},
      {"nics",
       {{{"name", "mlx5_0"}, {"rate", "400 Gb/s"}, {"state", "active"}, {"firmware", "28.39.1002"}},
        {{"name", "mlx5_1"}, {"rate", "400 Gb/s"}, {"state", "active"}, {"firmware", "28.39.1002"}}}}};
}

constexpr const char* kPlanText =
    "schema = 1\nname = \"node-quick\"\nsku = \"auto\"\nbackend = \"cuda\"\n\n[[stage]]\nname = \"env\"\n"
    "plugin = \"env\"\ntest = \"health\"\n\n[[stage]]\nname = \"gemm\"\nplugin = \"compute\"\ntest = "
    "\"gemm\"\n"
    "needs = [\"env\"]\nrepeat = 3\n[stage.matrix]\ndtype = [\"bf16\", \"fp8_e4m3\", \"tf32\"]\n";

Record baseRecord(const std::string& node) {
  Record r;
  r.toolVersion = "0.1.0";
  r.buildId = "0.1.0-1ee5e15b0a42";
  for (const char* file : {"muster", "muster-host", "backend_cuda.so"}) r.binaries[file] = sha256Hex(file);
  r.runId = "20261121T031000Z-5ac1";
  r.node = node;
  r.started = kStart;
  r.finished = kStart + 96;
  r.simulated = true;
  r.scenario = "h100x8-healthy";
  r.backend = "sim";
  r.seed = 42;
  r.bootId = "0f5b6c1e-9a51-4d0c-8f8e-2f1d3c4b5a69";
  r.plan = {"node-quick", "plans/node-quick.toml", sha256Hex(kPlanText), kPlanText};
  r.profile = {"h100-sxm5-80gb", "skus/h100-sxm5-80gb.toml", sha256Hex("profile"),
               "name = \"h100-sxm5-80gb\"\n"};
  r.skuHow = "matched by PCI id 10de:2330, name and memory";
  r.command = {"muster", "run", "plans/node-quick.toml", "--simulate", "plans/scenarios/h100x8-healthy.toml"};
  r.inventory = inventoryJson(node);
  r.launcher = {{"kind", "none"}};
  r.environment = {{"CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7"}, {"NCCL_IB_HCA", "mlx5"}};
  r.peaks = {{"flops.bf16", 989.4e12}, {"flops.fp8_e4m3", 1978.9e12}, {"memory_bandwidth", 3.35e12}};
  r.peaksFrom = "profile h100-sxm5-80gb";
  return r;
}

/// gpu5 dies in one case of its stage: one error verdict, and the rank that tells how.
StageRecord crashedStage() {
  StageRecord stage = makeStage("memory-pattern", "memory", "pattern", 92, 3.1);
  addFigure(stage, {"memory.pattern_errors",
                    "count",
                    {{"pattern", "walking"}},
                    0,
                    0,
                    CheckKind::kMax,
                    "",
                    "Take the GPU out of service."});
  Verdict& v = stage.verdicts[5];
  v = Verdict();
  v.outcome = Outcome::kError;
  v.stage = stage.name;
  v.caseId = "memory-pattern[pattern=walking]";
  v.device = "gpu5";
  v.rank = 5;
  v.observed = v.limit = v.margin = kNaN;
  v.detail = "rank 5 on gpu5 ended by SIGSEGV after \"pass 3 of 8\"";
  v.remedy = "Run the rank again; if it crashes again, look at dmesg and swap the GPU.";
  RankRecord& rank = stage.ranks[5];
  rank.state = RankOutcome::kError;
  rank.signal = "SIGSEGV";
  rank.exitCode = -1;
  rank.error = "ended by SIGSEGV before done";
  rank.lastProgress = "pass 3 of 8";
  rank.outputTail = "pattern: walking ones, 64 GiB\npass 2 ok\npass 3 \x1b[31mat 0x7f\x1b[0m\n";
  stage.log = {"gpu5: correctable ECC count rose by 12 while the pattern ran"};
  stage.artifacts = {
      {"rank 5 output", "artifacts/memory-pattern/rank5.log", "text/plain", 18230, sha256Hex("log")}};
  return stage;
}

StageRecord skippedStage() {
  StageRecord stage = makeStage("storage", "storage", "read", 0, 0);
  stage.state = StageState::kSkipped;
  stage.reason = "no local NVMe device was found";
  stage.required = false;
  stage.ranks.clear();
  Verdict v;
  v.outcome = Outcome::kSkipped;
  v.stage = stage.name;
  v.required = false;
  v.observed = v.limit = v.margin = kNaN;
  v.detail = stage.reason;
  stage.verdicts.push_back(v);
  return stage;
}

void setOutcome(StageRecord& stage, size_t index, Outcome outcome, const std::string& detail) {
  stage.verdicts[index].outcome = outcome;
  stage.verdicts[index].detail = detail;
}

}  // namespace

void settle(Record& record) {
  record.accounting = {};
  for (auto& stage : record.stages) {
    stage.outcome = Outcome::kPass;
    for (const auto& verdict : stage.verdicts) {
      record.accounting.add(verdict);
      stage.outcome = std::min(stage.outcome, verdict.outcome);
    }
  }
  record.accounting.expected = record.accounting.total();
}

Record healthyRecord() {
  Record record = baseRecord("node-17");
  record.stages = {envStage(), gemmStage(-1, 1), memoryStage(-1, 1), hostCopyStage()};
  settle(record);
  record.acceptance = Acceptance::kAccepted;
  record.exitCode = 0;
  return record;
}

Record rejudgedRecord() {
  Record record = healthyRecord();
  record.rejudged.push_back({sha256Hex("original"), record.finished + 60, "0.2.0", "0.2.0-abcdef012345",
                             "ours", sha256Hex("ours"), "", true});
  return record;
}

Record partialRecord() {
  Record record = healthyRecord();
  record.selection = {{"gemm"}, {"gpu5"}};
  record.rerun = {"muster", "run", "/plans/node.toml"};
  StageRecord selection;
  selection.name = kSelectionStage;
  selection.scope = Scope::kNode;
  selection.state = StageState::kSkipped;
  selection.outcome = Outcome::kSkipped;
  selection.reason = record.selection.text();
  Verdict skip;
  skip.outcome = Outcome::kSkipped;
  skip.stage = selection.name;
  skip.observed = skip.limit = skip.margin = std::numeric_limits<double>::quiet_NaN();
  skip.detail = selection.reason;
  selection.verdicts.push_back(skip);
  record.stages.push_back(selection);
  settle(record);
  record.acceptance = Acceptance::kPartial;
  record.exitCode = 3;
  record.reasons = {record.selection.text()};
  return record;
}

Record sickRecord() {
  Record record = baseRecord(kHostileName);
  record.scenario = "h100x8-one-slow-gpu";
  record.command.back() = "plans/scenarios/h100x8-one-slow-gpu.toml";
  record.stages = {envStage(),      gemmStage(3, 0.68), memoryStage(3, 0.96),
                   hostCopyStage(), crashedStage(),     skippedStage()};
  setOutcome(record.stages[2], 9, Outcome::kWarn,
             "memory.bandwidth on gpu1 is inside the warning band of 5%");
  auto& flaky = record.stages[3].verdicts[18];
  flaky.outcome = Outcome::kFlaky;
  flaky.detail = "failed on attempt 1, passed on attempt 2";
  flaky.attempts = {{1, Outcome::kFail, flaky.observed * 0.7}, {2, Outcome::kPass, flaky.observed}};
  setOutcome(record.stages[3], 40, Outcome::kWaived,
             "waived: riser cable on order (approved by J. Doe, until 2026-12-31)");
  auto& unjudged = record.stages[0].verdicts[2];
  unjudged.outcome = Outcome::kUnjudged;
  unjudged.expectation.reset();
  unjudged.limitText.clear();
  unjudged.detail = "no limit";
  settle(record);
  record.acceptance = Acceptance::kRejected;
  record.exitCode = 1;
  record.reasons = {fmt::format("{} requirements were not met", record.accounting.of(Outcome::kFail)),
                    "1 verdict is flaky", "1 case could not be measured"};
  return record;
}

Record manyFaults(int count) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  stage.verdicts.resize(1);
  stage.verdicts[0].outcome = Outcome::kFail;
  stage.verdicts[0].metric = "env.ecc_uncorrected";
  stage.verdicts[0].expectation->unit = "count";
  for (int i = 0; i < count; ++i) {
    if (i > 0) stage.verdicts.push_back(stage.verdicts[0]);
    stage.verdicts.back().device = "g" + std::to_string(i);
    stage.verdicts.back().labels["device"] = stage.verdicts.back().device;
  }
  settle(record);
  return record;
}

TemplatesFolder::TemplatesFolder() {
  folder_.write("common/page.js", readWhole(sourceDir() / "templates" / "common" / "page.js"));
  for (const char* name : {"report.mustache", "report.css", "report.js"})
    folder_.write(std::string("report/") + name, readWhole(sourceDir() / "templates" / "report" / name));
  for (const char* name : {"fleet.mustache", "fleet.css", "fleet.js"})
    folder_.write(std::string("fleet/") + name, readWhole(sourceDir() / "templates" / "fleet" / name));
  folder_.write("record.schema.json", readWhole(sourceDir() / "runner" / "record" / "record.schema.json"));
}

}  // namespace muster::testing

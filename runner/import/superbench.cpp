// SPDX-License-Identifier: Apache-2.0
// SuperBench's results-summary.jsonl: one object for each node, with keys
// "benchmark[:annotation]/metric[:rank]", or "benchmark/run/metric[:rank]" of several runs. SuperBench exits
// with 0 although benchmarks failed: their return codes count here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

constexpr double kLargest = 1e30;          ///< no benchmark has such a value, in whatever unit
constexpr uint64_t kMostNodeRanks = 1024;  // of a node
constexpr size_t kMostResults = 1'000;     // runs of benchmarks times nodes
constexpr std::string_view kReturnCode = "return_code";

/// "gemm-flops:warm/0/bf16_tc_flops:3": benchmark "gemm-flops:warm", run "/0", metric "bf16_tc_flops",
/// rank 3. Of models the benchmark is "bert_models/pytorch-bert-large".
struct ResultKey {
  std::string benchmark, run, metric;
  std::optional<uint64_t> rank;
};

/// A benchmark without its annotation: "gemm-flops".
std::string_view kindOf(std::string_view benchmark) {
  return benchmark.substr(0, benchmark.find_first_of(":/"));
}

/// A value in GFLOP/s or GB/s that Muster measures, too.
struct SharedMetric {
  const char* kind;
  const char* name;
  const char* metric;
  const char* label;
  const char* value;
};
constexpr SharedMetric kSharedMetrics[] = {
    {"gemm-flops", "fp64_tc_flops", "compute.gemm_throughput", "dtype", "f64"},
    {"gemm-flops", "fp32_flops", "compute.gemm_throughput", "dtype", "f32"},
    {"gemm-flops", "tf32_tc_flops", "compute.gemm_throughput", "dtype", "tf32"},
    {"gemm-flops", "fp16_tc_flops", "compute.gemm_throughput", "dtype", "f16"},
    {"gemm-flops", "bf16_tc_flops", "compute.gemm_throughput", "dtype", "bf16"},
    {"mem-bw", "h2d_bw", "memory.host_to_device_bandwidth", "engine", "copy_engine"},
    {"mem-bw", "d2h_bw", "memory.device_to_host_bandwidth", "engine", "copy_engine"}};

/// Collectives as nccl-bw names them: "allreduce_8589934592_busbw".
constexpr std::pair<const char*, const char*> kCollectives[] = {
    {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
    {"broadcast", "broadcast"},  {"reduce", "reduce"},        {"alltoall", "alltoall"}};

/// What a metric of nccl-bw tells.
struct Collective {
  std::string op, bytes;
  /// {0, 1} in "allreduce_0_1:8589934592_busbw": the second group of a pattern's first round
  std::optional<std::pair<uint64_t, uint64_t>> group;
};

std::optional<Collective> collectiveOf(const std::string& metric) {
  std::string text = metric;
  std::replace(text.begin(), text.end(), ':', '_');
  const std::vector<std::string> parts = split(text, '_');
  if ((parts.size() != 3 && parts.size() != 5) || parts.back() != "busbw") return std::nullopt;
  const auto op = std::find_if(std::begin(kCollectives), std::end(kCollectives),
                               [&](const auto& one) { return parts.front() == one.first; });
  if (op == std::end(kCollectives) ||
      !std::all_of(parts.begin() + 1, parts.end() - 1, [](const std::string& p) { return wholeNumber(p); }))
    return std::nullopt;
  Collective told{op->second, parts[parts.size() - 2], {}};
  if (parts.size() == 5) told.group = {*wholeNumber(parts[1]), *wholeNumber(parts[2])};
  return told;
}

std::optional<ResultKey> keyOf(const std::string& text) {
  const size_t slash = text.rfind('/');
  if (text.starts_with('/') || slash == std::string::npos || slash + 1 == text.size()) return std::nullopt;
  ResultKey key{text.substr(0, slash), "", text.substr(slash + 1), std::nullopt};
  const size_t inner = key.benchmark.rfind('/');
  if (inner != std::string::npos && wholeNumber(std::string_view(key.benchmark).substr(inner + 1))) {
    key.run = key.benchmark.substr(inner);
    key.benchmark.resize(inner);
  }
  const size_t colon = key.metric.rfind(':');
  if (colon == std::string::npos) return key;
  key.rank = wholeNumber(std::string_view(key.metric).substr(colon + 1));
  if (key.rank) key.metric.resize(colon);
  return key;
}

/// A measurement without its value; nothing where Muster measures nothing of the kind.
std::optional<Measurement> measurementOf(const ResultKey& key, double value, const std::string& caseId) {
  for (const SharedMetric& known : kSharedMetrics)
    if (kindOf(key.benchmark) == known.kind && key.metric == known.name) {
      Measurement m = valueOf(known.metric, {{known.label, known.value}}, value * kGiga, caseId);
      if (std::string_view(known.kind) == "mem-bw")
        m.labels["numa"] = "near";  // it binds to the GPU's NUMA node
      return m;
    }
  if (kindOf(key.benchmark) != "nccl-bw") return std::nullopt;
  const std::optional<Collective> told = collectiveOf(key.metric);
  if (!told) return std::nullopt;
  Labels labels = {{"op", told->op}, {"bytes", told->bytes}};
  if (told->group) labels["group"] = fmt::format("{}_{}", told->group->first, told->group->second);
  return valueOf("collective.bus_bandwidth", std::move(labels), value * kGiga, caseId);
}

/// Whether Muster measures what a benchmark does, so that a result without a value lacks one.
bool isMeasured(const std::string& benchmark) {
  return kindOf(benchmark) == "nccl-bw" ||
         std::any_of(std::begin(kSharedMetrics), std::end(kSharedMetrics),
                     [&](const SharedMetric& known) { return kindOf(benchmark) == known.kind; });
}

/// What the file does not tell of a benchmark's values: limits for one size or number of ranks do not apply.
Labels untold(const std::string& benchmark) {
  if (kindOf(benchmark) == "gemm-flops") return {{"size", "unknown"}};
  if (kindOf(benchmark) == "nccl-bw") return {{"nodes", "unknown"}, {"ranks", "unknown"}};
  return {};
}

/// A benchmark and its run: {"gemm-flops", "/0"}; of a single run that is "".
using ResultId = std::pair<std::string, std::string>;

/// What one node tells.
struct Node {
  std::string name;
  size_t line = 0;
  std::map<std::string, std::string> errors;                 ///< benchmark -> first error, or none
  std::map<std::string, std::set<uint64_t>> codes;           ///< benchmark -> ranks with a return code
  std::map<ResultId, std::map<std::string, size_t>> values;  ///< metric -> how many
  std::map<ResultId, std::vector<std::pair<ResultKey, double>>> known;
  std::set<uint64_t> gpus;
  size_t others = 0;
  size_t taken = 0;  ///< values that are known, together with those of the nodes before
};

void takeReturnCode(const ResultKey& key, const Json& value, Node& node, ImportedFile& file) {
  std::string& error = node.errors[key.benchmark];
  node.codes[key.benchmark].insert(key.rank.value_or(0));
  if (value.is_number() && value.get<double>() == 0) return;
  ++file.failures;
  if (error.empty()) error = "its return code is " + printable(dumpJson(value), 40);
}

/// "gpu-burn/gpu_3_pass" and "gpu-burn/abort", beside a return code of 0.
void takeOwnVerdict(const ResultKey& key, double value, const Node& node, ImportedFile& file) {
  const bool failed = (key.metric.ends_with("_pass") && value == 0) || (key.metric == "abort" && value != 0);
  if (!failed) return;
  ++file.failures;
  addNote(file.notes, fmt::format("{}: {} {} is {}", printable(node.name, 80), printable(key.benchmark, 80),
                                  printable(key.metric, 80), value));
}

/// Whether a metric of a benchmark that Muster does not measure tells of its success.
bool isOwnTest(const std::string& metric) {
  for (const char* word : {"correct", "error", "fail", "success"})
    if (metric.find(word) != std::string::npos) return true;
  return false;
}

Status takeValue(const Source& source, const std::string& text, const Json& value, Node& node,
                 ImportedFile& file) {
  const auto key = keyOf(text);
  // "monitor/..." and "node" are of no benchmark.
  if (!key || kindOf(key->benchmark) == "monitor") return {};
  if (key->rank.value_or(0) >= kMostNodeRanks)
    return source.refuse(node.line, "a rank that is none: " + printable(text, 120));
  if (key->metric == kReturnCode) {
    takeReturnCode(*key, value, node, file);
    return {};
  }
  std::string& error = node.errors[key->benchmark];
  const bool known = measurementOf(*key, 1, "").has_value();
  if (!value.is_number() || !(std::abs(value.get<double>()) < kLargest)) {
    if (error.empty())
      error = fmt::format("{} is {}, no number", printable(text, 120), printable(dumpJson(value), 40));
    return {};
  }
  // nccl-tests' two decimals are 0.00 for a few bytes.
  if (known && value == 0 && kindOf(key->benchmark) == "nccl-bw" &&
      *wholeNumber(collectiveOf(key->metric)->bytes) <= 1024) {
    ++node.others;
    return {};
  }
  if (!known) {
    ++node.others;
    takeOwnVerdict(*key, value.get<double>(), node, file);
    if (error.empty() && isOwnTest(key->metric))
      error = fmt::format("Muster does not know what its {} must be", printable(key->metric, 80));
    return {};
  }
  if (value.get<double>() <= 0 && error.empty())
    error = fmt::format("{} is {}", printable(text, 120), value.get<double>());
  if (kindOf(key->benchmark) != "nccl-bw") node.gpus.insert(key->rank.value_or(0));
  const ResultId id(key->benchmark, key->run);
  ++node.values[id][key->metric];
  ++node.taken;
  node.known[id].emplace_back(*key, value.get<double>());
  return {};
}

Status readNode(const Source& source, const Json& json, size_t line, std::vector<Node>& nodes,
                ImportedFile& file) {
  Node node;
  node.line = line;
  JsonReader r(json, "");
  r.read("node", node.name);
  if (Status status = r.status(); !status.ok()) return refuseAt(source, line, status.error());
  if (nodes.size() >= kMostResults)
    return source.refuse(line, fmt::format("more than {} nodes", kMostResults));
  for (const Node& other : nodes)
    if (other.name == node.name)
      return source.refuse(line, fmt::format("a second result of {}, after that in line {}",
                                             printable(node.name, 80), other.line));
  node.taken = nodes.empty() ? 0 : nodes.back().taken;
  for (const auto& [key, value] : json.items()) {
    MUSTER_CHECK_OK(takeValue(source, key, value, node, file));
    const size_t results = std::max(node.errors.size(), node.values.size());
    if (const Status status = checkCounts(node.taken, results); !status.ok())
      return refuseAt(source, line, status.error());
  }
  nodes.push_back(std::move(node));
  return {};
}

/// Why a benchmark has no result on a node, whatever its return code says; empty: it has one, or another node
/// tells it (`shared`).
std::string errorOf(const Node& node, const ResultId& id, const std::set<ResultId>& shared) {
  const std::string& benchmark = id.first;
  const auto told = node.errors.find(benchmark);
  if (told == node.errors.end()) return fmt::format("{} has no result of it", printable(node.name, 80));
  if (!told->second.empty()) return told->second;
  if (const auto codes = node.codes.find(benchmark);
      codes != node.codes.end() && *codes->second.rbegin() >= codes->second.size())
    return fmt::format("it has a return code of rank {}, but of {} ranks in all", *codes->second.rbegin(),
                       codes->second.size());
  const auto values = node.values.find(id);
  if (values == node.values.end())
    return isMeasured(benchmark) && !(shared.contains(id) && node.codes.contains(benchmark))
               ? fmt::format("{} has no value of it", printable(node.name, 80))
               : "";
  if (!node.gpus.empty() && *node.gpus.rbegin() >= node.gpus.size())
    return fmt::format("it has values of GPU {}, but of {} GPUs in all", *node.gpus.rbegin(),
                       node.gpus.size());
  for (const auto& [metric, count] : values->second)
    if (!benchmark.starts_with("nccl-bw") && count < node.gpus.size())
      return fmt::format("{} has a value on {} of {} GPUs", printable(metric, 80), count, node.gpus.size());
  return "";
}

void addCase(const Node& node, const ResultId& id, std::string error, bool prefixed, ImportedFile& file) {
  const std::string& benchmark = id.first;
  ImportedCase one;
  one.id = (prefixed ? printable(node.name, 80) + "/" : "") + printable(benchmark, 80) + id.second;
  one.error = std::move(error);
  one.labels = untold(benchmark);
  const auto deviceOf = [&](uint64_t gpu) {
    return (prefixed ? printable(node.name, 80) + ":" : "") + fmt::format("gpu{}", gpu);
  };
  const bool perGpu = !benchmark.starts_with("nccl-bw") && node.values.contains(id);
  const std::vector<uint64_t> gpus(node.gpus.begin(), node.gpus.end());
  if (perGpu)
    for (const uint64_t gpu : gpus) one.devices.push_back(deviceOf(gpu));
  const auto known = node.known.find(id);
  if (known == node.known.end()) {
    file.cases.push_back(std::move(one));
    return;
  }
  for (const auto& [key, value] : known->second) {
    Measurement m = *measurementOf(key, value, one.id);
    if (perGpu) {
      m.rank = static_cast<int>(std::find(gpus.begin(), gpus.end(), key.rank.value_or(0)) - gpus.begin());
      m.device = m.labels["device"] = deviceOf(key.rank.value_or(0));
    }
    one.metrics.insert(m.metric);
    file.measurements.push_back(std::move(m));
  }
  file.cases.push_back(std::move(one));
}

/// What all nodes must have: each run of a benchmark that one of them has.
std::set<ResultId> resultsOf(const std::vector<Node>& nodes) {
  std::set<ResultId> results;
  std::set<std::string> withValues;
  for (const Node& node : nodes)
    for (const auto& [id, metrics] : node.values) {
      results.insert(id);
      withValues.insert(id.first);
    }
  for (const Node& node : nodes)
    for (const auto& [benchmark, error] : node.errors)
      if (!withValues.contains(benchmark)) results.emplace(benchmark, "");
  return results;
}

/// Whether a traffic pattern is whole: rounds and groups are numbered from 0, each round has as many groups,
/// and each group all sizes. A group that was killed leaves nothing at all.
bool isWholePattern(const std::map<std::pair<uint64_t, uint64_t>, std::set<std::string>>& groups) {
  const uint64_t perRound = groups.rbegin()->first.second + 1;
  uint64_t at = 0;
  return std::all_of(groups.begin(), groups.end(),
                     [&](const auto& group) {
                       const bool isNext = group.first == std::pair(at / perRound, at % perRound);
                       ++at;
                       return isNext && group.second == groups.begin()->second;
                     }) &&
         at % perRound == 0;
}

/// Collectives of several nodes ("mode: mpi"): only the first rank tells the rates, of a traffic pattern that
/// of each group. The other nodes have return codes, all of them as many.
std::set<ResultId> sharedResultsOf(const std::vector<Node>& nodes) {
  std::map<ResultId, size_t> tellers;
  std::map<ResultId, std::map<std::pair<uint64_t, uint64_t>, std::set<std::string>>> groups;
  for (const Node& node : nodes)
    for (const auto& [id, values] : node.known) {
      if (kindOf(id.first) != "nccl-bw") continue;
      ++tellers[id];
      for (const auto& [key, value] : values)
        if (const auto told = collectiveOf(key.metric); told->group)
          groups[id][*told->group].insert(told->op + told->bytes);
    }
  std::set<ResultId> results;
  for (const auto& [id, count] : tellers) {
    const auto pattern = groups.find(id);
    const auto codesOf = [&, &benchmark = id.first](const Node& node) {
      const auto codes = node.codes.find(benchmark);
      return codes == node.codes.end() ? 0 : codes->second.size();
    };
    const bool isEqual = std::all_of(nodes.begin(), nodes.end(), [&](const Node& node) {
      return codesOf(node) == codesOf(nodes.front());
    });
    if (pattern == groups.end() ? count == 1 : isEqual && isWholePattern(pattern->second)) results.insert(id);
  }
  return results;
}

/// A benchmark that passed and that no case tells of.
std::string codesText(const Node& node, const std::string& benchmark) {
  const auto codes = node.codes.find(benchmark);
  const size_t count = codes == node.codes.end() ? 0 : codes->second.size();
  return fmt::format("{} ({})", printable(benchmark, 80),
                     count == 0 ? "no return code" : fmt::format("return code 0 of {} ranks", count));
}

bool isSuperBench(const Source& source) {
  const std::optional<Json> first = source.json ? source.json : firstJsonLine(source);
  if (!first || !holds(*first, "node") || !(*first)["node"].is_string()) return false;
  return std::any_of(first->begin(), first->end(), [](const Json& value) { return value.is_number(); }) &&
         std::any_of(first->items().begin(), first->items().end(),
                     [](const auto& item) { return keyOf(item.key()).has_value(); });
}

Result<ImportedFile> readSuperBench(const Source& source) {
  ImportedFile file;
  std::vector<Node> nodes;
  MUSTER_CHECK_OK(eachJsonLine(
      source, [&](const Json& json, size_t line) { return readNode(source, json, line, nodes, file); }));
  const std::set<ResultId> results = resultsOf(nodes), shared = sharedResultsOf(nodes);
  if (nodes.size() * results.size() > kMostResults)
    return source.refuse(
        "",
        fmt::format("{} nodes have results of {} benchmarks, more than {} in all; import fewer nodes at once",
                    nodes.size(), results.size(), kMostResults));
  for (const Node& node : nodes) {
    std::vector<std::string> unmeasured, elsewhere;
    for (const ResultId& id : results) {
      std::string error = errorOf(node, id, shared);
      if (!error.empty() || node.known.contains(id))
        addCase(node, id, std::move(error), nodes.size() > 1, file);
      else
        (isMeasured(id.first) ? elsewhere : unmeasured).push_back(codesText(node, id.first));
    }
    if (!unmeasured.empty())
      addNote(file.notes, fmt::format("{}: Muster has no metric for {}", printable(node.name, 80),
                                      join(unmeasured, ", ")));
    if (!elsewhere.empty())
      addNote(file.notes, fmt::format("{}: the rates of {} are in the lines of the groups' first ranks",
                                      printable(node.name, 80), join(elsewhere, ", ")));
    file.hosts.push_back(printable(node.name, 200));
    file.ranks += static_cast<int>(node.gpus.size());
    if (node.others > 0)
      file.notes.push_back(
          fmt::format("{}: {} values have no metric of Muster's", printable(node.name, 80), node.others));
  }
  if (file.cases.empty()) file.cases.push_back({"superbench", {}, {}, {}, "the file holds no benchmark"});
  file.tool = "SuperBench";
  file.limits = "return codes and tests of its own, and no rate";
  file.verdict = file.failures > 0 ? ToolVerdict::kFailed : ToolVerdict::kPassed;
  file.said = file.failures > 0 ? fmt::format("{} return codes or tests failed", file.failures)
                                : "every return code is 0";
  return file;
}

}  // namespace

const Format kSuperBench = {"superbench", isSuperBench, readSuperBench};

}  // namespace muster::imports

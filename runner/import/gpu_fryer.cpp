// SPDX-License-Identifier: Apache-2.0
// gpu-fryer: the mean rate of each GPU in products of 8192 x 8192. The tool itself compares GPUs with the
// best one of their node: where all are slow, it calls them healthy.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

constexpr size_t kMostFried = 1024;
constexpr const char* kFry = "gpu-fryer";

/// What is told of one GPU at the end.
struct Fried {
  bool known = false;
  double rate = 0;  ///< GFLOP/s
  bool told = false, throttled = false;
};

struct Frying {
  std::vector<std::string> names;  ///< of detected GPUs, by number
  std::set<std::string_view> ids;
  std::vector<std::string> dtypes;
  std::vector<Fried> gpus;
  std::vector<std::string> reasons;  ///< those that are kept as notes
  int unhealthy = 0;                 ///< GPUs that have one
  std::string verdict;
  std::string rest;  ///< the first line behind the verdict that gpu-fryer does not print
};

/// `GPU #3: ` or `Detected GPU #3: ` with what follows; nothing in other lines.
std::optional<std::pair<size_t, std::string_view>> gpuLine(std::string_view line, std::string_view begin) {
  if (!line.starts_with(begin)) return std::nullopt;
  line.remove_prefix(begin.size());
  const size_t colon = line.find(": ");
  const auto number = colon == std::string_view::npos ? std::nullopt : wholeNumber(line.substr(0, colon));
  if (!number || *number >= kMostFried) return std::nullopt;
  return std::pair(static_cast<size_t>(*number), trim(line.substr(colon + 2)));
}

Status readDetected(const Source& source, size_t line, size_t gpu, std::string_view rest, Frying& frying) {
  const size_t end = rest.rfind("\" (");
  if (gpu != frying.names.size() || !rest.starts_with('"') || end == std::string_view::npos || end == 0)
    return source.refuse(line, "no GPU as gpu-fryer lists it, or one out of order: " + printable(rest, 120));
  if (!frying.ids.insert(rest.substr(end)).second)
    return source.refuse(line, "it lists this GPU twice: " + printable(rest, 120));
  frying.names.emplace_back(rest.substr(1, end - 1));
  return {};
}

Status readPrecisions(const Source& source, size_t line, std::string_view rest, Frying& frying) {
  constexpr std::pair<const char*, const char*> kTypes[] = {
      {"FP32", "tf32"}, {"BF16", "bf16"}, {"FP8", "fp8_e4m3"}};  // FP32 products run as TF32 there
  for (const std::string_view word : wordsOf(rest)) {
    const auto type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.first == word; });
    if (type == std::end(kTypes)) return source.refuse(line, "unknown precision " + printable(word, 40));
    frying.dtypes.emplace_back(type->second);
  }
  return {};
}

/// "51494 Gflops/s (min: 50577.53, max: 51677.05, dev: 51493.79)"
Status readRate(const Source& source, size_t line, size_t gpu, std::string_view rest, Frying& frying) {
  const std::vector<std::string_view> words = wordsOf(rest);
  const auto rate = words.size() < 2 ? std::nullopt : finiteNumber(words[0]);
  if (!rate || *rate < 0 || words[1] != "Gflops/s" || !rest.ends_with(')'))
    return source.refuse(line, "no result as gpu-fryer prints it: " + printable(rest, 120));
  if (frying.gpus.size() <= gpu) frying.gpus.resize(gpu + 1);
  if (frying.gpus[gpu].known) return source.refuse(line, fmt::format("a second result of GPU {}", gpu));
  frying.gpus[gpu].known = true;
  frying.gpus[gpu].rate = *rate;
  return {};
}

/// "Throttling HW: false, Thermal SW: false, Thermal HW: false", of the GPU before it.
Status readThrottling(const Source& source, size_t line, std::string_view text, Frying& frying) {
  const auto words = split(std::string(text), ',');
  if (frying.gpus.empty() || frying.gpus.back().told || words.size() != 3)
    return source.refuse(line, "no line of throttling as gpu-fryer prints it: " + printable(text, 120));
  Fried& gpu = frying.gpus.back();
  gpu.told = true;
  for (const std::string& word : words) {
    const bool on = trim(word).ends_with(": true");
    if (!on && !trim(word).ends_with(": false"))
      return source.refuse(line, "neither true nor false: " + printable(word, 120));
    gpu.throttled = gpu.throttled || on;
  }
  return {};
}

Status readLine(const Source& source, std::string_view line, size_t number, Frying& frying) {
  if (const auto detected = gpuLine(line, "Detected GPU #"))
    return readDetected(source, number, detected->first, detected->second, frying);
  if (line.starts_with("Using precision(s):"))
    return readPrecisions(source, number, behind(line, "):"), frying);
  if (const auto gpu = gpuLine(line, "GPU #"); gpu && !gpu->second.starts_with("Using "))
    return readRate(source, number, gpu->first, gpu->second, frying);
  const std::string_view text = trim(line);
  if (text.starts_with("Throttling HW:")) return readThrottling(source, number, text, frying);
  if (line.starts_with("All GPUs seem healthy") || line.starts_with("Some GPUs are not healthy")) {
    if (!frying.verdict.empty()) return source.refuse(number, "a second verdict; import each run as a file");
    frying.verdict = line.starts_with("All") ? "All GPUs seem healthy" : "Some GPUs are not healthy";
  } else if (!frying.verdict.empty() && frying.rest.empty() && !text.empty() && !text.starts_with("- GPU ") &&
             !text.starts_with("Freeing GPUs") && !isUsualEnd(text))
    frying.rest = printable(text, 200);
  if (line.starts_with("  - GPU ")) {
    ++frying.unhealthy;
    addNote(frying.reasons, printable(line.substr(4), 200));
  }
  return {};
}

/// Why there is no result, whatever gpu-fryer says; empty: there is one.
std::string errorOf(const Frying& frying) {
  for (size_t i = 0; i < frying.gpus.size(); ++i) {
    if (!(frying.gpus[i].rate > 0)) return fmt::format("gpu{} computed nothing", i);
    if (!frying.gpus[i].told) return fmt::format("nothing is said of the throttling of gpu{}", i);
  }
  if (frying.dtypes.size() != 1) return "it ran in no single precision, so its rates are of no type";
  return frying.rest.empty() ? "" : "gpu-fryer does not end with the line: " + frying.rest;
}

void addGpu(const Frying& frying, size_t i, ImportedFile& file) {
  const std::string name = fmt::format("gpu{}", i);
  const auto add = [&](const char* metric, Labels labels, double value) {
    labels["device"] = name;
    Measurement m = valueOf(metric, std::move(labels), value, kFry);
    m.device = name;
    m.rank = static_cast<int>(i);
    file.measurements.push_back(std::move(m));
  };
  const Fried& gpu = frying.gpus[i];
  add("imported.test_passed", {{"test", "no throttling"}}, gpu.throttled ? 0 : 1);
  if (frying.dtypes.size() == 1 && gpu.rate > 0)
    add("compute.sustained_throughput", {{"dtype", frying.dtypes.front()}}, gpu.rate * kGiga);
}

ImportedFile fileOf(const Frying& frying) {
  ImportedFile file;
  ImportedCase one{kFry, {}, {"compute.sustained_throughput", "imported.test_passed"}, {}, errorOf(frying)};
  if (frying.dtypes.size() == 1) one.labels["dtype"] = frying.dtypes.front();
  file.tool = "gpu-fryer";
  file.ranks = static_cast<int>(frying.gpus.size());
  for (const std::string& name : frying.names) addOnce(file.deviceNames, name);
  for (size_t i = 0; i < frying.gpus.size(); ++i) {
    one.devices.push_back(fmt::format("gpu{}", i));
    addGpu(frying, i, file);
  }
  file.cases.push_back(std::move(one));
  file.limits = "each GPU's rate relative to the best GPU, and throttling";
  const bool healthy = frying.verdict.starts_with("All");
  file.verdict = healthy ? ToolVerdict::kPassed : ToolVerdict::kFailed;
  file.failures = healthy ? 0 : std::max(1, frying.unhealthy);
  file.said = frying.verdict;
  file.notes = frying.reasons;
  file.notes.emplace_back(
      "its inputs have nearly constant exponents: rates in bf16 are about 6% above those of random data");
  return file;
}

bool isGpuFryer(const Source& source) {
  return !source.json && source.text.find("Detected GPU #") != std::string_view::npos &&
         source.text.find("Using precision(s):") != std::string_view::npos;
}

Result<ImportedFile> readGpuFryer(const Source& source) {
  Frying frying;
  size_t last = 0;
  MUSTER_CHECK_OK(eachLine(source.text, [&](std::string_view line, size_t number) -> Status {
    last = number;
    return readLine(source, line, number, frying);
  }));
  const bool complete =
      frying.gpus.size() == frying.names.size() && !frying.verdict.empty() &&
      std::all_of(frying.gpus.begin(), frying.gpus.end(), [](const Fried& gpu) { return gpu.known; });
  if (!complete || frying.gpus.empty())
    return source.refuse(
        last,
        "the file ends before the result of each detected GPU and gpu-fryer's verdict: it is "
        "truncated, or the run was interrupted" +
            (source.error.empty() ? "" : ": " + source.error));
  return fileOf(frying);
}

}  // namespace

const Format kGpuFryer = {"gpu-fryer", isGpuFryer, readGpuFryer};

}  // namespace muster::imports

// SPDX-License-Identifier: Apache-2.0
// gpu-burn's output: which GPUs computed, and whether their results were right. Its rates are of no stated
// shape, so nothing of it meets a limit: it can reject a GPU and never accept one.
#include <fmt/format.h>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

constexpr size_t kMostGpus = 1024;
constexpr double kWhole = 99;  // percent of the run time that the last line of progress must show
constexpr const char* kBurn = "burn";

/// What the lines of progress and the last lines say of one GPU.
struct Burned {
  double products = 0;  ///< -1: its process died
  bool wrong = false;
  bool faulty = false;
  bool listed = false;
};

struct Burn {
  std::vector<Burned> gpus;
  double percent = 0;
  size_t tested = 0;  ///< of the line "Tested N GPUs"; 0: the output ends before
  std::string failure;
};

/// The parts of "1234 (56 Gflop/s) - 1230 (55 Gflop/s)", each up to its first space.
std::vector<double> numbersIn(std::string_view list) {
  std::vector<double> numbers;
  while (true) {
    const size_t end = list.find(" - ");
    const auto words = wordsOf(list.substr(0, end));
    const auto number = words.empty() ? std::nullopt : finiteNumber(words.front());
    if (!number) return {};
    numbers.push_back(*number);
    if (end == std::string_view::npos) return numbers;
    list.remove_prefix(end + 3);
  }
}

/// "12.3%  proc'd: … errors: … temps: …"
Status readProgress(const Source& source, std::string_view line, size_t number, Burn& burn) {
  const size_t errors = line.find("  errors: "), temperatures = line.find("  temps: ");
  const auto percent = finiteNumber(trim(line.substr(0, line.find('%'))));
  if (!percent || errors == std::string_view::npos || temperatures == std::string_view::npos ||
      temperatures < errors)
    return source.refuse(number, "a line of progress that is damaged: " + printable(line, 160));
  const auto products = numbersIn(behind(line.substr(0, errors), "proc'd: "));
  const auto wrong = numbersIn(trim(line.substr(errors + 10, temperatures - errors - 10)));
  if (products.empty() || products.size() != wrong.size() || products.size() > kMostGpus ||
      (!burn.gpus.empty() && burn.gpus.size() != products.size()))
    return source.refuse(number, "a line of progress about another number of GPUs: " + printable(line, 160));
  burn.percent = *percent;
  burn.gpus.resize(products.size());
  for (size_t i = 0; i < products.size(); ++i) {
    burn.gpus[i].products = products[i];
    burn.gpus[i].wrong = burn.gpus[i].wrong || wrong[i] != 0;
  }
  return {};
}

/// "	GPU 0: OK"
Status readVerdict(const Source& source, std::string_view line, size_t number, Burn& burn) {
  const auto words = wordsOf(line);
  const auto index = words.size() == 3 && words[1].ends_with(':')
                         ? wholeNumber(words[1].substr(0, words[1].size() - 1))
                         : std::nullopt;
  if (!index || *index >= burn.tested || (words[2] != "OK" && words[2] != "FAULTY"))
    return source.refuse(number, "a result that is damaged: " + printable(line, 160));
  if (burn.gpus.size() < burn.tested) burn.gpus.resize(burn.tested);
  burn.gpus[*index].listed = true;
  burn.gpus[*index].faulty = burn.gpus[*index].faulty || words[2] == "FAULTY";
  return {};
}

Status readLine(const Source& source, std::string_view line, size_t number, Burn& burn) {
  if (line.find("proc'd: ") != std::string_view::npos) return readProgress(source, line, number, burn);
  for (const char* failure :
       {"Couldn't init", "Failure during compute", "No clients are alive", "No CUDA devices"})
    if (line.find(failure) != std::string_view::npos && burn.failure.empty())
      burn.failure = printable(trim(line), 200);
  if (const auto count = behind(line, "Tested "); !count.empty() && line.ends_with("GPUs:")) {
    const auto tested = wholeNumber(wordsOf(count).front());
    if (!tested || *tested == 0 || *tested > kMostGpus)
      return source.refuse(number, "a number of GPUs that is none: " + printable(line, 160));
    burn.tested = *tested;
    return {};
  }
  if (burn.tested > 0 && trim(line).starts_with("GPU ")) return readVerdict(source, line, number, burn);
  return {};
}

/// Why a GPU has no result, though gpu-burn may call it OK; empty: it has one.
std::string errorOf(const Burned& gpu) {
  if (gpu.products < 0) return "its process died";
  return gpu.products == 0 ? "it computed nothing" : "";
}

ImportedFile fileOf(const Burn& burn) {
  ImportedFile file;
  ImportedCase one{kBurn, {}, {"imported.test_passed"}, {}, ""};
  file.tool = "gpu-burn";
  file.ranks = static_cast<int>(burn.tested);
  for (size_t i = 0; i < burn.gpus.size(); ++i) {
    const Burned& gpu = burn.gpus[i];
    const std::string name = fmt::format("gpu{}", i);
    one.devices.push_back(name);
    if (const std::string error = errorOf(gpu); !error.empty() && one.error.empty())
      one.error = fmt::format("{}: {}; gpu-burn calls it {}", name, error, gpu.faulty ? "FAULTY" : "OK");
    Measurement m = valueOf("imported.test_passed", {{"test", kBurn}, {"device", name}},
                            gpu.wrong || gpu.faulty ? 0 : 1, kBurn);
    m.device = name;
    m.rank = static_cast<int>(i);
    file.measurements.push_back(std::move(m));
    file.failures += gpu.faulty ? 1 : 0;
  }
  if (burn.percent < kWhole && one.error.empty())
    one.error = fmt::format("it ended at {}% of its time", burn.percent);
  if (!burn.failure.empty() && one.error.empty()) one.error = "gpu-burn reported: " + burn.failure;
  file.cases.push_back(std::move(one));
  file.limits = "wrong results that a running process reported";
  file.verdict = file.failures > 0 ? ToolVerdict::kFailed : ToolVerdict::kPassed;
  file.said = fmt::format("{} of {} GPUs OK", burn.tested - static_cast<size_t>(file.failures), burn.tested);
  return file;
}

bool isGpuBurn(const Source& source) {
  return !source.json && source.text.find("Burning for ") != std::string_view::npos &&
         source.text.find("proc'd: ") != std::string_view::npos;
}

Result<ImportedFile> readGpuBurn(const Source& source) {
  Burn burn;
  size_t last = 0;
  MUSTER_CHECK_OK(eachLine(source.text, [&](std::string_view line, size_t number) -> Status {
    last = number;
    // Lines of progress overwrite each other on a terminal.
    return eachLine(
        line, [&](std::string_view part, size_t) { return readLine(source, part, number, burn); }, '\r');
  }));
  for (const Burned& gpu : burn.gpus)
    if (burn.tested == 0 || burn.gpus.size() != burn.tested || !gpu.listed)
      return source.refuse(
          last, "the file ends before the result of each GPU (\"Tested N GPUs\"): it is truncated");
  return fileOf(burn);
}

}  // namespace

const Format kGpuBurn = {"gpu-burn", isGpuBurn, readGpuBurn};

}  // namespace muster::imports

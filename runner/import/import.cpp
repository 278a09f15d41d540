// SPDX-License-Identifier: Apache-2.0
// Finds a file's format and hands it to that format's reader.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster {
namespace imports {
namespace {

constexpr size_t kMostCases = 1'000;
constexpr size_t kMostNotes = 100;
constexpr size_t kLongestName = 200;  // a record repeats it in each of its rows

const std::vector<const Format*>& formats() {
  static const std::vector<const Format*> all = {&kNcclTestsText, &kNcclTestsJson, &kNvbandwidth, &kDcgmDiag,
                                                 &kFio,           &kGpuBurn,       &kGpuFryer,    &kMllog,
                                                 &kOcp,           &kSuperBench};
  return all;
}

/// Whether a line of a log reports an error that no result survives: an exception, a signal, a failed call of
/// CUDA or NCCL, a fault that the kernel logs, a process that the launcher lost, a time that ran out.
bool isErrorLine(std::string_view line) {
  constexpr std::string_view kSigns[] = {
      "Traceback (most recent call last)", "panicked at", "CUDA error", "CUDA_ERROR", "CUBLAS_STATUS_",
      "ncclUnhandledCudaError", "NCCL error", "ncclSystemError", "ncclRemoteError",
      "Got completion from peer", "async fatal event",
      // Signals, as shells and launchers name them.
      "Segmentation fault", "core dumped", "Bus error", "Floating point exception", "Illegal instruction",
      "Killed", "Terminated", "Aborted", "oom-kill", "Out of memory: ",
      // The kernel's log.
      "NVRM: Xid", "fallen off the bus", "watchdog: BUG", "Watchdog detected", "Kernel panic",
      "Hardware Error",
      // Launchers and watchdogs.
      "exited on signal", "terminated by signal", "Exited with exit code", "exited with non-zero status",
      "Non-zero exit code", "srun: error:", "slurmstepd: error:", "Job step aborted", "DUE TO TIME LIMIT",
      "time limit for job execution", "timeout: sending signal", "Watchdog caught", "BAD TERMINATION",
      "MPI_ABORT was invoked"};
  return line.starts_with("Error: ") ||
         std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&](std::string_view sign) { return line.find(sign) != std::string_view::npos; });
}

std::string errorIn(std::string_view text) {
  std::string error;
  (void)eachLine(text, [&](std::string_view line, size_t number) -> Status {
    if (error.empty() && !trim(line).starts_with('{') && isErrorLine(line))
      error = fmt::format("line {} reports an error: {}", number, printable(trim(line), 300));
    return {};
  });
  return error;
}

/// JSON is told by its first character: what then is no JSON is damaged, unless its first line is.
Result<Source> sourceOf(std::string_view text, const std::string& name) {
  Source source{name, text, std::nullopt, ""};
  const std::string_view begin = trim(text);
  if (begin.empty()) return source.refuse("", "the file is empty");
  const bool isJson = begin.front() == '{' || begin.front() == '[';
  auto json = parseJson(text);
  if (!json.ok() && (!isJson || firstJsonLine(source))) {
    source.error = errorIn(text);
    return source;
  }
  if (!json.ok()) return source.refuse("", json.error().message);
  source.json = std::move(*json);
  return source;
}

Result<const Format*> formatOf(const Source& source, const std::string& wanted) {
  std::vector<const Format*> found;
  for (const Format* format : formats())
    if ((wanted.empty() || wanted == format->name) && format->matches(source)) found.push_back(format);
  if (found.size() == 1) return found.front();
  std::vector<std::string> names;
  for (const Format* format : found) names.emplace_back(format->name);
  if (!found.empty())
    return source.refuse("",
                         fmt::format("it could be {}; name its format with --format", join(names, " or ")));
  if (!wanted.empty()) return source.refuse("", "it is not output of " + wanted + " as Muster knows it");
  return source.refuse(
      "", fmt::format("its format is not known; Muster imports {}", join(importFormats(), ", ")));
}

/// What holds of every file: its names are short, each case is there once, and there are not too many.
Status checkFile(const Source& source, ImportedFile& file) {
  if (file.measurements.size() > kMostValues || file.cases.size() > kMostCases)
    return source.refuse(
        "", fmt::format("it holds more than {} values, or more than {} tests", kMostValues, kMostCases));
  std::set<std::string> seen;
  for (const ImportedCase& one : file.cases)
    if (one.id.size() > kLongestName || !seen.insert(one.id).second)
      return source.refuse("", fmt::format("it holds two results of {}, or a name longer than {} bytes",
                                           printable(one.id, 80), kLongestName));
  for (const Measurement& m : file.measurements)
    for (const auto& [label, value] : m.labels)
      if (value.size() > kLongestName)
        return source.refuse("", fmt::format("its {} is longer than {} bytes", label, kLongestName));
  if (file.notes.size() > kMostNotes) {
    file.notes.resize(kMostNotes);
    file.notes.emplace_back("further notes were left out");
  }
  file.tool = printable(file.tool, kLongestName);
  file.said = printable(file.said, 2 * kLongestName);
  return {};
}

}  // namespace

Error Source::refuse(size_t line, const std::string& problem) const {
  return {ErrorCode::kUsage, problem, fmt::format("{}:{}", printable(name, 300), line)};
}

Error Source::refuse(const std::string& place, const std::string& problem) const {
  return {ErrorCode::kUsage, place.empty() ? problem : place + ": " + problem, printable(name, 300)};
}

Status eachJsonLine(const Source& source, const std::function<Status(const Json&, size_t)>& each) {
  return eachLine(source.text, [&](std::string_view line, size_t number) -> Status {
    if (trim(line).empty()) return {};
    const auto json = parseJson(line);
    if (!json.ok()) return source.refuse(number, json.error().message);
    if (!json->is_object()) return source.refuse(number, "it is no JSON object");
    return each(*json, number);
  });
}

std::optional<Json> firstJsonLine(const Source& source) {
  const std::string_view text = trim(source.text);
  auto json = parseJson(text.substr(0, text.find('\n')));
  if (!json.ok() || !json->is_object()) return std::nullopt;
  return std::move(*json);
}

Error refuseAt(const Source& source, size_t line, const Error& error) {
  return source.refuse(line, (error.where.empty() ? "" : error.where + ": ") + error.message);
}

std::vector<std::string_view> wordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    const size_t end = line.find_first_of(" \t", begin);
    words.push_back(line.substr(begin, end - begin));
    if (end == std::string_view::npos) return words;
    line.remove_prefix(end);
  }
}

std::string_view behind(std::string_view line, std::string_view before) {
  const size_t at = line.find(before);
  return at == std::string_view::npos ? std::string_view() : trim(line.substr(at + before.size()));
}

std::optional<double> finiteNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<uint64_t> wholeNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > (1ull << 53)) return std::nullopt;
  return value;
}

bool holds(const Json& json, const char* key) {
  return json.is_object() && json.contains(key);
}

void addOnce(std::vector<std::string>& list, std::string text) {
  if (!contains(list, text)) list.push_back(std::move(text));
}

namespace {

const char* unitOf(std::string_view metric) {
  if (metric.ends_with("bandwidth")) return "B/s";
  if (metric.ends_with("throughput")) return "FLOP/s";
  if (metric.ends_with("time") || metric.ends_with("latency")) return "s";
  if (metric.ends_with("operation_rate")) return "OP/s";
  return metric.ends_with("passed") ? "bool" : "count";
}

}  // namespace

Measurement valueOf(std::string metric, Labels labels, double value, std::string caseId) {
  Measurement m;
  m.metric = std::move(metric);
  m.unit = unitOf(m.metric);
  m.labels = std::move(labels);
  m.samples = {value};
  m.caseId = std::move(caseId);
  return m;
}

}  // namespace imports

std::vector<std::string> importFormats() {
  std::vector<std::string> names;
  for (const imports::Format* format : imports::formats()) names.emplace_back(format->name);
  return names;
}

Result<ImportedFile> importText(std::string_view text, const std::string& name, const std::string& format) {
  if (!format.empty() && !contains(importFormats(), format))
    return Error{ErrorCode::kUsage,
                 fmt::format("no format \"{}\"{}; Muster imports {}", printable(format, 60),
                             didYouMean(format, importFormats()), join(importFormats(), ", ")),
                 "--format"};
  MUSTER_TRY(const imports::Source source, imports::sourceOf(text, name));
  MUSTER_TRY(const imports::Format* chosen, imports::formatOf(source, format));
  MUSTER_TRY(ImportedFile file, chosen->read(source));
  file.format = chosen->name;
  for (ImportedCase& one : file.cases)
    if (one.error.empty()) one.error = source.error;
  MUSTER_CHECK_OK(imports::checkFile(source, file));
  return file;
}

}  // namespace muster

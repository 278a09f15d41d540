// SPDX-License-Identifier: Apache-2.0
// Finds a file's format and hands it to that format's reader.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster {
namespace imports {
namespace {

constexpr size_t kLongestName = 200;  // a record repeats it in each of its rows

const std::vector<const Format*>& formats() {
  static const std::vector<const Format*> all = {&kNcclTestsText, &kNcclTestsJson, &kNvbandwidth, &kDcgmDiag,
                                                 &kFio,           &kGpuBurn,       &kGpuFryer,    &kMllog,
                                                 &kOcp,           &kSuperBench};
  return all;
}

/// Whether a signal ended a process, as shells, launchers and the kernel say it; but what a prolog did
/// ("Killed old processes of user") and how a thread of NCCL ended is no fault.
bool namesSignal(std::string_view line) {
  constexpr std::string_view kOf[] = {"by", "at", "due", "after", "because", "in", "on"};
  if (line.find(" NCCL INFO ") != std::string_view::npos) return false;
  for (const std::string_view word : {"Killed", "Terminated", "Aborted"}) {
    if (line.find(word, 1) != std::string_view::npos) return true;
    if (!line.starts_with(word)) continue;
    const std::string_view rest = line.substr(word.size());
    const std::string_view next = rest.size() < 2 ? "" : rest.substr(1, rest.find(' ', 1) - 1);
    const bool hasObject =
        rest.starts_with(' ') && !next.empty() &&
        std::all_of(next.begin(), next.end(), [](unsigned char c) { return std::isalnum(c); });
    if (!hasObject || std::find(std::begin(kOf), std::end(kOf), next) != std::end(kOf)) return true;
  }
  return false;
}

/// Whether a line of a log reports an error that no result survives: an exception, a signal, a failed call of
/// CUDA or NCCL, a fault that the kernel logs, a process that the launcher lost, a time that ran out.
bool isErrorLine(std::string_view line) {
  constexpr std::string_view kSigns[] = {
      "Traceback (most recent call last)", "panicked at", "CUDA error", "CUDA_ERROR", "CUBLAS_STATUS_",
      "ncclUnhandledCudaError", "ncclSystemError", "ncclRemoteError", "Got completion from peer",
      "async fatal event",
      // Signals, as shells and launchers name them.
      "Segmentation fault", "core dumped", "Bus error", "Floating point exception", "Illegal instruction",
      "oom-kill", "Out of memory: ",
      // The kernel's log.
      "NVRM: Xid", "fallen off the bus", "watchdog: BUG", "Watchdog detected", "Kernel panic",
      "Hardware Error",
      // Launchers and watchdogs.
      "exited on signal", "terminated by signal", "Exited with exit code", "exited with non-zero status",
      "Non-zero exit code", "srun: error:", "slurmstepd: error:", "Job step aborted", "DUE TO TIME LIMIT",
      "time limit for job execution", "timeout: sending signal", "Watchdog caught", "BAD TERMINATION",
      "MPI_ABORT was invoked"};
  const auto has = [&](std::string_view sign) { return line.find(sign) != std::string_view::npos; };
  const size_t nccl = line.find("NCCL error");  // but not "TORCH_NCCL error handling"
  return line.starts_with("Error: ") || namesSignal(line) ||
         (nccl != std::string_view::npos && (nccl == 0 || line[nccl - 1] != '_')) ||
         (has(" NCCL WARN ") && (has(" error") || has("Cuda failure"))) ||
         std::any_of(std::begin(kSigns), std::end(kSigns), has);
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
  Source source{name, text, std::nullopt, "", {}};
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

/// A file that ends with a JSON document, behind lines that its tool printed first. Notes ("note: queue depth
/// will be capped at 1" of fio) are kept; any other line is an error. nullopt: it is no such file.
std::optional<Source> jsonBehindLines(const Source& whole) {
  const size_t begin = whole.text.find("\n{");
  if (whole.json || trim(whole.text).starts_with('{') || begin == std::string_view::npos) return std::nullopt;
  auto json = parseJson(whole.text.substr(begin + 1));
  if (!json.ok()) return std::nullopt;
  Source source{whole.name, whole.text, std::move(*json), "", {}};
  (void)eachLine(whole.text.substr(0, begin), [&](std::string_view line, size_t number) -> Status {
    const std::string_view said = trim(line);
    if (said.starts_with("note: ") && !isErrorLine(said))
      addNote(source.notes, fmt::format("line {}: {}", number, printable(said, 300)));
    else if (!said.empty() && source.error.empty())
      source.error =
          fmt::format("line {}, before the JSON, reports an error: {}", number, printable(said, 300));
    return {};
  });
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
  if (const Status status = checkCounts(file.measurements.size(), file.cases.size()); !status.ok())
    return source.refuse("", status.error().message);
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
  for (std::string& device : file.deviceNames) device = printable(device, kLongestName);
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

namespace {

/// A text with each number as 9: "9:9.9elapsed".
std::string withoutDigits(std::string_view text) {
  std::string shape;
  for (const char c : text)
    if (!std::isdigit(static_cast<unsigned char>(c)))
      shape += c;
    else if (shape.empty() || shape.back() != '9')
      shape += '9';
  return shape;
}

bool isAnyOf(std::string_view text, std::initializer_list<const char*> list) {
  return std::any_of(list.begin(), list.end(), [&](const char* one) { return text == one; });
}

/// As `date` prints it: each word is of a date, and one is a time.
bool isDate(const std::vector<std::string_view>& words) {
  bool hasTime = false;
  for (const std::string_view word : words) {
    const std::string shape = withoutDigits(word);
    const bool zone = word.size() <= 4 && (word.ends_with('T') || word == "UTC") &&
                      std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    const bool time = isAnyOf(shape, {"9:9:9", "9-9-9T9:9:9", "9-9-9T9:9:9Z", "9-9-9T9:9:9+9:9",
                                      "9-9-9T9:9:9-9:9", "9-9-9T9:9:9+9", "9-9-9T9:9:9-9"});
    const bool day =
        isAnyOf(word, {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr",
                       "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "AM",  "PM"});
    if (!zone && !time && !day && !isAnyOf(shape, {"9", "9-9-9", "+9", "-9"})) return false;
    hasTime = hasTime || time;
  }
  return hasTime;
}

/// What GNU time prints, and the last line of many a job script.
bool isTimeOrDone(std::string_view line) {
  const std::string shape = withoutDigits(line);
  for (const char* elapsed : {"9:9.9", "9:9:9"})
    for (const char* share : {"9", "?"})
      if (shape ==
          fmt::format("9.9user 9.9system {}elapsed {}%CPU (9avgtext+9avgdata 9maxresident)k", elapsed, share))
        return true;
  std::string said = lowerCase(shape);
  while (said.ends_with('.') || said.ends_with('!')) said.pop_back();
  return shape == "9inputs+9outputs (9major+9minor)pagefaults 9swaps" ||
         isAnyOf(said, {"done", "all done", "finished", "completed", "job done", "job finished",
                        "job completed", "job 9 done", "job 9 finished", "job 9 completed"});
}

/// What Slurm's plugin for containers does, but not what it fails to do.
bool isOfContainer(const std::vector<std::string_view>& words) {
  const size_t at = !words.empty() && words[0] == "slurmstepd:" ? 1 : 0;
  return words.size() > at + 1 && words[at] == "pyxis:" &&
         isAnyOf(words[at + 1], {"importing", "imported", "creating", "starting", "reusing", "exporting",
                                 "exported", "removing", "removed"});
}

/// A command as `set -x` shows it, if it says nothing of how the run ended.
bool isTrace(const std::vector<std::string_view>& words, std::string_view line) {
  if (words.size() < 2 || words[0].find_first_not_of('+') != std::string_view::npos) return false;
  if (words[1] == "exit") return words.size() == 2 || words[2] == "0";
  if (words[1] == "echo") {
    std::string_view text = behind(line, "echo");
    if (text.size() > 1 && text.front() == '\'' && text.back() == '\'')
      text = text.substr(1, text.size() - 2);
    return text.empty() || isTimeOrDone(text) || isDate(wordsOf(text));
  }
  return isAnyOf(words[1], {"cd", "date", "hostname", "rm", "set", "sleep", "sync", "unset"});
}

}  // namespace

bool isUsualEnd(std::string_view line) {
  for (const char* words :
       {" NCCL INFO ", "NCCL version ", "more process has sent help message",
        "more processes have sent help message", "orte_base_help_aggregate", "prte_base_help_aggregate"})
    if (line.find(words) != std::string_view::npos) return true;
  const auto words = wordsOf(line);
  const bool isTime = words.size() == 2 && isAnyOf(words[0], {"real", "user", "sys"});
  return isTime || isDate(words) || isTrace(words, line) || isOfContainer(words) || isTimeOrDone(line);
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

Status checkCounts(size_t values, size_t cases, const std::string& place) {
  if (values <= kMostValues && cases <= kMostCases) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("it holds more than {} values, or more than {} tests", kMostValues, kMostCases),
               place};
}

void addNote(std::vector<std::string>& notes, std::string text) {
  if (notes.size() <= kMostNotes) notes.push_back(std::move(text));
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
  MUSTER_TRY(imports::Source source, imports::sourceOf(text, name));
  auto chosen = imports::formatOf(source, format);
  if (!chosen.ok())
    if (auto behind = imports::jsonBehindLines(source)) {
      source = std::move(*behind);
      chosen = imports::formatOf(source, format);
    }
  if (!chosen.ok()) return chosen.error();
  MUSTER_TRY(ImportedFile file, (*chosen)->read(source));
  file.format = (*chosen)->name;
  for (const std::string& note : source.notes) imports::addNote(file.notes, note);
  for (ImportedCase& one : file.cases)
    if (one.error.empty()) one.error = source.error;
  MUSTER_CHECK_OK(imports::checkFile(source, file));
  return file;
}

}  // namespace muster

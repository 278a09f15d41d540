// SPDX-License-Identifier: Apache-2.0
// fio --output-format=json: rate, operations and latency of each job and direction. They have no metric of a
// plugin, because the file, device and pattern behind them are the job's own: a plan's limits name the job.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/import/fio_output.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

const std::set<std::string> kMetrics = {"imported.bandwidth", "imported.operation_rate", "imported.time"};

void addLatency(const FioDirection& of, const Labels& labels, const std::string& id, ImportedFile& file) {
  if (!of.latency)
    return addNote(file.notes, fmt::format("{}: the job measured no {} latency (gtod_reduce, disable_clat)",
                                           id, labels.at("op")));
  const auto add = [&](const char* statistic, double seconds) {
    Labels own = labels;
    own["statistic"] = statistic;
    file.measurements.push_back(valueOf("imported.time", std::move(own), seconds, id));
  };
  if (const auto p99 = of.percentiles.find("99.000000"); p99 != of.percentiles.end())
    add("p99", p99->second);
  else
    addNote(file.notes, fmt::format("{}: fio reports no 99th percentile of {} latency (percentile_list)", id,
                                    labels.at("op")));
  add("mean", *of.latency);
}

/// A job with the options that all jobs of the file share.
struct GivenJob {
  const FioJob& job;
  const FioOutput& file;

  [[nodiscard]] const std::string* option(const char* name) const {
    for (const auto* options : {&job.options, &file.options})
      if (const auto found = options->find(name); found != options->end()) return &found->second;
    return nullptr;
  }
};

double wholeOption(const GivenJob& given, const char* name) {
  const std::string* text = given.option(name);
  return text == nullptr ? 1 : static_cast<double>(wholeNumber(*text).value_or(1));
}

/// Bytes of "64M", "64MB" or "0.1T", which are powers of 2^10 here, and of "64MiB", of 1000. nullopt: it
/// cannot be told, as of "50%".
std::optional<double> bytesOf(const std::string& size) {
  constexpr std::string_view kPrefixes = "kmgtp";
  std::string_view text = size;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    uint64_t whole = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), whole, 16);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return static_cast<double>(whole);
  }
  const auto takes = [&](char end) {
    const bool found = !text.empty() && (text.back() == end || text.back() == std::toupper(end));
    if (found) text.remove_suffix(1);
    return found;
  };
  takes('b');
  const double base = takes('i') ? 1000 : 1024;
  double factor = 1;
  for (size_t power = 0; power < kPrefixes.size(); ++power)
    if (takes(kPrefixes[power])) {
      factor = std::pow(base, power + 1);
      break;
    }
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0) return std::nullopt;
  return count * factor;
}

/// Bytes of all files of a thread. A list of names takes the place of `nrfiles`. nullopt: it cannot be told.
std::optional<double> filesBytes(const GivenJob& given) {
  const std::string* size = given.option("filesize");
  if (size == nullptr) return std::nullopt;
  std::optional<double> files = 1;
  if (const std::string* names = given.option("filename")) {
    for (size_t at = 1; at < names->size(); ++at)
      if ((*names)[at] == ':' && (*names)[at - 1] != '\\') *files += 1;
  } else if (const std::string* count = given.option("nrfiles")) {
    files = bytesOf(*count);  // "2k"
  }
  const auto each = bytesOf(*size);
  return each && files ? std::optional(*each * *files) : std::nullopt;
}

/// Bytes after which a thread ends a loop, of which `size` is the option that says so.
std::optional<double> loopBytes(const GivenJob& given, const std::string& size) {
  const auto files = filesBytes(given), bytes = bytesOf(size);
  if (&size == given.option("filesize")) return files;
  if (given.option("io_size") != nullptr || !files || !bytes) return bytes;
  return std::min(*files, *bytes);
}

/// How a job with a `runtime` ended long before it, and not because it had moved its size, as after a signal,
/// which fio calls no error; empty: it did not. `time_based` is not in fio's output.
std::string earlyEnd(const GivenJob& given) {
  for (const char* otherEnd : {"exitall", "exit_what", "fill_device", "number_ios", "ramp_time", "read_iolog",
                               "steadystate", "verify", "zonemode"})
    if (given.option(otherEnd) != nullptr) return "";
  for (const char* pattern : {"rw", "readwrite"})  // "read:64k" leaves holes
    if (const auto* text = given.option(pattern); text != nullptr && text->find(':') != text->npos) return "";
  const std::string* found = given.option("runtime");
  if (found == nullptr) return "";
  std::string time = wholeNumber(*found) ? *found + "s" : lowerCase(*found);
  if (time.ends_with("sec")) time.resize(time.size() - 2);  // "msec" and "usec"
  const auto runtime = parseDuration(time);
  if (!runtime.ok())
    return fmt::format("whether it ran its runtime of \"{}\" cannot be told: state it in seconds",
                       printable(*found, 40));
  const double threads = wholeOption(given, "numjobs");
  double ran = given.job.runtime / threads, moved = 0;
  for (const auto& [direction, of] : given.job.directions) {
    ran = std::max(ran, of.runtime);
    // With unified_rw_reporting=both, mixed repeats the others.
    if (direction != "mixed" || given.job.directions.size() == 1) moved += of.bytes;
  }
  if (ran + std::max(1.0, *runtime / 50) >= *runtime) return "";
  std::string early = fmt::format("it ran {:.4g} s of its runtime of {:.4g} s", ran, *runtime);
  const std::string* size = nullptr;
  for (const char* option : {"filesize", "size", "io_size"})
    if (const auto* text = given.option(option)) size = text;
  if (size != nullptr) {
    const auto bytes = loopBytes(given, *size);
    if (!bytes)
      return early +
             fmt::format(", and whether it moved its size of \"{}\" cannot be told: state it in bytes",
                         printable(*size, 40));
    const double goal = *bytes * wholeOption(given, "loops");
    const auto isNear = [&](double wanted) { return std::abs(moved - wanted) <= 0.1 * wanted; };
    if (goal > 0 && (isNear(goal) || isNear(goal * threads))) return "";
  }
  return early + ": fio ended early";
}

void addJob(const FioJob& job, const FioOutput& output, ImportedFile& file) {
  ImportedCase one;
  one.id = fmt::format("{}[job={}]", printable(job.name, 60), file.cases.size() + 1);
  one.labels = {{"name", job.name}};
  one.metrics = kMetrics;
  bool moved = false;
  for (const char* direction : {"read", "write", "trim", "mixed"}) {
    const auto found = job.directions.find(direction);
    if (found == job.directions.end()) continue;
    const FioDirection& of = found->second;
    if (of.shortOnes + of.dropped > 0 && one.error.empty())
      one.error =
          fmt::format("{} of its operations were short and {} were dropped", of.shortOnes, of.dropped);
    if (of.total == 0) continue;
    moved = true;
    const Labels labels = {{"name", job.name}, {"op", direction}};
    file.measurements.push_back(valueOf("imported.bandwidth", labels, of.bandwidth, one.id));
    file.measurements.push_back(valueOf("imported.operation_rate", labels, of.operations, one.id));
    addLatency(of, labels, one.id, file);
  }
  if (const std::string early = earlyEnd({job, output}); !early.empty()) one.error = early;
  if (!moved) one.error = "the job moved nothing";
  if (job.errors > 0) one.error = fmt::format("{} of its operations failed", job.errors);
  if (job.error != 0) one.error = fmt::format("fio ended it with error {}", job.error);
  file.failures += job.error != 0 || job.errors > 0 ? 1 : 0;
  file.cases.push_back(std::move(one));
}

bool lacksLatency(const FioJob& job) {
  return std::any_of(job.directions.begin(), job.directions.end(),
                     [](const auto& one) { return one.second.total > 0 && !one.second.latency; });
}

bool isFio(const Source& source) {
  return source.json && holds(*source.json, "fio version");
}

Result<ImportedFile> readFio(const Source& source) {
  const auto output = readFioOutput(*source.json);
  if (!output.ok()) return source.refuse(output.error().where, output.error().message);
  ImportedFile file;
  file.tool = output->version;
  for (const FioJob& job : output->jobs) addJob(job, *output, file);
  if (file.cases.empty()) file.cases.push_back({"fio", {}, {}, {}, "the file holds no job"});
  file.limits = "errors of operations, and no rate";
  if (const auto count = std::count_if(output->jobs.begin(), output->jobs.end(), lacksLatency); count > 0)
    file.limits += fmt::format("; {} of {} jobs measured no latency (gtod_reduce, disable_clat)", count,
                               output->jobs.size());
  file.verdict = file.failures > 0 ? ToolVerdict::kFailed : ToolVerdict::kPassed;
  file.said = file.failures > 0 ? fmt::format("{} of {} jobs had errors", file.failures, output->jobs.size())
                                : "no job had an error";
  return file;
}

}  // namespace

const Format kFio = {"fio", isFio, readFio};

}  // namespace muster::imports

// SPDX-License-Identifier: Apache-2.0
// fio --output-format=json: rate, operations and latency of each job and direction. They have no metric of a
// plugin, because the file, device and pattern behind them are the job's own: a plan's limits name the job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/import/fio_output.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

const std::set<std::string> kMetrics = {"imported.bandwidth", "imported.operation_rate", "imported.time"};

void addLatency(const FioDirection& of, const Labels& labels, const std::string& id, ImportedFile& file) {
  const auto add = [&](const char* statistic, double seconds) {
    Labels own = labels;
    own["statistic"] = statistic;
    file.measurements.push_back(valueOf("imported.time", std::move(own), seconds, id));
  };
  if (const auto p99 = of.percentiles.find("99.000000"); p99 != of.percentiles.end()) add("p99", p99->second);
  if (of.latency) add("mean", *of.latency);
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

/// Bytes of "64M", which is 64 * 2^20 here; 0 without the option or in another form, as "50%".
double sizeOf(const GivenJob& given) {
  const std::string* found = given.option(given.option("io_size") != nullptr ? "io_size" : "size");
  if (found == nullptr) return 0;
  constexpr std::string_view kPrefixes = "kmgt";
  std::string text = lowerCase(*found);
  const size_t power = text.empty() ? std::string::npos : kPrefixes.find(text.back());
  if (power != std::string::npos) text.pop_back();
  const double count = static_cast<double>(wholeNumber(text).value_or(0));
  return power == std::string::npos ? count : std::ldexp(count, 10 * static_cast<int>(power + 1));
}

/// How a job with a `runtime` ended long before it though it had not moved its size either, as after a
/// signal, which fio calls no error; empty: it did not. `time_based` is not in fio's output.
std::string earlyEnd(const GivenJob& given) {
  for (const char* otherEnd : {"exitall", "exit_what", "fill_device", "number_ios", "ramp_time", "read_iolog",
                               "steadystate", "zonemode"})
    if (given.option(otherEnd) != nullptr) return "";
  const std::string* found = given.option("runtime");
  if (found == nullptr) return "";
  const auto runtime = parseDuration(wholeNumber(*found) ? *found + "s" : *found);
  const double threads = wholeOption(given, "numjobs"), size = sizeOf(given) * wholeOption(given, "loops");
  double ran = given.job.runtime / threads, moved = 0;
  for (const auto& [direction, of] : given.job.directions) {
    ran = std::max(ran, of.runtime);
    moved += of.bytes;
  }
  if (!runtime.ok() || ran + std::max(1.0, *runtime / 50) >= *runtime) return "";
  const bool sizeUnknown =
      size == 0 && (given.option("size") != nullptr || given.option("io_size") != nullptr);
  const auto isNear = [&](double goal) { return std::abs(moved - goal) <= 0.1 * goal; };
  if (sizeUnknown || (size > 0 && (isNear(size) || isNear(size * threads)))) return "";
  return fmt::format("it ran {:.4g} s of its runtime of {:.4g} s: fio ended early", ran, *runtime);
}

void addJob(const FioJob& job, const FioOutput& output, ImportedFile& file) {
  ImportedCase one;
  one.id = fmt::format("{}[job={}]", printable(job.name, 60), file.cases.size() + 1);
  one.labels = {{"name", job.name}};
  one.metrics = kMetrics;
  bool moved = false;
  for (const char* direction : {"read", "write", "trim"}) {
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
  file.verdict = file.failures > 0 ? ToolVerdict::kFailed : ToolVerdict::kPassed;
  file.said = file.failures > 0 ? fmt::format("{} of {} jobs had errors", file.failures, output->jobs.size())
                                : "no job had an error";
  return file;
}

}  // namespace

const Format kFio = {"fio", isFio, readFio};

}  // namespace muster::imports

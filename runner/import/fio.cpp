// SPDX-License-Identifier: Apache-2.0
// fio --output-format=json: rate, operations and latency of each job and direction. They have no metric of a
// plugin, because the file, device and pattern behind them are the job's own: a plan's limits name the job.
#include <fmt/format.h>

#include <cmath>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

constexpr double kNanos = 1e9;
constexpr const char* kDirections[] = {"read", "write", "trim"};
const std::set<std::string> kMetrics = {"imported.bandwidth", "imported.operation_rate", "imported.time"};

/// "clat_ns" with a value of its 99th percentile.
Status readLatency(const Json& part, const std::string& path, const Labels& labels, const std::string& id,
                   ImportedFile& file) {
  if (!holds(part, "clat_ns")) return {};
  const Json& latency = part["clat_ns"];
  JsonReader r(latency, path + ".clat_ns");
  double mean = 0, p99 = 0;
  r.read("mean", mean);
  const auto add = [&](const char* statistic, double nanos) {
    Labels own = labels;
    own["statistic"] = statistic;
    file.measurements.push_back(valueOf("imported.time", std::move(own), nanos / kNanos, id));
  };
  if (const Json* percentile = r.has("percentile") ? r.object("percentile") : nullptr) {
    JsonReader p(*percentile, path + ".clat_ns.percentile");
    p.read("99.000000", p99);
    MUSTER_CHECK_OK(p.status());
    add("p99", p99);
  }
  MUSTER_CHECK_OK(r.status());
  if (!(mean >= 0) || !std::isfinite(mean) || !(p99 >= 0) || !std::isfinite(p99))
    return Error{ErrorCode::kUsage, "holds a time that is none", path + ".clat_ns"};
  add("mean", mean);
  return {};
}

Status readDirection(const Json& job, const char* direction, const std::string& path, const std::string& name,
                     ImportedCase& one, ImportedFile& file, bool& moved) {
  const std::string at = path + "." + direction;
  if (!holds(job, direction)) return {};
  JsonReader r(job[direction], at);
  double bytes = 0, operations = 0, rate = 0, total = 0;
  uint64_t shorter = 0, dropped = 0;
  r.read("io_bytes", bytes);
  r.read("bw_bytes", rate);
  r.read("iops", operations);
  r.read("total_ios", total);
  r.optional("short_ios", shorter);
  r.optional("drop_ios", dropped);
  MUSTER_CHECK_OK(r.status());
  for (const double value : {bytes, operations, rate, total})
    if (!std::isfinite(value) || value < 0)
      return Error{ErrorCode::kUsage, "holds a number that is none", at};
  if (shorter + dropped > 0 && one.error.empty())
    one.error = fmt::format("{} of its operations were short and {} were dropped", shorter, dropped);
  if (total == 0) return {};  // the job did nothing in this direction
  moved = true;
  const Labels labels = {{"name", name}, {"op", direction}};
  file.measurements.push_back(valueOf("imported.bandwidth", labels, rate, one.id));
  file.measurements.push_back(valueOf("imported.operation_rate", labels, operations, one.id));
  return readLatency(job[direction], at, labels, one.id, file);
}

Status readJob(const Json& job, const std::string& path, size_t number, ImportedFile& file) {
  JsonReader r(job, path);
  std::string name;
  int error = 0;
  r.read("jobname", name);
  r.read("error", error);
  MUSTER_CHECK_OK(r.status());
  ImportedCase one;
  one.id = fmt::format("{}[job={}]", printable(name, 60), number);
  one.labels = {{"name", name}};
  one.metrics = kMetrics;
  bool moved = false;
  for (const char* direction : kDirections)
    MUSTER_CHECK_OK(readDirection(job, direction, path, name, one, file, moved));
  if (!moved) one.error = "the job moved nothing";
  if (error != 0) {
    one.error = fmt::format("fio ended it with error {}", error);
    ++file.failures;
  }
  file.cases.push_back(std::move(one));
  return {};
}

bool isFio(const Source& source) {
  return source.json && holds(*source.json, "fio version");
}

Result<ImportedFile> readFio(const Source& source) {
  ImportedFile file;
  JsonReader r(*source.json, "");
  r.read("fio version", file.tool);
  r.each("jobs", [&](const Json& job, const std::string& path) {
    return readJob(job, path.substr(1), file.cases.size() + 1, file);
  });
  if (const Status status = r.status(); !status.ok())
    return source.refuse(status.error().where, status.error().message);
  if (file.cases.empty()) file.cases.push_back({"fio", {}, {}, {}, "the file holds no job"});
  file.limits = "errors of operations, and no rate";
  file.verdict = file.failures > 0 ? ToolVerdict::kFailed : ToolVerdict::kPassed;
  file.said = file.failures > 0 ? fmt::format("{} jobs ended with an error", file.failures)
                                : "every job ended without an error";
  return file;
}

}  // namespace

const Format kFio = {"fio", isFio, readFio};

}  // namespace muster::imports

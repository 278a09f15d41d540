// SPDX-License-Identifier: Apache-2.0
// See fio_output.h.
#include "runner/import/fio_output.h"

#include <fmt/format.h>

#include <cmath>

namespace muster {
namespace {

constexpr double kNanos = 1e9;
constexpr double kMillis = 1e3;
constexpr size_t kMostJobs = 1'000;
constexpr const char* kDirections[] = {"read", "write", "trim", "mixed"};
constexpr const char* kPercentiles[] = {"50.000000", "99.000000", "99.900000"};

bool isAmount(double value) {
  return std::isfinite(value) && value >= 0;
}

/// Where fio measured no latency (gtod_reduce, disable_clat), it reports a mean of 0 over N = 0 operations.
Status readLatency(const Json& part, const std::string& path, FioDirection& out) {
  if (!part.contains("clat_ns")) return {};
  JsonReader r(part["clat_ns"], path);
  double mean = 0;
  uint64_t count = 1;
  r.read("mean", mean);
  r.optional("N", count);
  MUSTER_CHECK_OK(r.status());
  if (count == 0 || mean == 0) return {};
  if (const Json* percentile = r.has("percentile") ? r.object("percentile") : nullptr) {
    JsonReader p(*percentile, path + ".percentile");
    for (const char* name : kPercentiles)
      if (p.has(name)) out.percentiles[name] = 0;
    for (auto& [name, seconds] : out.percentiles) p.read(name.c_str(), seconds);
    MUSTER_CHECK_OK(p.status());
  }
  MUSTER_CHECK_OK(r.status());
  out.latency = mean / kNanos;
  bool valid = isAmount(mean);
  for (auto& [name, seconds] : out.percentiles) {
    valid = valid && isAmount(seconds);
    seconds /= kNanos;
  }
  return valid ? Status() : Error{ErrorCode::kUsage, "holds a time that is none", path};
}

Status readDirection(const Json& job, const char* direction, const std::string& path, FioJob& out) {
  if (!job.contains(direction)) return {};
  JsonReader r(job[direction], path);
  FioDirection one;
  r.read("io_bytes", one.bytes);
  r.read("bw_bytes", one.bandwidth);
  r.read("iops", one.operations);
  r.read("total_ios", one.total);
  r.optional("short_ios", one.shortOnes);
  r.optional("drop_ios", one.dropped);
  r.optional("runtime", one.runtime);
  one.runtime /= kMillis;
  MUSTER_CHECK_OK(r.status());
  for (const double value : {one.bytes, one.bandwidth, one.operations, one.total, one.runtime})
    if (!isAmount(value)) return Error{ErrorCode::kUsage, "holds a number that is none", path};
  // Latencies of no operation say nothing.
  if (one.total > 0) MUSTER_CHECK_OK(readLatency(job[direction], path + ".clat_ns", one));
  out.directions[direction] = std::move(one);
  return {};
}

void addOptions(const Json& json, const char* key, std::map<std::string, std::string>& out) {
  if (!json.contains(key)) return;
  for (const auto& [name, value] : json[key].items())
    if (value.is_string()) out[name] = value.get<std::string>();
}

Result<FioJob> readJob(const Json& json, const std::string& path) {
  FioJob job;
  addOptions(json, "job options", job.options);
  JsonReader r(json, path);
  r.read("jobname", job.name);
  r.read("error", job.error);
  r.optional("total_err", job.errors);
  r.optional("job_runtime", job.runtime);
  job.runtime /= kMillis;
  MUSTER_CHECK_OK(r.status());
  for (const char* direction : kDirections)
    MUSTER_CHECK_OK(readDirection(json, direction, path + "." + direction, job));
  return job;
}

}  // namespace

Result<FioOutput> readFioOutput(const Json& json) {
  FioOutput output;
  JsonReader r(json, "");
  r.read("fio version", output.version);
  addOptions(json, "global options", output.options);
  r.each("jobs", [&](const Json& one, const std::string& path) -> Status {
    if (output.jobs.size() == kMostJobs)
      return Error{ErrorCode::kUsage, fmt::format("is one of more than {} jobs", kMostJobs), path.substr(1)};
    MUSTER_TRY(FioJob job, readJob(one, path.substr(1)));
    output.jobs.push_back(std::move(job));
    return {};
  });
  MUSTER_CHECK_OK(r.status());
  return output;
}

}  // namespace muster

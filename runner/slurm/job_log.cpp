// SPDX-License-Identifier: Apache-2.0
// The jobs of a run, one per line of jobs.jsonl; see submission.h.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "runner/core/text.h"
#include "runner/slurm/submission.h"
#include "runner/system/trust.h"

namespace muster::slurm {
namespace fs = std::filesystem;
namespace {

constexpr const char* kJobs = "jobs.jsonl";
constexpr uint64_t kMostBytes = 64ull << 20;
constexpr const char* kCancelled = "cancelled";
constexpr JobKind kKinds[] = {JobKind::kArray, JobKind::kPinned, JobKind::kCluster, JobKind::kFleet};

/// Jobs in the order of their lines, and the places of each number's.
struct JobList {
  std::vector<SubmittedJob> jobs;
  std::multimap<std::string, size_t> places;

  void add(SubmittedJob job) {
    places.emplace(job.job, jobs.size());
    jobs.push_back(std::move(job));
  }
  void cancel(const std::string& number) { places.erase(number); }
  /// Those that were not cancelled.
  std::vector<SubmittedJob> left() && {
    std::vector<size_t> order;
    order.reserve(places.size());
    for (const auto& [number, place] : places) order.push_back(place);
    std::sort(order.begin(), order.end());
    std::vector<SubmittedJob> left;
    left.reserve(order.size());
    for (const size_t place : order) left.push_back(std::move(jobs[place]));
    return left;
  }
};

/// One line of jobs.jsonl: a job more, or one less.
Status readJobLine(const std::string& line, const std::string& where, JobList& all) {
  MUSTER_TRY(const Json json, parseJson(line).context(where));
  SubmittedJob job;
  std::string kind;
  JsonReader reader(json, where);
  reader.read("kind", kind);
  reader.read("job", job.job);
  if (kind != kCancelled) {
    reader.read("round", job.round);
    reader.read("nodes", job.nodes);
    reader.read("tasks", job.tasks);
  }
  MUSTER_CHECK_OK(reader.status());
  if (job.round < 0 || job.round >= kMostRounds)
    return Error{ErrorCode::kUsage, fmt::format("round {} is none that a run has made", job.round), where};
  if (kind == kCancelled) {
    all.cancel(job.job);
    return {};
  }
  const auto* found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](JobKind k) { return kind == jobKindName(k); });
  if (found == std::end(kKinds))
    return Error{
        ErrorCode::kUsage,
        fmt::format("kind \"{}\" is none of array, pinned, cluster, fleet, cancelled", printable(kind, 40)),
        where};
  job.kind = *found;
  if (job.kind == JobKind::kPinned && job.nodes.size() != 1)
    return Error{ErrorCode::kUsage, fmt::format("a pinned job of {} nodes, expected one", job.nodes.size()),
                 where};
  all.add(std::move(job));
  return {};
}

}  // namespace

const char* jobKindName(JobKind kind) {
  switch (kind) {
    case JobKind::kArray:
      return "array";
    case JobKind::kPinned:
      return "pinned";
    case JobKind::kCluster:
      return "cluster";
    case JobKind::kFleet:
      return "fleet";
  }
  return "";
}

Status RunStore::appendLine(const Json& line) const {
  const fs::path path = folder_ / kJobs;
  MUSTER_TRY(const Fd file, openOwnFile(path, O_WRONLY | O_APPEND));
  return appendAndSync(file.get(), dumpJson(line) + "\n", path);
}

Status RunStore::append(const SubmittedJob& job) const {
  return appendLine({{"kind", jobKindName(job.kind)},
                     {"job", job.job},
                     {"round", job.round},
                     {"nodes", job.nodes},
                     {"tasks", job.tasks}});
}

Status RunStore::appendCancelled(const std::string& job) const {
  return appendLine({{"kind", kCancelled}, {"job", job}});
}

Result<std::vector<SubmittedJob>> RunStore::jobs() const {
  std::error_code error;
  JobList all;
  if (!fs::exists(folder_ / kJobs, error)) return std::vector<SubmittedJob>();
  MUSTER_TRY(const std::string text, readOwnFile(folder_ / kJobs, kMostBytes));
  size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    MUSTER_CHECK_OK(readJobLine(line, fmt::format("{}:{}", (folder_ / kJobs).string(), number), all));
  }
  return std::move(all).left();
}

std::set<std::string> jobNumbers(const std::vector<SubmittedJob>& jobs) {
  std::set<std::string> numbers;
  for (const SubmittedJob& job : jobs) numbers.insert(job.job);
  return numbers;
}

}  // namespace muster::slurm

// SPDX-License-Identifier: Apache-2.0
// Submits the jobs of one step, and cancels them if a submission fails.
#include "runner/slurm/batch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/slurm/node_names.h"
#include "runner/slurm/scheduler.h"
#include "runner/slurm/scripts.h"
#include "runner/system/trust.h"

namespace muster::slurm {
namespace {

constexpr uint64_t kMostScriptBytes = 16ull << 20;

std::string listed(const std::set<std::string>& jobs) {
  return join(std::vector<std::string>(jobs.begin(), jobs.end()), " ");
}

uint64_t numberOf(const std::string& job) {
  uint64_t number = 0;
  std::from_chars(job.data(), job.data() + job.size(), number);
  return number;
}

/// Jobs of this run that wait or run and were submitted in this step: also one that sbatch submitted and did
/// not live to tell the number of. They are known by their comment. Any user can give it to a job, so they
/// must also be this user's and have a number above those of `before`, and not below the first of `numbers`,
/// the known ones of this step.
Result<std::set<std::string>> strays(const std::string& id, const std::set<std::string>& before,
                                     const std::vector<std::string>& numbers) {
  uint64_t least = numbers.empty() ? 0 : numberOf(numbers.front());
  for (const std::string& job : before) least = std::max(least, numberOf(job) + 1);
  MUSTER_TRY(const auto all, readJobs());
  std::set<std::string> found;
  for (const JobInfo& job : all)
    if (job.live() && job.comment == id && job.user == static_cast<int64_t>(geteuid()) &&
        numberOf(job.job) >= least)
      found.insert(job.job);
  return found;
}

/// Whether Slurm refuses a job for the node that it is pinned to, and may take one for another.
bool refusesNode(const Error& error) {
  const auto says = [&](const char* phrase) { return error.message.find(phrase) != std::string::npos; };
  return says("Requested node configuration is not available") || says("Invalid node name specified") ||
         says("Requested nodes not in this partition");
}

}  // namespace

std::string after(const std::vector<std::string>& jobs) {
  return "--dependency=afterany:" + join(jobs, ":");
}

Status Batch::send(JobRequest request) {
  // Its text, not its path: what Slurm runs is what was read here.
  MUSTER_TRY(const std::string script, readOwnFile(run_.script(request.job.kind), kMostScriptBytes));
  auto number = submit(script, request.options);
  if (!number.ok())
    return std::move(number).error().context(
        fmt::format("submitting the {} job", jobKindName(request.job.kind)));
  request.job.job = *number;
  numbers_.push_back(*number);
  return run_.append(request.job);
}

Status Batch::sendPinned(const std::vector<std::string>& nodes, size_t most) {
  const JobSettings& jobs = run_.submission().jobs;
  const size_t together = jobs.atOnce > 0 ? static_cast<size_t>(jobs.atOnce) : nodes.size();
  Status refusal;
  for (const std::string& node : nodes) {
    const size_t i = numbers_.size();
    if (i == most) break;
    const size_t turn = i / together + 1;  // whose turn comes later may wait longer
    JobRequest request;
    request.job = {JobKind::kPinned, "", round_, {node}, 1};
    request.options = {
        "--nodelist=" + node,
        fmt::format("--deadline=now+{}minutes", jobs.gapMinutes + static_cast<int>(turn) * jobs.minutes)};
    if (i >= together) request.options.push_back(after({numbers_[i - together]}));
    Status sent = send(std::move(request));
    if (sent.ok()) continue;
    if (!refusesNode(sent.error())) return sent;
    printText("no job for {}: {}\n", node, sent.error().message);
    refused_.push_back(node);
    refusal = std::move(sent);
  }
  return numbers_.empty() ? refusal : Status();
}

Status Batch::sendCluster(const std::vector<std::string>& nodes) {
  const JobSettings& jobs = run_.submission().jobs;
  JobRequest request;
  request.job = {JobKind::kCluster, "", round_, nodes, 1};
  request.options = {fmt::format("--nodes={}", nodes.size()), fmt::format("--ntasks={}", nodes.size()),
                     "--nodelist=" + shortList(nodes),
                     fmt::format("--deadline=now+{}minutes", jobs.gapMinutes + jobs.minutes)};
  return send(std::move(request));
}

Status Batch::sendFleet() {
  JobRequest request;
  request.job.kind = JobKind::kFleet;
  request.job.round = round_;
  if (!numbers_.empty()) request.options = {after(numbers_)};
  return send(std::move(request));
}

Status Batch::sendFleetAfterWhatFits() {
  for (;;) {
    Status status = sendFleet();
    if (status.ok() || status.error().code == ErrorCode::kTimeout || numbers_.size() <= 1) return status;
    MUSTER_CHECK_OK(cancel({numbers_.back()}));
    MUSTER_CHECK_OK(run_.appendCancelled(numbers_.back()));
    numbers_.pop_back();
  }
}

Error Batch::takeBack(Error error) const {
  std::set<std::string> jobs(numbers_.begin(), numbers_.end());
  if (const auto found = strays(run_.submission().id, before_, numbers_); found.ok())
    jobs.insert(found->begin(), found->end());
  std::string fate = "nothing of this run is in the queue";
  if (const Status cancelled = cancel(jobs); !cancelled.ok())
    fate = fmt::format("these of its jobs could not be cancelled ({}): scancel {}", cancelled.error().message,
                       listed(jobs));
  else if (!jobs.empty())
    fate = fmt::format("the jobs that had been submitted before are cancelled ({})", listed(jobs));
  for (const std::string& job : numbers_)
    if (const Status noted = run_.appendCancelled(job); !noted.ok()) fate += "; " + noted.error().text();
  // Slurm tells such a limit only by refusing the job that is beyond it.
  const char* hint = error.message.find("QOS policy") == std::string::npos
                         ? ""
                         : " (an account or QOS may limit your jobs, see `sacctmgr show qos,assoc`: "
                           "--most-jobs N keeps below it)";
  error.message += fmt::format("\n{}; once fixed, continue with: muster slurm resume {}{}", fate,
                               shellQuote(run_.folder().string()), hint);
  return error;
}

}  // namespace muster::slurm

// SPDX-License-Identifier: Apache-2.0
// Compares exit files and records with Slurm's job states.
#include "runner/slurm/witness.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/core/text.h"
#include "runner/slurm/node_names.h"

namespace muster::slurm {
namespace {

using Standing = NodeEnd::Standing;

NodeEnd contradicted(std::string why) {
  return {Standing::kContradicted, -1, "", std::move(why)};
}

/// Takes what the folder says of the exit code into what Slurm says.
NodeEnd agreeing(NodeEnd end, int folderSays, const std::string& file) {
  if (end.standing == Standing::kContradicted) return end;
  if (folderSays < 0) return contradicted(fmt::format("{} contains no exit code", file));
  if (end.standing == Standing::kForgotten)
    end.exitCode = folderSays;
  else if (end.exitCode != folderSays)
    return contradicted(fmt::format("Slurm reports that job {} ended with {}, {} says {}", end.job,
                                    end.exitCode, file, folderSays));
  return end;
}

}  // namespace

Result<Witness> Witness::ask(const RunStore& run) {
  MUSTER_TRY(const uid_t owner, run.owner());
  MUSTER_TRY(auto submitted, run.jobs());
  MUSTER_TRY(std::vector<JobInfo> jobs, readJobs());
  MUSTER_CHECK_OK(addEnds(jobs));
  std::set<std::string> forgotten = jobNumbers(submitted), known;
  for (const JobInfo& job : jobs) known.insert(job.number);
  // Of an array some tasks may be forgotten and others not.
  const bool all =
      std::all_of(run.submission().nodes.begin(), run.submission().nodes.end(), [&](const std::string& node) {
        const std::string number = readClaim(run.claim(node));
        return number.empty() || known.count(number) > 0;
      });
  if (all)
    std::erase_if(forgotten, [&](const std::string& number) {
      return std::any_of(jobs.begin(), jobs.end(), [&](const JobInfo& job) { return job.job == number; });
    });
  MUSTER_TRY(const auto accounted, readAccountedJobs(forgotten));
  // What the controller remembers stands first.
  jobs.insert(jobs.end(), accounted.begin(), accounted.end());
  return Witness(run, std::move(submitted), jobs, owner);
}

Witness::Witness(const RunStore& run, std::vector<SubmittedJob> submitted, const std::vector<JobInfo>& jobs,
                 uid_t owner)
    : run_(run), submitted_(std::move(submitted)), owner_(owner) {
  for (const JobInfo& job : jobs) byNumber_.emplace(job.number, job);
  allParts_ = true;
  for (const std::string& node : clusterNodes()) {
    const int part = partOf(node);
    greatestPart_ = std::max(greatestPart_, part);
    allParts_ = allParts_ && part >= 0;
  }
}

int Witness::partOf(const std::string& node) const {
  return readExit(run_.folder() / "cluster_exits" / node);
}

const SubmittedJob* Witness::last(JobKind kind) const {
  const auto found = std::find_if(submitted_.rbegin(), submitted_.rend(),
                                  [&](const SubmittedJob& job) { return job.kind == kind; });
  return found == submitted_.rend() ? nullptr : &*found;
}

std::vector<std::string> Witness::clusterNodes() const {
  const SubmittedJob* job = last(JobKind::kCluster);
  return job == nullptr ? std::vector<std::string>() : job->nodes;
}

NodeEnd Witness::judge(const JobInfo* found, const std::string& number) const {
  if (found == nullptr)
    return {Standing::kForgotten, -1, number,
            fmt::format("Slurm no longer knows job {} (MinJobAge), and there is no accounting", number)};
  const JobInfo& job = *found;
  if (job.user != static_cast<int64_t>(owner_))
    return contradicted(
        fmt::format("job {} is of user {}, the run folder of user {}", number, job.user, owner_));
  // The accounting keeps comments only where it is told to.
  if (job.comment != run_.submission().id && !(job.accounted && job.comment.empty()))
    return contradicted(fmt::format("job {} is of {}", number,
                                    job.comment.empty() ? "no run" : "run " + printable(job.comment, 80)));
  if (job.live())
    return contradicted(fmt::format("job {} has not ended ({})", number, printable(job.state, 40)));
  if (job.state != "COMPLETED" && job.state != "FAILED")
    return contradicted(
        fmt::format("Slurm reports that job {} ended as {}", number, printable(job.state, 40)));
  if (static_cast<double>(job.start) + kMaxClockSkew < run_.submission().created)
    return contradicted(fmt::format("job {} began before this run was submitted", number));
  return {Standing::kConfirmed, job.exitCode, number, "", job.start, job.end};
}

NodeEnd Witness::ofNode(const std::string& node) const {
  const std::string number = readClaim(run_.claim(node));
  if (number.empty()) return contradicted("no job of this run has claimed it");
  const auto found = byNumber_.find(number);
  const JobInfo* job = found == byNumber_.end() ? nullptr : &found->second;
  if (job != nullptr) {
    const bool own = std::any_of(submitted_.begin(), submitted_.end(), [&](const SubmittedJob& one) {
      return one.job == job->job &&
             (one.kind == JobKind::kArray || (one.kind == JobKind::kPinned && one.nodes.front() == node));
    });
    if (!own)
      return contradicted(fmt::format("job {}, which claimed it, is none of this run's for it", number));
    if (job->nodes != node)
      return contradicted(fmt::format("job {}, which claimed it, ran on {}", number,
                                      job->nodes.empty() ? "no node" : printable(job->nodes, 80)));
  }
  return agreeing(judge(job, number), readExit(run_.exit(node)), "exits/" + node);
}

NodeEnd Witness::ofCluster(const std::string& node) const {
  const SubmittedJob* job = last(JobKind::kCluster);
  if (job == nullptr || std::find(job->nodes.begin(), job->nodes.end(), node) == job->nodes.end())
    return contradicted("it is not a node of the job that ran the stages of scope cluster");
  const auto found = byNumber_.find(job->job);
  NodeEnd end = judge(found == byNumber_.end() ? nullptr : &found->second, job->job);
  if (end.standing == Standing::kContradicted) return end;
  if (end.standing == Standing::kConfirmed) {
    const auto ran = nodeNames(found->second.nodes);
    if (!ran.ok() || std::find(ran->begin(), ran->end(), node) == ran->end())
      return contradicted(fmt::format("job {} ran on {}", job->job, printable(found->second.nodes, 80)));
  }
  const int part = partOf(node);
  const int whole = readExit(run_.folder() / "cluster.exit");
  end = agreeing(end, whole, "cluster.exit");
  if (end.standing == Standing::kContradicted) return end;
  if (part < 0 || part > whole)
    return contradicted(fmt::format("its part of job {} ended with {}, the job with {}", job->job,
                                    part < 0 ? "no exit code" : std::to_string(part), whole));
  if (allParts_ && greatestPart_ < whole)
    return contradicted(fmt::format("job {} ended with {}, and no part of it claims that", job->job, whole));
  end.exitCode = part;
  return end;
}

NodeEnd Witness::ofFleet() const {
  const SubmittedJob* job = last(JobKind::kFleet);
  if (job == nullptr) return contradicted("this run has no fleet job");
  const auto found = byNumber_.find(job->job);
  return agreeing(judge(found == byNumber_.end() ? nullptr : &found->second, job->job),
                  readExit(run_.folder() / "fleet.exit"), "fleet.exit");
}

}  // namespace muster::slurm

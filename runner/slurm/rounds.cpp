// SPDX-License-Identifier: Apache-2.0
// See rounds.h.
#include "runner/slurm/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <set>

#include "runner/core/text.h"
#include "runner/slurm/node_names.h"

namespace muster::slurm {
namespace {

constexpr int kDefaultMaxArraySize = 1001;  // slurm.conf(5)

std::vector<std::string> names(const Nodes& nodes) {
  std::vector<std::string> all;
  for (const auto& [name, node] : nodes) all.push_back(name);
  return all;
}

/// MaxArraySize of this cluster.
Result<int> maxArraySize() {
  MUSTER_TRY(const auto configuration, readConfiguration());
  const auto found = configuration.find("MaxArraySize");
  if (found == configuration.end()) return kDefaultMaxArraySize;
  int size = 0;
  const std::string& text = found->second;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (failure == std::errc() && end == text.data() + text.size()) return size;
  return Error{ErrorCode::kProtocol,
               fmt::format("scontrol says MaxArraySize = {}, wanted a number", printable(text, 40)), ""};
}

/// Submits one job and keeps its number.
Result<std::string> send(const RunStore& run, JobRequest request) {
  auto number = submit(run.script(request.job.kind).string(), request.options);
  if (!number.ok())
    return std::move(number).error().context(
        fmt::format("submitting the {} job", jobKindName(request.job.kind)));
  request.job.job = *number;
  MUSTER_CHECK_OK(run.append(request.job));
  return *number;
}

std::string after(const std::vector<std::string>& jobs) {
  return "--dependency=afterany:" + join(jobs, ":");
}

Status sendFleet(const RunStore& run, const std::vector<std::string>& jobs, int round) {
  JobRequest request;
  request.job.kind = JobKind::kFleet;
  request.job.round = round;
  if (!jobs.empty()) request.options = {after(jobs)};
  MUSTER_TRY(const std::string number, send(run, std::move(request)));
  return {};
}

/// A job for each node that only this node can take. It leaves the queue when it cannot begin in time.
Result<std::vector<std::string>> sendPinned(const RunStore& run, const std::vector<std::string>& nodes,
                                            int round) {
  const JobSettings& jobs = run.submission().jobs;
  std::vector<std::string> numbers;
  for (const std::string& node : nodes) {
    JobRequest request;
    request.job = {JobKind::kPinned, "", round, {node}, 1};
    const size_t together = jobs.atOnce > 0 ? static_cast<size_t>(jobs.atOnce) : nodes.size();
    const size_t turn = numbers.size() / together + 1;  // whose turn comes later may wait longer
    request.options = {
        "--nodelist=" + node,
        fmt::format("--deadline=now+{}minutes", jobs.gapMinutes + static_cast<int>(turn) * jobs.minutes)};
    if (numbers.size() >= together) request.options.push_back(after({numbers[numbers.size() - together]}));
    MUSTER_TRY(std::string number, send(run, std::move(request)));
    numbers.push_back(std::move(number));
  }
  return numbers;
}

Result<std::string> sendCluster(const RunStore& run, const std::vector<std::string>& nodes, int round) {
  const JobSettings& jobs = run.submission().jobs;
  JobRequest request;
  request.job = {JobKind::kCluster, "", round, nodes, 1};
  request.options = {fmt::format("--nodes={}", nodes.size()), fmt::format("--ntasks={}", nodes.size()),
                     "--nodelist=" + shortList(nodes),
                     fmt::format("--deadline=now+{}minutes", jobs.gapMinutes + jobs.minutes)};
  return send(run, std::move(request));
}

/// Nodes that nobody has claimed and that could run the plan now.
std::vector<std::string> gaps(const RunStore& run, const Nodes& known) {
  std::vector<std::string> open;
  for (const std::string& node : run.submission().nodes) {
    std::error_code error;
    const auto found = known.find(node);
    if (found != known.end() && found->second.available() && !std::filesystem::exists(run.claim(node), error))
      open.push_back(node);
  }
  return open;
}

/// Nodes for the cluster job: those that have ended their own stages with a verdict, and are still there.
std::vector<std::string> clusterNodes(const RunStore& run, const Nodes& known) {
  std::vector<std::string> fit;
  for (const std::string& node : run.submission().nodes) {
    const auto found = known.find(node);
    const int code = readExit(run.exit(node));
    const bool ended = !run.submission().nodeStages || code == 0 || code == 1 || code == 3;
    if (found != known.end() && found->second.available() && ended) fit.push_back(node);
  }
  return fit;
}

bool hasJob(const std::vector<SubmittedJob>& jobs, JobKind kind, int round) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const SubmittedJob& job) { return job.kind == kind && job.round == round; });
}

bool wasPinned(const std::vector<SubmittedJob>& jobs, const std::string& node, int round) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const SubmittedJob& job) {
    return job.kind == JobKind::kPinned && job.round == round && job.nodes.front() == node;
  });
}

}  // namespace

std::vector<JobRequest> arrayRequests(const JobSettings& jobs, size_t count,
                                      const std::vector<std::string>& others, int maxArraySize, int round) {
  // The highest index must be below MaxArraySize.
  const size_t most = static_cast<size_t>(std::max(maxArraySize - 1, 1));
  const std::string limit = jobs.atOnce > 0 ? fmt::format("%{}", jobs.atOnce) : "";
  std::vector<JobRequest> requests;
  for (size_t done = 0; done < count;) {
    const size_t tasks = std::min(most, count - done);
    JobRequest request;
    request.job = {JobKind::kArray, "", round, {}, static_cast<int>(tasks)};
    request.options = {fmt::format("--array=0-{}{}", tasks - 1, limit)};
    if (!others.empty()) request.options.push_back("--exclude=" + shortList(others));
    requests.push_back(std::move(request));
    done += tasks;
  }
  return requests;
}

Result<std::vector<std::pair<std::string, std::string>>> unavailable(const std::vector<std::string>& nodes,
                                                                     const Nodes& known) {
  std::vector<std::pair<std::string, std::string>> found;
  std::vector<std::string> unknown;
  for (const std::string& name : nodes) {
    const auto node = known.find(name);
    if (node == known.end())
      unknown.push_back(name + didYouMean(name, names(known)));
    else if (!node->second.available())
      found.emplace_back(name, node->second.text());
  }
  if (unknown.empty()) return found;
  return Error{ErrorCode::kUsage,
               "Slurm has no such node in this partition: " + join(unknown, ", ") + "; see `sinfo -N`",
               "--nodes"};
}

std::string expectText(const RunStore& run, const Nodes& known) {
  std::string text;
  for (const std::string& name : run.submission().nodes) {
    text += name;
    const auto node = known.find(name);
    if (readExit(run.exit(name)) < 0 && node != known.end() && !node->second.available()) {
      std::string why = node->second.text();
      std::replace(why.begin(), why.end(), '#', ' ');  // begins a comment there
      text += fmt::format(" {} {}", node->second.drained() ? "drained" : "down", why);
    }
    text += '\n';
  }
  return text;
}

int lastRound(const std::vector<SubmittedJob>& jobs) {
  int round = 0;
  for (const SubmittedJob& job : jobs) round = std::max(round, job.round);
  return round;
}

Status beginRun(const RunStore& run, const Nodes& known) {
  MUSTER_CHECK_OK(writeFileAtomically(run.folder() / "expect.txt", expectText(run, known)));
  const std::vector<std::string> open = gaps(run, known);
  std::vector<std::string> numbers;
  if (!run.submission().nodeStages) {
    if (!open.empty()) {
      MUSTER_TRY(std::string number, sendCluster(run, open, 0));
      numbers.push_back(std::move(number));
    }
    return sendFleet(run, numbers, 0);
  }
  std::set<std::string> others;
  for (const auto& [name, node] : known) others.insert(name);
  for (const std::string& node : open) others.erase(node);
  MUSTER_TRY(const int most, maxArraySize());
  for (JobRequest& request :
       arrayRequests(run.submission().jobs, open.size(), {others.begin(), others.end()}, most, 0)) {
    // Slurm limits the tasks of each array alone: where few may run at once, arrays take turns.
    if (run.submission().jobs.atOnce > 0 && !numbers.empty())
      request.options.push_back(after({numbers.back()}));
    MUSTER_TRY(std::string number, send(run, std::move(request)));
    numbers.push_back(std::move(number));
  }
  return sendFleet(run, numbers, 0);
}

Status beginRound(const RunStore& run, const std::vector<std::string>& nodes, int round) {
  MUSTER_TRY(const auto numbers, sendPinned(run, nodes, round));
  return sendFleet(run, numbers, round);
}

Result<bool> fillRound(const RunStore& run) {
  MUSTER_TRY(const auto jobs, run.jobs());
  MUSTER_TRY(const Nodes known, readNodes(run.submission().jobs.partition));
  MUSTER_CHECK_OK(writeFileAtomically(run.folder() / "expect.txt", expectText(run, known)));
  const int round = lastRound(jobs);
  std::vector<std::string> open;
  if (run.submission().nodeStages) {
    open = gaps(run, known);
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](const std::string& node) { return wasPinned(jobs, node, round); }),
               open.end());
  }
  if (!open.empty()) {
    fmt::print("nodes that no task met, now with a job pinned to each: {}\n", shortList(open));
    MUSTER_TRY(const auto numbers, sendPinned(run, open, round));
    MUSTER_CHECK_OK(sendFleet(run, numbers, round));
    return true;
  }
  std::error_code error;
  if (!run.submission().clusterStages || hasJob(jobs, JobKind::kCluster, round) ||
      std::filesystem::exists(run.folder() / "cluster.exit", error))
    return false;
  const std::vector<std::string> fit = clusterNodes(run, known);
  if (fit.empty()) {
    fmt::print("no node is left for the stages of scope cluster\n");
    return false;
  }
  fmt::print("stages of scope cluster on {}\n", shortList(fit));
  MUSTER_TRY(const std::string number, sendCluster(run, fit, round));
  MUSTER_CHECK_OK(sendFleet(run, {number}, round));
  return true;
}

}  // namespace muster::slurm

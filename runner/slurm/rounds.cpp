// SPDX-License-Identifier: Apache-2.0
// Plans and submits the rounds of a run.
#include "runner/slurm/rounds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/slurm/node_names.h"
#include "runner/slurm/progress.h"
#include "runner/slurm/room.h"
#include "runner/system/run_store.h"

namespace muster::slurm {
namespace fs = std::filesystem;
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
               fmt::format("scontrol reports MaxArraySize = {}, expected a number", printable(text, 40)), ""};
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

/// Whether the last cluster job was without one of `nodes`: what connects it with the others nobody has
/// measured.
bool missedCluster(const std::vector<SubmittedJob>& jobs, const std::vector<std::string>& nodes) {
  const auto last = std::find_if(jobs.rbegin(), jobs.rend(),
                                 [](const SubmittedJob& job) { return job.kind == JobKind::kCluster; });
  return last != jobs.rend() && std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
           return std::find(last->nodes.begin(), last->nodes.end(), node) == last->nodes.end();
         });
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
      const NodeInfo& info = node->second;  // the word before it says what it is
      std::string why = info.reason.empty() ? info.state : fmt::format("{} [{}]", info.reason, info.user);
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

namespace {

/// Those of `nodes` that the queue has room for beside the fleet job that follows them; says so where some
/// are left.
Result<std::vector<std::string>> fitting(const RunStore& run, const std::vector<std::string>& nodes,
                                         int own) {
  MUSTER_TRY(const QueueRoom room, askQueueRoom(run.submission().jobs, own));
  if (own == 0) MUSTER_CHECK_OK(checkRoom(room));
  const auto most = static_cast<size_t>(std::max(room.jobs - 1, 0));
  if (nodes.size() <= most) return nodes;
  if (most == 0)
    return Error{ErrorCode::kTimeout, fmt::format("Slurm accepts {} more jobs now ({})", room.jobs, room.why),
                 ""};
  printText("{}: {} of {} nodes now, the others after them\n", room.why, most, nodes.size());
  return std::vector<std::string>(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(most));
}

/// Arrays for the nodes in `open`, and the fleet job after them.
Status sendArrays(Batch& batch, const RunStore& run, const Nodes& known,
                  const std::vector<std::string>& open) {
  std::set<std::string> others;
  for (const auto& [name, node] : known) others.insert(name);
  for (const std::string& node : open) others.erase(node);
  MUSTER_TRY(const int most, maxArraySize());
  MUSTER_TRY(const auto now, fitting(run, open, 0));
  for (JobRequest& request :
       arrayRequests(run.submission().jobs, now.size(), {others.begin(), others.end()}, most, 0)) {
    // Slurm limits the tasks of each array alone: where few may run at once, arrays take turns.
    if (run.submission().jobs.atOnce > 0 && !batch.numbers().empty())
      request.options.push_back(after({batch.numbers().back()}));
    MUSTER_CHECK_OK(batch.send(std::move(request)));
  }
  return batch.sendFleet();
}

/// Moves `parts`, names in the directory `from`, to where they were; nothing where one of them has been made
/// anew.
Status moveBack(const fs::path& from, const std::vector<std::pair<const char*, fs::path>>& parts) {
  std::error_code error;
  for (const auto& [name, to] : parts)
    if (fs::exists(from / name, error) && fs::exists(to, error)) return {};
  for (const auto& [name, to] : parts)
    MUSTER_CHECK_OK(moveInto(to.parent_path(), {{from / name, to.filename().c_str()}}));
  fs::remove(from, error);
  return {};
}

/// Puts back what attempts/nodes/NODE.n holds. The claim is set aside last, so it comes back first.
Status putNodeBack(const RunStore& run, const std::string& node, int n) {
  return moveBack(run.folder() / "attempts" / "nodes" / fmt::format("{}.{}", node, n),
                  {{"claim", run.claim(node)}, {"exit", run.exit(node)}, {"run", run.nodeFolder(node)}});
}

/// Gives the nodes that Slurm has no job for their results of before the round back.
Status keepRefused(const RunStore& run, const Batch& batch, int round) {
  for (const std::string& node : batch.refused()) MUSTER_CHECK_OK(putNodeBack(run, node, round - 1));
  return {};
}

Status sendFirst(Batch& batch, const RunStore& run, const Nodes& known) {
  const std::vector<std::string> open = gaps(run, known);
  if (run.submission().nodeStages) return sendArrays(batch, run, known, open);
  if (!open.empty()) MUSTER_CHECK_OK(batch.sendCluster(open));
  return batch.sendFleet();
}

}  // namespace

Status beginRun(const RunStore& run, const Nodes& known) {
  MUSTER_CHECK_OK(writeFileAtomically(run.folder() / "expect.txt", expectText(run, known)));
  Batch batch(run, 0, {});
  const Status sent = sendFirst(batch, run, known);
  return sent.ok() ? sent : batch.takeBack(sent.error());
}

Status beginRound(const RunStore& run, const std::vector<std::string>& nodes, int round) {
  MUSTER_TRY(const auto jobs, run.jobs());
  MUSTER_TRY(const auto now, run.submission().nodeStages ? fitting(run, nodes, 0) : nodes);
  Batch batch(run, round, jobs);
  Status sent;
  if (run.submission().nodeStages)
    sent = batch.sendPinned(nodes, now.size());
  else if (!now.empty())
    sent = batch.sendCluster(now);
  if (sent.ok()) sent = batch.sendFleet();
  return sent.ok() ? keepRefused(run, batch, round) : batch.takeBack(sent.error());
}

namespace {

/// kTimeout while a controller that has just started does not know how a node is that nobody has claimed: it
/// would count as missing.
Status checkKnown(const RunStore& run, const Nodes& known) {
  for (const std::string& node : run.submission().nodes) {
    std::error_code error;
    const auto found = known.find(node);
    if (found != known.end() && found->second.unknown() && !std::filesystem::exists(run.claim(node), error))
      return Error{ErrorCode::kTimeout, fmt::format("Slurm does not know yet how {} is", node), ""};
  }
  return {};
}

/// Pins a job to each node of `open` that Slurm takes one for now; the fleet job after them sees to the
/// others. False where Slurm has no job for any of them.
Result<bool> fillGaps(const RunStore& run, const std::vector<SubmittedJob>& jobs, int round,
                      const std::vector<std::string>& open) {
  MUSTER_TRY(const auto now, fitting(run, open, 1));
  printText("nodes that no task met, now with a job pinned to each: {}\n", shortList(now));
  Batch batch(run, round, jobs);
  Status sent = batch.sendPinned(open, now.size());
  const bool refusesAll = batch.refused().size() == open.size();
  if (!sent.ok() && !batch.numbers().empty())
    printText("{} of these were submitted: {}\n", batch.numbers().size(), sent.error().message);
  if (sent.ok() || !batch.numbers().empty()) sent = batch.sendFleetAfterWhatFits();
  if (!sent.ok() && !refusesAll) return batch.takeBack(sent.error());
  MUSTER_CHECK_OK(keepRefused(run, batch, round));
  return !refusesAll;
}

/// The greatest N of all NAME.N in the directory, by NAME.
std::map<std::string, int> newestAttempts(const fs::path& folder) {
  std::map<std::string, int> newest;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const size_t dot = std::min(name.rfind('.'), name.size() - 1);
    int n = 0;
    if (std::from_chars(name.data() + dot + 1, name.data() + name.size(), n).ec == std::errc() &&
        n < kMostRounds)
      newest[name.substr(0, dot)] = std::max(newest[name.substr(0, dot)], n);
  }
  return newest;
}

}  // namespace

Result<std::set<std::string>> takeStrays(const RunStore& run) {
  MUSTER_TRY(const auto submitted, run.jobs());
  MUSTER_TRY(std::vector<JobInfo> jobs, readJobs());
  std::set<std::string> known = jobNumbers(submitted), taken, live, useless;
  if (const char* own = std::getenv("SLURM_JOB_ID"); own != nullptr) known.insert(own);  // the fleet job
  std::erase_if(jobs, [&](const JobInfo& job) {
    return known.contains(job.job) || job.comment != run.submission().id ||
           job.user != static_cast<int64_t>(geteuid());
  });
  const std::map<std::string, int> attempts = newestAttempts(run.folder() / "attempts" / "nodes");
  for (const JobInfo& job : jobs) {
    if (!contains(run.submission().nodes, job.nodes)) continue;
    const std::string claim = readClaim(run.claim(job.nodes));
    const bool begins = claim.empty() && job.state == "RUNNING";  // it is about to claim its node
    if (claim != job.number && !begins) continue;
    const bool pinned = job.id == job.number;
    // Of the round for which the node's result was set aside.
    const auto aside = attempts.find(job.nodes);
    const int round = pinned && aside != attempts.end() ? aside->second + 1 : 0;
    if (taken.insert(job.job).second)
      MUSTER_CHECK_OK(run.append({pinned ? JobKind::kPinned : JobKind::kArray, job.job,
                                  std::max(round, lastRound(submitted)),
                                  pinned ? std::vector{job.nodes} : std::vector<std::string>()}));
  }
  for (const JobInfo& job : jobs)
    if (job.live()) (taken.contains(job.job) ? live : useless).insert(job.job);
  MUSTER_CHECK_OK(cancel(useless));
  if (!useless.empty())
    printText("cancelled jobs of this run that its jobs.jsonl does not list: {}\n",
              join(std::vector<std::string>(useless.begin(), useless.end()), " "));
  return live;
}

int nextRound(const RunStore& run, const std::vector<SubmittedJob>& jobs) {
  int round = lastRound(jobs) + 1;
  for (const fs::path& folder : {run.folder() / "attempts", run.folder() / "attempts" / "nodes"})
    for (const auto& [name, n] : newestAttempts(folder)) round = std::max(round, n + 2);
  return round;
}

Status putBack(const RunStore& run) {
  MUSTER_TRY(const auto jobs, run.jobs());
  const fs::path &folder = run.folder(), attempts = folder / "attempts";
  for (const auto& [node, n] : newestAttempts(attempts / "nodes")) {
    if (!contains(run.submission().nodes, node) || wasPinned(jobs, node, n + 1)) continue;
    MUSTER_CHECK_OK(putNodeBack(run, node, n));
  }
  for (const auto& [name, n] : newestAttempts(attempts)) {
    const fs::path from = attempts / fmt::format("{}.{}", name, n);
    if (n < lastRound(jobs)) continue;  // what ran since may be another machine
    if (name == "cluster")
      MUSTER_CHECK_OK(moveBack(from, {{"exit", folder / "cluster.exit"},
                                      {"exits", folder / "cluster_exits"},
                                      {"run", folder / "records" / "cluster"}}));
    if (name == "fleet")
      MUSTER_CHECK_OK(moveBack(from, {{"fleet", folder / "fleet"}, {"fleet.exit", folder / "fleet.exit"}}));
  }
  return {};
}

Result<bool> fillRound(const RunStore& run) {
  MUSTER_TRY(const auto strays, takeStrays(run));
  MUSTER_TRY(const auto jobs, run.jobs());
  MUSTER_TRY(const Nodes known, readNodes(run.submission().jobs.partition));
  MUSTER_CHECK_OK(checkKnown(run, known));
  MUSTER_CHECK_OK(writeFileAtomically(run.folder() / "expect.txt", expectText(run, known)));
  const int round = lastRound(jobs);
  if (!strays.empty()) {
    Batch batch(run, round, jobs);
    const Status sent =
        batch.send({{JobKind::kFleet, "", round, {}, 1}, {after({strays.begin(), strays.end()})}});
    if (!sent.ok()) return batch.takeBack(sent.error());
    return true;
  }
  std::vector<std::string> open;
  if (run.submission().nodeStages) {
    open = gaps(run, known);
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](const std::string& node) { return wasPinned(jobs, node, round); }),
               open.end());
  }
  if (!open.empty()) {
    MUSTER_TRY(const bool sent, fillGaps(run, jobs, round, open));
    if (sent) return true;
  }
  if (!run.submission().clusterStages || hasJob(jobs, JobKind::kCluster, round)) return false;
  const std::vector<std::string> fit = clusterNodes(run, known);
  std::error_code error;
  const bool ended = std::filesystem::exists(run.folder() / "cluster.exit", error);
  if (ended && !missedCluster(jobs, fit)) return false;
  if (const auto rejected = rejectedInCluster(run); !rejected.empty()) {
    printText("stages of scope cluster do not run again: something failed in them on {}\n",
              shortList(rejected));
    return false;
  }
  if (fit.empty()) {
    printText("no node is left for the stages of scope cluster\n");
    return false;
  }
  if (ended) MUSTER_CHECK_OK(run.setClusterAside(round - 1));
  printText("stages of scope cluster on {}\n", shortList(fit));
  Batch batch(run, round, jobs);
  Status sent = batch.sendCluster(fit);
  if (sent.ok()) sent = batch.sendFleet();
  if (!sent.ok()) return batch.takeBack(sent.error());
  return true;
}

}  // namespace muster::slurm

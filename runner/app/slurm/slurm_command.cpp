// SPDX-License-Identifier: Apache-2.0
// `muster slurm status, wait, resume, drain, undrain, clean`: what is done with a run on Slurm.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "runner/app/process/interrupt.h"
#include "runner/app/process/print_error.h"
#include "runner/app/slurm/slurm_fleet.h"
#include "runner/app/slurm/slurm_options.h"
#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/exit_code.h"
#include "runner/slurm/clean.h"
#include "runner/slurm/drain.h"
#include "runner/slurm/node_names.h"
#include "runner/slurm/progress.h"
#include "runner/slurm/rounds.h"
#include "runner/slurm/scripts.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr unsigned kLook = 500000;  // microseconds between looks at the run folder
constexpr double kAskSlurm = 5;     // seconds between questions to the controller, which has others to serve
constexpr double kFillPatience = 1200;    // seconds; the fleet job has an hour for this and its report
constexpr unsigned kFillPause = 5000000;  // microseconds
constexpr int kUnsurePatience = 3;        // looks that find no job before the run counts as lost

/// Puts aside what another round makes again: the old fleet report, and with `clusterAgain` what the
/// cluster-scope job left.
Status prepareRound(const slurm::RunStore& run, int round, bool clusterAgain) {
  const fs::path attempts = run.folder() / "attempts" / fmt::format("fleet.{}", round - 1);
  std::error_code error;
  fs::create_directories(attempts, error);
  for (const char* name : {"fleet.exit", "fleet"}) {
    if (!fs::exists(run.folder() / name, error)) continue;
    fs::rename(run.folder() / name, attempts / name, error);
    if (error)
      return Error{ErrorCode::kIo, "cannot set it aside: " + error.message(), (run.folder() / name).string()};
  }
  return clusterAgain ? run.setClusterAside(round - 1) : Status();
}

/// Whether stages of scope cluster, which are of all nodes, run again: where they left no verdict, and with
/// `rejectedToo` where they rejected a node. A rejection in them stays where it is not asked for again.
bool runsClusterAgain(const slurm::RunStore& run, bool wanted, bool rejectedToo) {
  const int exit = slurm::readExit(run.folder() / "cluster.exit");
  const bool judged = exit == kExitAccepted || exit == kExitRejected;
  if (!run.submission().clusterStages || (judged && !wanted && !(rejectedToo && exit == kExitRejected)))
    return false;
  const std::vector<std::string> rejected = slurm::rejectedInCluster(run);
  if (rejected.empty() || rejectedToo) return true;
  printText(
      "stages of scope cluster do not run again: something failed in them on {}; after a repair, use "
      "--rejected\n",
      slurm::shortList(rejected));
  return false;
}

}  // namespace

Result<int> slurmStatus(const SlurmOptions& o) {
  MUSTER_TRY(const slurm::RunStore run, slurm::RunStore::open(o.run));
  MUSTER_TRY(const auto nodes, slurm::readProgress(run));
  const auto byFleet = rejectedByFleet(run);
  if (!byFleet.ok()) printText("{}\n", printable(byFleet.error().text()));
  for (const slurm::NodeJob& node : nodes)
    printText("{:<20} {:<10} {}{}\n", node.node, nodeStateName(node.state), node.detail,
              byFleet.ok() && byFleet->contains(node.node) && node.state != slurm::NodeState::kRejected
                  ? ", rejected by the fleet"
                  : "");
  if (run.submission().clusterStages) {
    const int code = slurm::readExit(run.folder() / "cluster.exit");
    printText("{:<20} {}\n", "(cluster scope)", code < 0 ? "not ended yet" : fmt::format("exit {}", code));
  }
  printText("{} nodes: {}\n", nodes.size(), countText(nodes));
  const auto code = slurm::fleetExit(run);
  printText("fleet report: {}\n", code ? fleetReportText(run, *code) : "not yet");
  return kExitAccepted;
}

Result<int> slurmWait(const slurm::RunStore& run) {
  installInterruptHandlers();
  std::string shown;
  int unsure = 0;
  double asked = -kAskSlurm;
  for (;;) {
    if (const auto code = slurm::fleetExit(run)) return showFleet(run, *code);
    if (interrupted().load()) {
      printText("the jobs continue; wait again with: muster slurm wait {}\n",
                slurm::shellQuote(run.folder().string()));
      return kExitInterrupted;
    }
    if (unsure >= kUnsurePatience) {
      printError(
          fmt::format("muster: {}: no job of this run is pending or running, and there is no fleet report; "
                      "check its logs/, then continue with `muster slurm resume`{}",
                      run.folder().string(), slurm::whyRefused(run.folder() / "fleet.exit")));
      return kExitIncomplete;
    }
    usleep(kLook);
    if (systemClock().now() - asked < kAskSlurm) continue;
    asked = systemClock().now();
    MUSTER_TRY(const auto submitted, run.jobs());
    MUSTER_TRY(const uid_t owner, run.owner());
    const auto jobs = slurm::readJobs(slurm::jobNumbers(submitted), owner);
    const auto known = slurm::readNodes();
    if (!jobs.ok() || !known.ok()) {  // a controller that restarts is no reason to give up
      printText("Slurm does not answer, retrying: {}\n",
                printable((jobs.ok() ? known.error() : jobs.error()).message));
      std::fflush(stdout);
      continue;
    }
    unsure = anyLive(*jobs) ? 0 : unsure + 1;
    MUSTER_TRY(const auto nodes, slurm::readProgress(run, submitted, *jobs, *known));
    if (const std::string now = countText(nodes); now != shown)
      printText("{} {}\n", formatUtc(systemClock().wallUnix()), shown = now);
    std::fflush(stdout);
  }
}

/// A run whose scripts Slurm is told to run as this user, in the folder that they name.
Result<slurm::RunStore> openOwnRun(const fs::path& folder) {
  MUSTER_TRY(const fs::path own, ownFolder(folder));
  MUSTER_CHECK_OK(ownFolder(own / "scripts"));
  MUSTER_TRY(slurm::RunStore run, slurm::RunStore::open(own));
  MUSTER_CHECK_OK(run.checkPlace());
  return run;
}

/// A run whose records decide over nodes.
Result<slurm::RunStore> openTrustedRun(const fs::path& folder) {
  MUSTER_TRY(const fs::path trusted, trustedPath(folder, "run folder", Above::kAll));
  return slurm::RunStore::open(trusted);
}

Result<int> slurmFill(const SlurmOptions& o) {
  MUSTER_TRY(const slurm::RunStore run, openOwnRun(o.run));
  // Who submitted this job may still hold the run, the controller may be restarting, and a full queue
  // empties.
  for (const double end = systemClock().now() + kFillPatience;;) {
    auto lock = run.lock();
    const auto more = lock.ok() ? slurm::fillRound(run) : Result<bool>(lock.error());
    if (more.ok()) return *more ? slurm::kExitAgain : kExitAccepted;
    const bool passing = !lock.ok() || more.error().code == ErrorCode::kTimeout;
    if (!passing || systemClock().now() > end) return more.error();
    printText("trying again: {}\n", printable(more.error().text()));
    std::fflush(stdout);
    lock = Fd();
    usleep(kFillPause);
  }
}

Result<int> slurmResume(const SlurmOptions& o) {
  MUSTER_TRY(slurm::RunStore run, openOwnRun(o.run));
  {
    MUSTER_TRY(const Fd lock, run.lock());
    MUSTER_TRY(const auto strays, slurm::takeStrays(run));
    MUSTER_TRY(const auto submitted, run.jobs());
    MUSTER_TRY(const uid_t owner, run.owner());
    MUSTER_TRY(const auto jobs, slurm::readJobs(slurm::jobNumbers(submitted), owner));
    if (!strays.empty() || slurm::anyLive(jobs))
      return Error{ErrorCode::kUsage,
                   "jobs of this run are still pending or running; see `muster slurm status`, and resume "
                   "when they have ended",
                   run.folder().string()};
    MUSTER_CHECK_OK(slurm::putBack(run));  // where a resume was killed
    MUSTER_TRY(const slurm::Nodes known, slurm::readNodes(run.submission().jobs.partition));
    MUSTER_TRY(const auto nodes, slurm::readProgress(run, submitted, jobs, known));
    const int round = slurm::nextRound(run, submitted);
    const bool onlyCluster = !run.submission().nodeStages;
    std::set<std::string> byFleet = uncountedByFleet(run);
    if (o.rejectedToo) {
      MUSTER_TRY(auto rejected, rejectedByFleet(run));
      byFleet.merge(rejected);
    }
    std::vector<std::string> again, usable;
    for (const slurm::NodeJob& node : nodes) {
      const auto found = known.find(node.node);
      const bool available = found != known.end() && found->second.available();
      if (available) usable.push_back(node.node);
      const bool byFleetAlone = node.state == slurm::NodeState::kAccepted && byFleet.contains(node.node);
      if (!byFleetAlone && !runsAgain(node.state, o.rejectedToo)) continue;
      if (available)
        again.push_back(node.node);
      else
        printText("missing: {} ({})\n", node.node,
                  found == known.end() ? "Slurm has no such node" : found->second.text());
    }
    // What is run again may be another machine by now, also for the others that met it.
    const bool clusterAgain = runsClusterAgain(run, !again.empty(), o.rejectedToo);
    if (onlyCluster && !again.empty()) again = clusterAgain ? usable : std::vector<std::string>();
    if (again.empty() && !clusterAgain && reportStands(run)) {
      printText("run {}: no node to retest; the fleet report stays as it is\n", run.folder().string());
      return o.wait ? slurmWait(run) : Result<int>(kExitAccepted);
    }
    if (o.jobs.mostJobs > 0) MUSTER_CHECK_OK(run.limitJobs(o.jobs.mostJobs));
    const auto begin = [&]() -> Status {
      if (!onlyCluster)
        for (const std::string& node : again) MUSTER_CHECK_OK(run.setAside(node, round - 1));
      MUSTER_CHECK_OK(prepareRound(run, round, clusterAgain));
      return slurm::beginRound(run, again, round);
    };
    if (const Status begun = begin(); !begun.ok()) {
      MUSTER_CHECK_OK(slurm::putBack(run));
      return begun.error();
    }
    printText("run {}: retesting {} nodes with the {}{}{}\n", run.folder().string(), again.size(),
              onlyCluster ? "cluster stages" : "plan", again.empty() ? "" : ": ", slurm::shortList(again));
    std::fflush(stdout);
  }
  return o.wait ? slurmWait(run) : Result<int>(kExitAccepted);
}

Result<int> slurmDrain(const SlurmOptions& o) {
  MUSTER_TRY(const slurm::RunStore run, openTrustedRun(o.run));
  MUSTER_CHECK_OK(requireMeasured(run, "drain nodes"));
  MUSTER_TRY(const Fd lock, o.apply ? run.lock() : Result<Fd>(Fd()));  // a dry run creates nothing
  MUSTER_TRY(const slurm::Witness witness, slurm::Witness::ask(run));
  MUSTER_TRY(const auto rejected, rejectedNodes(run, witness, o.unconfirmed));
  MUSTER_TRY(const slurm::Nodes known, slurm::readNodes());
  auto actions = slurm::planDrain(run.submission().id, rejected, known);
  if (actions.empty()) printText("no node of this run is rejected\n");
  if (o.apply) MUSTER_CHECK_OK(slurm::applyDrain(run, actions));
  slurm::showActions(actions, o.apply ? "drained" : "would be drained");
  const auto unconfirmed =
      std::count_if(rejected.begin(), rejected.end(),
                    [](const slurm::RejectedNode& node) { return !node.unconfirmed.empty(); });
  if (unconfirmed == 0) return kExitAccepted;
  printText(
      "{} of these are not drained because their record, exit file, fleet.json and Slurm disagree: check "
      "them. `muster "
      "slurm resume --rejected` retests them; --unconfirmed trusts the run directory for jobs Slurm no "
      "longer knows\n",
      unconfirmed);
  return kExitIncomplete;
}

Result<int> slurmUndrain(const SlurmOptions& o) {
  MUSTER_TRY(const slurm::RunStore run, openTrustedRun(o.run));
  MUSTER_CHECK_OK(requireMeasured(run, "undrain nodes"));
  MUSTER_TRY(const Fd lock, o.apply ? run.lock() : Result<Fd>(Fd()));
  MUSTER_TRY(const auto drained, slurm::drainedByRun(run));
  MUSTER_TRY(const slurm::Nodes known, slurm::readNodes());
  auto actions = slurm::planUndrain(run.submission(), drained, known);
  if (actions.empty()) printText("no node is drained by this run\n");
  if (o.apply) MUSTER_CHECK_OK(slurm::applyUndrain(run, actions));
  slurm::showActions(actions, o.apply ? "given back" : "would be given back");
  return kExitAccepted;
}

Result<int> slurmClean(const SlurmOptions& o) {
  MUSTER_TRY(const double age, parseDuration(o.olderThan).context("--older-than"));
  MUSTER_TRY(const fs::path folder, trustedPath(o.run, "folder of runs", Above::kAll));
  MUSTER_TRY(auto runs, slurm::oldRuns(folder, age, systemClock().wallUnix()));
  bool failed = false;
  for (slurm::OldRun& run : runs) {
    if (o.apply && run.kept.empty()) slurm::removeRun(run);
    failed = failed || run.failed;
    printText("{}: {}\n", run.folder.string(),
              !run.kept.empty() ? "kept: " + run.kept
              : o.apply         ? "removed"
                                : "would be removed");
  }
  if (runs.empty()) printText("{}: no runs in this directory\n", o.run.string());
  return failed ? kExitIncomplete : kExitAccepted;
}

}  // namespace muster

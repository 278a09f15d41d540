// SPDX-License-Identifier: Apache-2.0
// `muster k8s cleanup`: removes the objects of runs that ended long ago. The run folders stay.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runner/app/kube/kube_options.h"
#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/exit_code.h"
#include "runner/kube/objects.h"

namespace muster {
namespace {

constexpr const char* kKinds = "jobs,services,configmaps,secrets";
constexpr const char* kJobSets = "jobsets.jobset.x-k8s.io";

/// What the cluster holds of one run.
struct OldRun {
  std::vector<std::string> objects;  ///< "job/NAME"
  double changed = 0;                ///< the latest of all
  bool live = false;                 ///< a job of it has not ended
  bool ofJobSet = false;             ///< a job of it says that it belongs to a JobSet
};

Result<std::map<std::string, OldRun>> runsIn(const kube::Cluster& cluster) {
  MUSTER_TRY(const Json list,
             kube::askList(cluster, {"get", kKinds, fmt::format("--selector={}", kube::kRunLabel)}));
  std::map<std::string, OldRun> runs;
  for (const Json& item : kube::valueAt(list, "/items")) {
    const auto one = kube::jobsFrom({{"items", Json::array({item})}});
    if (one.empty() || one.front().run.empty()) continue;
    const kube::JobInfo& object = one.front();
    OldRun& run = runs[object.run];
    const std::string kind = lowerCase(kube::textAt(item, "/kind"));
    run.changed = std::max(run.changed, object.changed);
    run.live = run.live || (kind == "job" && !object.ended);
    run.ofJobSet = run.ofJobSet || (kind == "job" && object.ofJobSet);
    run.objects.push_back(kind + "/" + object.name);
  }
  return runs;
}

/// Puts the run's JobSets before its jobs, which they would make again. Whoever makes a Job names its owner
/// freely: only a JobSet with the run's own label is the run's.
Status addJobSets(const kube::Cluster& cluster, const std::string& id, OldRun& run) {
  if (!run.ofJobSet) return {};
  MUSTER_TRY(const Json list,
             kube::askList(cluster, {"get", kJobSets, fmt::format("--selector={}={}", kube::kRunLabel, id)}));
  for (const kube::JobInfo& jobSet : kube::jobsFrom(list))
    run.objects.insert(run.objects.begin(), fmt::format("{}/{}", kJobSets, jobSet.name));
  return {};
}

}  // namespace

Result<int> kubeCleanup(const KubeOptions& o) {
  MUSTER_TRY(const double age, parseDuration(o.olderThan).context("--older-than"));
  MUSTER_TRY(auto runs, runsIn(o.cluster));
  const double now = systemClock().wallUnix();
  for (auto& [id, run] : runs) {
    std::string kept = run.live                  ? "its jobs still wait or run"
                       : now - run.changed < age ? "is not old enough"
                                                 : "";
    if (kept.empty())
      if (const Status added = addJobSets(o.cluster, id, run); !added.ok()) kept = added.error().message;
    if (kept.empty() && o.apply) {
      std::vector<std::string> words = {"delete", "--ignore-not-found", "--wait=false"};
      words.insert(words.end(), run.objects.begin(), run.objects.end());
      MUSTER_CHECK_OK(kube::act(o.cluster, words));
    }
    printText("{}: {}\n", id,
              !kept.empty() ? "kept: " + kept
                            : fmt::format("{} objects {}", run.objects.size(),
                                          o.apply ? "removed" : "would be removed"));
    if (kept.empty())
      for (const std::string& object : run.objects) printText("    {}\n", object);
  }
  if (runs.empty()) printText("no runs of muster in this namespace\n");
  return kExitAccepted;
}

}  // namespace muster

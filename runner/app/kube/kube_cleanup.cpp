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

/// What the cluster holds of one run.
struct OldRun {
  std::vector<std::string> objects;  ///< "job/NAME"
  double changed = 0;                ///< the latest of all
  bool live = false;                 ///< a job of it has not ended
};

Result<std::map<std::string, OldRun>> runsIn(const kube::Cluster& cluster) {
  MUSTER_TRY(const Json list,
             kube::ask(cluster, {"get", kKinds, fmt::format("--selector={}", kube::kRunLabel)}));
  std::map<std::string, OldRun> runs;
  for (const Json& item : kube::valueAt(list, "/items")) {
    const auto one = kube::jobsFrom({{"items", Json::array({item})}});
    if (one.empty() || one.front().run.empty()) continue;
    const kube::JobInfo& object = one.front();
    OldRun& run = runs[object.run];
    const std::string kind = lowerCase(kube::textAt(item, "/kind"));
    run.changed = std::max(run.changed, object.changed);
    run.live = run.live || (kind == "job" && !object.ended);
    // A JobSet makes its jobs again as long as it is there.
    run.objects.push_back(object.jobSet.empty() ? kind + "/" + object.name
                                                : "jobset.jobset.x-k8s.io/" + object.jobSet);
  }
  return runs;
}

}  // namespace

Result<int> kubeCleanup(const KubeOptions& o) {
  MUSTER_TRY(const double age, parseDuration(o.olderThan).context("--older-than"));
  MUSTER_TRY(const auto runs, runsIn(o.cluster));
  const double now = systemClock().wallUnix();
  for (const auto& [id, run] : runs) {
    const std::string kept = run.live                  ? "its jobs still wait or run"
                             : now - run.changed < age ? "is not old enough"
                                                       : "";
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

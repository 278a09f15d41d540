// SPDX-License-Identifier: Apache-2.0
// `muster k8s release`: takes the preflight taint from a node that its own record accepts. Nothing here sets
// one.
#include <fmt/format.h>

#include "runner/app/input/measured_only.h"
#include "runner/app/input/record_input.h"
#include "runner/app/kube/kube_options.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"
#include "runner/kube/objects.h"

namespace muster {
namespace {

constexpr int kTries = 5;  // others may change the node's taints at the same time

Error refuse(const std::string& why, const std::filesystem::path& record) {
  return Error{ErrorCode::kUsage, why + "; the node keeps its taint", record.string()};
}

/// Whether a record is reason enough: measured here, since the last boot, complete, and accepted.
Status checkRecord(const Record& record, const KubeOptions& o) {
  MUSTER_CHECK_OK(requireMeasured(record.simulated, "release a node", o.run));
  if (!record.imported.empty() || !record.rejudged.empty())
    return refuse("the record is imported or was judged again, so it is no measurement of this node", o.run);
  if (record.node != o.nodeName)
    return refuse(
        fmt::format("the record is of node {}, expected {}", printable(record.node, 80), o.nodeName), o.run);
  MUSTER_TRY(const std::string boot, readFile("/proc/sys/kernel/random/boot_id", 100));
  if (record.bootId.empty() || record.bootId != trim(boot))
    return refuse(
        "the node has booted since it was tested, or the record does not say when; delete its preflight pod "
        "to test it again",
        o.run);
  if (const size_t left = record.accounting.of(Outcome::kElsewhere); left > 0)
    return refuse(fmt::format("{} of its stages were left to another job (--scope)", left), o.run);
  if (const size_t left = record.accounting.of(Outcome::kDeferred); left > 0)
    return refuse(
        fmt::format("{} of its check results are relative to other nodes (of = \"fleet\"), which a node "
                    "alone cannot be judged by; give the plan limits of another kind",
                    left),
        o.run);
  if (record.acceptance != Acceptance::kAccepted || record.exitCode != kExitAccepted)
    return refuse(fmt::format("the record is not accepted (exit {})", record.exitCode), o.run);
  return {};
}

/// One after the other: others may change the node's taints at the same time. Somebody who sets the taint
/// again would keep this busy forever.
Status removeTaints(const KubeOptions& o, std::vector<Json> patches) {
  size_t left = patches.size();
  for (int failures = 0; !patches.empty();) {
    if (left == 0)
      return refuse(
          fmt::format("the taint {} was set again after it had been removed; find what sets it (the "
                      "node pool's taints, a controller)",
                      o.taint),
          o.run);
    const Status done = kube::act(
        o.cluster, {"patch", "node", o.nodeName, "--type=json", "--patch", dumpJson(patches.front())});
    if (!done.ok() && ++failures >= kTries) return done;
    if (done.ok()) --left;
    MUSTER_TRY(const Json node, kube::ask(o.cluster, {"get", "node", o.nodeName}));
    patches = kube::taintRemovals(node, o.taint);
  }
  return {};
}

}  // namespace

Result<int> kubeRelease(const KubeOptions& o) {
  MUSTER_TRY(const Json node, kube::ask(o.cluster, {"get", "node", o.nodeName}));
  const auto patches = kube::taintRemovals(node, o.taint);
  // So a pod that starts again on a released node that has booted since does not fail for ever.
  if (patches.empty()) {
    printText("{}: has no taint {}\n", o.nodeName, o.taint);
    return kExitAccepted;
  }
  std::error_code error;
  const bool folder = std::filesystem::is_directory(o.run, error);
  MUSTER_TRY(const Record record, soundRecordAt(folder ? o.run / "record.json" : o.run));
  MUSTER_CHECK_OK(checkRecord(record, o));
  if (o.apply) MUSTER_CHECK_OK(removeTaints(o, patches));
  printText("{}: accepted; the taint {} {}\n", o.nodeName, o.taint,
            o.apply ? "is removed" : "would be removed");
  return kExitAccepted;
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Test "fio": rate, operations and latency of one pattern on a file, and whether it holds what was written.
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "plugins/sdk/test_case.h"
#include "plugins/storage/engine.h"
#include "plugins/storage/tests.h"

namespace muster::storage {
namespace {

/// kUnsupported, with the reason, where the file system would not really bypass the page cache.
Status requireDirect(const Scratch& scratch, const Mount& mount) {
  constexpr const char* kInstead = "; set `direct = false` to measure through the page cache";
  for (const char* inMemory : {"tmpfs", "ramfs", "devtmpfs"})
    if (mount.type == inMemory)  // newer kernels take O_DIRECT there, and copy from memory to memory
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{} has no direct I/O: its files are in memory{}", mount.type, kInstead),
                   scratch.shownPath()};
  const Fd file(openat(scratch.fd(), "direct", O_WRONLY | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600));
  if (file.valid()) return {};
  if (errno == EINVAL)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} has no direct I/O (O_DIRECT is refused){}", mount.type, kInstead),
                 scratch.shownPath()};
  return Error{ErrorCode::kIo, "cannot make a file: " + errnoText(errno), scratch.shownPath()};
}

Status reportFigure(const Site& site, const FioParams& params, const StorageFigure& figure, double now) {
  const sdk::Host::LabelList labels = {{"io", params.direct ? "direct" : "buffered"}};
  const sdk::Host& host = site.host;
  MUSTER_CHECK_OK(host.measurement("bandwidth", "B/s", {figure.bandwidth}, labels, now));
  MUSTER_CHECK_OK(host.measurement("operations", "count/s", {figure.operations}, labels, now));
  MUSTER_CHECK_OK(host.measurement("latency_p50", "s", {figure.latencyP50}, labels, now));
  MUSTER_CHECK_OK(host.measurement("latency_p99", "s", {figure.latencyP99}, labels, now));
  return host.measurement("latency_p999", "s", {figure.latencyP999}, labels, now);
}

Status simulate(Site& site, const FioParams& params) {
  const StorageFigure figure = site.simulated->run(params.load);
  const double now = site.simulated->now();
  MUSTER_CHECK_OK(site.host.fact("engine", "simulated"));
  MUSTER_CHECK_OK(reportMount(site, {"simulated", "simulated", "simulated"}));
  MUSTER_CHECK_OK(reportFigure(site, params, figure, now));
  return site.host.measurement("verify_errors", "count", {0}, {}, now);
}

}  // namespace

Status runFio(Site& site, const Json& caseJson) {
  MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
  MUSTER_TRY(const FioParams params, sdk::readParams<FioParams>(*input.params));
  if (site.simulated != nullptr) return simulate(site, params);
  MUSTER_TRY(const Scratch scratch, Scratch::make(site, params.directory));
  MUSTER_TRY(const Mount mount, mountOf(scratch.fd()));
  MUSTER_CHECK_OK(reportMount(site, mount));
  MUSTER_CHECK_OK(scratch.requireSpace(params.size, 1, params.keepFree));
  if (params.direct) MUSTER_CHECK_OK(requireDirect(scratch, mount));
  MUSTER_TRY(const Engine engine, Engine::find(site, params, scratch));
  MUSTER_CHECK_OK(site.host.fact("engine", engine.version()));

  MUSTER_CHECK_OK(engine.layOut());
  MUSTER_TRY(const StorageFigure figure, engine.measure());
  // The timed writes carry no checksums, which would be part of the time: those that are checked come after.
  if (params.load.writes) MUSTER_CHECK_OK(engine.layOut());
  MUSTER_TRY(const Engine::Check check, engine.verify());
  MUSTER_CHECK_OK(site.host.measurement("verify_errors", "count", {static_cast<double>(check.errors)}));
  if (check.errors > 0) MUSTER_CHECK_OK(site.host.fact("first_fault", check.first));
  return reportFigure(site, params, figure, -1);
}

}  // namespace muster::storage

// SPDX-License-Identifier: Apache-2.0
// Makes the histories that `./dev bench history` measures: runs of nodes of eight GPUs with the figures of a
// real record, each with values of its own. One node in 200 has a GPU that becomes 5% slow, and one in 100
// exchanges a GPU with the next node.
//   history-bench DB FIRST LAST RECORD      adds runs FIRST to LAST - 1, 50 of each node, one per day
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"
#include "reports/history/store/store.h"
#include "runner/core/clock.h"
#include "runner/system/files.h"

namespace muster::history {
namespace {

constexpr size_t kRunsPerNode = 50;
constexpr size_t kSlowEvery = 200, kMovedEvery = 100;
constexpr double kNoise = 0.004;
constexpr double kDay = 86400;

/// A standard normal number that depends on nothing but its arguments.
double normal(uint64_t run, uint64_t figure) {
  std::seed_seq seed{run, figure};
  std::minstd_rand random(seed);
  return std::normal_distribution<double>()(random);
}

std::string serialOf(size_t node, size_t run, size_t device) {
  const bool moved = run >= kRunsPerNode / 2 && device == 1;
  if (moved && node % kMovedEvery == 0) return fmt::format("{:06}-{}", node + 1, device);
  if (moved && node % kMovedEvery == 1) return fmt::format("{:06}-{}", node - 1, device);
  return fmt::format("{:06}-{}", node, device);
}

fleet::NodeSummary runOf(size_t i, const fleet::NodeSummary& base, double first) {
  const size_t node = i / kRunsPerNode, run = i % kRunsPerNode;
  fleet::NodeSummary made = base;
  made.node = fmt::format("n{:05}", node);
  made.started = first + static_cast<double>(run) * kDay + static_cast<double>(node);
  made.finished = made.started + (base.finished - base.started);
  made.runId = fmt::format("{}-{}", made.node, run);
  made.sha256 = sha256Hex(made.runId);
  made.path = fmt::format("/shared/muster/runs/{}/day-{:03}/record.json", made.node, run);
  for (size_t d = 0; d < made.devices.size(); ++d) made.devices[d].serial = serialOf(node, run, d);
  const bool slow = node % kSlowEvery == 0 && run >= kRunsPerNode / 2;
  for (size_t f = 0; f < made.figures.size(); ++f) {
    const double factor = slow && made.figures[f].device == 3 ? 0.95 : 1;
    made.figures[f].median *= static_cast<float>(factor * (1 + kNoise * normal(i, f)));
  }
  return made;
}

Status run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 4)
    return Error{ErrorCode::kUsage, "expected DB FIRST LAST RECORD", "history-bench"};
  fleet::FleetNames names;
  fleet::RecordReader reader(names);
  reader.keepSpreads();
  MUSTER_TRY(const fleet::NodeSummary base, reader.read(arguments[3]));
  MUSTER_TRY(Store store, Store::open(arguments[0], Access::kWrite));
  MUSTER_CHECK_OK(store.database().execute("PRAGMA synchronous = OFF"));  // what is measured is no disk
  const size_t last = std::strtoul(arguments[2].c_str(), nullptr, 10);
  for (size_t i = std::strtoul(arguments[1].c_str(), nullptr, 10); i < last; ++i) {
    const double now = systemClock().wallUnix();
    MUSTER_TRY(const bool isNew, store.add(runOf(i, base, now - 2.0 * kRunsPerNode * kDay), names, now));
    if (!isNew) return Error{ErrorCode::kInternal, "a run was known already", arguments[0]};
  }
  return {};
}

}  // namespace
}  // namespace muster::history

int main(int argc, char** argv) {
  const auto status = muster::history::run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.error().text());
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
// See run_mixture.h.
#include "reports/fleet/run_mixture.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster::fleet {
namespace {

constexpr double kLongPause = 24 * 3600;  ///< seconds; longer than nodes of one run wait for their turn
constexpr size_t kMostNames = 4;
constexpr const char* kAdvice =
    "no record names a fleet run, so what counts may be of several; give each run a folder of its own, or "
    "all "
    "its nodes one --fleet-id";

/// One node: when its last record began and ended, and whether it has earlier ones of the same stages.
struct LastRun {
  std::string node;
  double started = 0;
  double finished = 0;
};

bool sameStages(const NodeSummary& a, const NodeSummary& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    [](const StageSummary& x, const StageSummary& y) {
                      return x.name == y.name && (x.state == "elsewhere") == (y.state == "elsewhere");
                    });
}

std::string namesOf(const std::vector<LastRun>& runs) {
  std::vector<std::string> names;
  for (const LastRun& run : runs) {
    if (names.size() == kMostNames) {
      names.push_back(fmt::format("and {} more", runs.size() - kMostNames));
      break;
    }
    names.push_back(run.node);
  }
  return join(names, ", ");
}

/// Nodes that ran once, before any other node was run again. `again`: nodes that ran more than once.
std::string leftBehind(const std::vector<LastRun>& last, const std::vector<LastRun>& again) {
  if (again.empty()) return "";
  const LastRun& first = *std::min_element(
      again.begin(), again.end(), [](const LastRun& a, const LastRun& b) { return a.started < b.started; });
  std::vector<LastRun> behind;
  std::copy_if(last.begin(), last.end(), std::back_inserter(behind), [&](const LastRun& run) {
    return run.finished < first.started &&
           std::none_of(again.begin(), again.end(),
                        [&](const LastRun& other) { return other.node == run.node; });
  });
  if (behind.empty()) return "";
  return fmt::format("{} was run again on {}, but the last record of {} is older: {}", first.node,
                     formatUtc(first.started), behind.size() == 1 ? "one node" : "some nodes",
                     namesOf(behind));
}

/// The longest time in which no node ran, where it is longer than a run's nodes wait for each other.
std::string longPause(std::vector<LastRun> last) {
  std::sort(last.begin(), last.end(),
            [](const LastRun& a, const LastRun& b) { return a.started < b.started; });
  double busyUntil = last.empty() ? 0 : last.front().finished;
  std::string before = last.empty() ? "" : last.front().node, text;
  double longest = kLongPause;
  for (const LastRun& run : last) {
    if (run.started - busyUntil > longest) {
      longest = run.started - busyUntil;
      text = fmt::format("{} lie between the record of {} ({}) and that of {} ({})",
                         formatQuantity(longest, "s", 2), before, formatUtc(busyUntil), run.node,
                         formatUtc(run.started));
    }
    if (run.finished > busyUntil) before = run.node;
    busyUntil = std::max(busyUntil, run.finished);
  }
  return text;
}

}  // namespace

std::string mixtureNote(const FleetRecords& records, const std::vector<std::vector<size_t>>& candidates,
                        const Fleet& fleet) {
  std::vector<LastRun> last, again;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].empty()) continue;
    const auto newer = [&](size_t a, size_t b) {
      return records.nodes[a].started < records.nodes[b].started;
    };
    const size_t newest = *std::max_element(candidates[i].begin(), candidates[i].end(), newer);
    const NodeSummary& record = records.nodes[newest];
    if (!record.fleetId.empty()) return "";
    last.push_back({fleet.nodes[i].name, record.started, record.finished});
    if (std::any_of(candidates[i].begin(), candidates[i].end(), [&](size_t other) {
          return other != newest && sameStages(records.nodes[other], record);
        }))
      again.push_back(last.back());
  }
  std::string text = leftBehind(last, again);
  if (text.empty()) text = longPause(std::move(last));
  return text.empty() ? "" : text + "; " + kAdvice;
}

}  // namespace muster::fleet

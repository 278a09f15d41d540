// SPDX-License-Identifier: Apache-2.0
// Detects records of several runs by their times and by nodes run twice.
#include "reports/fleet/check/run_mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/fleet/read/runs.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster::fleet {
namespace {

constexpr double kLongPause = 24 * 3600;  ///< seconds; longer than nodes of one run wait for their turn
constexpr size_t kMostNames = 4;
constexpr const char* kAdvice =
    "no record has a fleet run ID, so records of several runs may be mixed; use one directory per run, or "
    "one --fleet-id for all nodes";

/// What is older than most records by more is of another run. Nodes of a run with an id may have waited for a
/// repair.
constexpr double kOutdated = 7 * 24 * 3600;
constexpr double kOutdatedInRun = 30 * 24 * 3600;

/// One node: when its last record began and ended, and whether it has earlier ones of the same stages.
struct LastRun {
  size_t index = 0;  ///< in the fleet
  std::string node;
  double started = 0;
  double finished = 0;
  std::string run{};  ///< in which it met others; empty: unknown
};

bool sameStages(const NodeSummary& a, const NodeSummary& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    [](const StageSummary& x, const StageSummary& y) {
                      return x.name == y.name &&
                             (x.state == StageState::kElsewhere) == (y.state == StageState::kElsewhere);
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

/// The one in the middle by its start, of two the later: no single record chooses it.
LastRun middleOf(std::vector<LastRun> runs) {
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const LastRun& a, const LastRun& b) { return a.started < b.started; });
  return *middle;
}

/// Nodes that ran once, before most others were run again. `again`: nodes that ran more than once.
std::vector<LastRun> nodesBehind(const std::vector<LastRun>& last, const std::vector<LastRun>& again) {
  std::vector<LastRun> behind;
  if (again.empty()) return behind;
  const LastRun first = middleOf(again);
  std::copy_if(last.begin(), last.end(), std::back_inserter(behind), [&](const LastRun& run) {
    return run.finished < first.started &&
           std::none_of(again.begin(), again.end(),
                        [&](const LastRun& other) { return other.node == run.node; });
  });
  return behind;
}

std::string leftBehind(const std::vector<LastRun>& last, const std::vector<LastRun>& again) {
  const std::vector<LastRun> behind = nodesBehind(last, again);
  if (behind.empty()) return "";
  const LastRun first = middleOf(again);
  return fmt::format("{} was run again on {}, but the newest record of {} is older: {}", first.node,
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

namespace {

struct Runs {
  std::vector<LastRun> last;   ///< of each node that has a record
  std::vector<LastRun> again;  ///< of those that have several of the same stages
};

Runs runsOf(const FleetRecords& records, const std::vector<std::vector<size_t>>& candidates,
            const FleetNodes& nodes) {
  Runs runs;
  std::set<std::string> expected;
  for (const FleetNode& node : nodes) expected.insert(node.name);
  const std::vector<std::string> ids = fleet::runsOf(records, expected);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].empty()) continue;
    const size_t newest = *std::max_element(
        candidates[i].begin(), candidates[i].end(),
        [&](size_t a, size_t b) { return records.nodes[a].started < records.nodes[b].started; });
    const NodeSummary& record = records.nodes[newest];
    runs.last.push_back({i, nodes[i].name, record.started, record.finished, ids[newest]});
    if (std::any_of(candidates[i].begin(), candidates[i].end(), [&](size_t other) {
          return other != newest && sameStages(records.nodes[other], record);
        }))
      runs.again.push_back(runs.last.back());
  }
  return runs;
}

void addOld(const std::vector<LastRun>& runs, double begin, std::map<size_t, std::string>& outdated) {
  for (const LastRun& run : runs)
    outdated.emplace(run.index,
                     fmt::format("of an earlier run: it ended on {}, but most nodes started after {}",
                                 formatUtc(run.finished), formatUtc(begin)));
}

}  // namespace

std::map<size_t, std::string> outdatedNodes(const FleetRecords& records,
                                            const std::vector<std::vector<size_t>>& candidates,
                                            const FleetNodes& nodes, const FleetRun& run) {
  std::map<size_t, std::string> outdated;
  Runs runs = runsOf(records, candidates, nodes);
  if (const std::vector<LastRun> behind = nodesBehind(runs.last, runs.again);
      runs.again.size() > behind.size())
    addOld(behind, middleOf(runs.again).started, outdated);
  std::sort(runs.last.begin(), runs.last.end(),
            [](const LastRun& a, const LastRun& b) { return a.started < b.started; });
  const double pause = run.fleetId.empty() ? kOutdated : kOutdatedInRun;
  std::vector<std::vector<LastRun>> parts;
  // Of the runs of a part the second-latest end counts: one record with forged times must not fill a pause.
  double latest = 0, second = 0;
  for (const LastRun& run : runs.last) {
    const double busyUntil = !parts.empty() && parts.back().size() == 1 ? latest : second;
    if (parts.empty() || run.started - busyUntil > pause) {
      parts.emplace_back();
      latest = second = 0;
    }
    parts.back().push_back(run);
    second = std::max(second, std::min(latest, run.finished));
    latest = std::max(latest, run.finished);
  }
  if (parts.size() < 2) return outdated;
  size_t most = 0;
  for (size_t k = 0; k < parts.size(); ++k)
    if (parts[k].size() >= parts[most].size()) most = k;
  // Those that met are of one run, whatever the clock of one of them says.
  std::set<std::string> newer;
  for (const LastRun& run : parts[most]) newer.insert(run.run);
  newer.erase("");
  for (size_t k = 0; k < most; ++k) {
    std::erase_if(parts[k], [&](const LastRun& run) { return newer.contains(run.run); });
    addOld(parts[k], parts[most].front().started, outdated);
  }
  return outdated;
}

std::string mixtureNote(const FleetRecords& records, const std::vector<std::vector<size_t>>& candidates,
                        const FleetNodes& nodes, const FleetRun& run) {
  if (!run.fleetId.empty()) return "";
  Runs runs = runsOf(records, candidates, nodes);
  std::string text = leftBehind(runs.last, runs.again);
  if (text.empty()) text = longPause(std::move(runs.last));
  return text.empty() ? "" : text + "; " + kAdvice;
}

}  // namespace muster::fleet

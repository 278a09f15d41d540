// SPDX-License-Identifier: Apache-2.0
// `muster compare`: two records or fleets beside each other, such as before and after a driver.
#include "runner/app/history/compare_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reports/fleet/read/record_stream.h"
#include "reports/history/fleet_shift.h"
#include "runner/app/history/comparison_view.h"
#include "runner/app/history/history_json.h"
#include "runner/app/input/measured_only.h"
#include "runner/app/input/record_input.h"
#include "runner/app/process/print_error.h"
#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

/// By node. A node has several where they measured different things, as jobs of different scope do.
using Runs = std::map<std::string, std::vector<history::Run>>;

/// The one of `runs` that measured the same as `run`, or a null pointer.
Result<history::Run*> findAlike(history::Store& store, std::vector<history::Run>& runs,
                                const history::Run& run) {
  const auto figuresOf = [&](const history::Run& one) -> Result<std::vector<int64_t>> {
    MUSTER_TRY(const int64_t layout, store.layoutOf(one));
    return store.figuresIn(layout);
  };
  MUSTER_TRY(const auto figures, figuresOf(run));
  for (history::Run& one : runs) {
    MUSTER_TRY(const auto others, figuresOf(one));
    if (history::measuredAlike(others, figures)) return &one;
  }
  return nullptr;
}

/// A run that measured nothing, as one that found no device, is like no other one: it counts only where the
/// node has no newer run.
Status dropOldEmpty(history::Store& store, std::vector<history::Run>& runs) {
  double newest = 0;
  for (const history::Run& run : runs) newest = std::max(newest, run.started);
  for (size_t i = runs.size(); i-- > 0;) {
    MUSTER_TRY(const auto points, store.pointsOf(runs[i]));
    if (points.empty() && runs[i].started < newest) runs.erase(runs.begin() + static_cast<ptrdiff_t>(i));
  }
  return {};
}

/// Reads all records at `path` into the store; of several of one node that measured the same the newest
/// counts.
Result<Runs> readInto(history::Store& store, const fs::path& path, PredicateTime& call, size_t& leftOut) {
  MUSTER_TRY(const auto files, recordFilesAt(path));
  Runs runs;
  for (const RecordFile& one : files) {
    const fs::path& file = one.path;
    fleet::FleetNames names;
    fleet::RecordReader reader(names);
    reader.keepSpreads();
    const auto read = [&]() -> Result<fleet::NodeSummary> {
      MUSTER_TRY(const Record record, soundRecordAt(one, call));
      return reader.read(file, one.directory).context(file.string());
    };
    auto node = read();
    if (!node.ok()) {
      if (!mayLeaveOut(one, files.size())) return node.error();
      printError(fmt::format("left out: {}", node.error().text()));
      ++leftOut;
      continue;
    }
    node->path = file.string();
    MUSTER_TRY(const bool added, store.add(*node, names, systemClock().wallUnix()));
    static_cast<void>(added);  // the same record may be on both sides
    MUSTER_TRY(history::Run run, store.find(node->sha256));
    std::vector<history::Run>& known = runs[node->node];
    MUSTER_TRY(history::Run * alike, findAlike(store, known, run));
    if (alike == nullptr)
      known.push_back(std::move(run));
    else if (alike->started < run.started)
      *alike = std::move(run);
  }
  if (runs.empty()) return noSoundRecord(files.size());
  for (auto& [node, all] : runs) MUSTER_CHECK_OK(dropOldEmpty(store, all));
  return runs;
}

/// Two runs of one node.
using Pair = std::pair<history::Run, history::Run>;

struct Sides {
  Runs before, after;
  std::vector<Pair> pairs;  ///< of the nodes on both sides; of two single records those, whatever their nodes
  std::vector<history::Run> onlyBefore, onlyAfter;
  bool newlyFailed = false;  ///< an accepted node has a run in `onlyAfter` that is not accepted
};

bool isAccepted(const history::Run& run) {
  return run.acceptance == Acceptance::kAccepted;
}

/// The runs of one node, or of two where each side has one.
Status pairRuns(history::Store& store, const std::vector<history::Run>& before,
                std::vector<history::Run> after, Sides& sides) {
  if (before.size() == 1 && after.size() == 1) {
    sides.pairs.emplace_back(before.front(), after.front());
    return {};
  }
  for (const history::Run& run : before) {
    MUSTER_TRY(history::Run * alike, findAlike(store, after, run));
    if (alike == nullptr) {
      sides.onlyBefore.push_back(run);
      continue;
    }
    sides.pairs.emplace_back(run, *alike);
    after.erase(after.begin() + (alike - after.data()));
  }
  sides.onlyAfter.insert(sides.onlyAfter.end(), after.begin(), after.end());
  if (std::any_of(before.begin(), before.end(), isAccepted) &&
      !std::all_of(after.begin(), after.end(), isAccepted))
    sides.newlyFailed = true;
  return {};
}

Status pairUp(history::Store& store, Sides& sides) {
  if (sides.before.size() == 1 && sides.after.size() == 1)
    return pairRuns(store, sides.before.begin()->second, sides.after.begin()->second, sides);
  std::set<std::string> nodes;
  for (const auto* side : {&sides.before, &sides.after})
    for (const auto& [node, runs] : *side) nodes.insert(node);
  for (const std::string& node : nodes)
    MUSTER_CHECK_OK(pairRuns(store, sides.before[node], sides.after[node], sides));
  for (auto* side : {&sides.before, &sides.after})
    std::erase_if(*side, [](const auto& entry) { return entry.second.empty(); });
  return {};
}

/// Which runs have no partner: by their nodes, and of a node that is on both sides by plan and verdict, too.
std::vector<std::string> namesOf(const std::vector<history::Run>& runs, const Sides& sides) {
  std::set<std::string> names;
  for (const history::Run& run : runs)
    names.insert(sides.before.contains(run.node) && sides.after.contains(run.node)
                     ? fmt::format("a run of {} (plan {}, {})", run.node, printable(run.plan, 80),
                                   nameOf(run.acceptance))
                     : run.node);
  return {names.begin(), names.end()};
}

Status checkAlike(const Sides& sides) {
  for (const auto& [before, after] : sides.pairs)
    if (before.simulated != after.simulated)
      return requireMeasured(true, "be compared with a measured run",
                             before.simulated ? before.path : after.path);
  if (!sides.pairs.empty()) return {};
  return Error{ErrorCode::kUsage, "no node has a record on both sides", ""};
}

/// A fact that changed, and on which nodes.
struct CommonFact {
  size_t devices = 0;
  std::set<std::string> nodes;
};
using CommonFacts = std::map<std::tuple<std::string, std::string, std::string>, CommonFact>;

/// A figure of two runs of a node that too few nodes have to know how a fleet moved.
struct LoneChange {
  std::string node;
  history::FigureChange change;
};

struct Compared {
  std::vector<history::Comparison> pairs;
  CommonFacts facts;
  std::set<std::string> otherStages;  ///< of any pair
  history::FleetShifts shifts;
  std::vector<LoneChange> lone;  ///< of a fleet; worsened first
};

/// Of fewer nodes each pair of runs is compared by itself.
bool isFleet(const Sides& sides) {
  std::set<std::string> nodes;
  for (const auto& [before, after] : sides.pairs) nodes.insert(after.node);
  return nodes.size() >= history::kLeastShiftNodes;
}

std::vector<LoneChange> loneChanges(const Compared& compared) {
  std::vector<LoneChange> lone;
  for (const history::Comparison& pair : compared.pairs)
    for (const history::FigureChange& figure : pair.figures)
      if (compared.shifts.few.contains(figure.after.figure.number)) lone.push_back({pair.after.node, figure});
  std::stable_partition(lone.begin(), lone.end(), [](const LoneChange& one) { return one.change.worse; });
  return lone;
}

Result<Compared> compareAll(history::Store& store, const Sides& sides) {
  Compared out;
  history::ShiftFinder finder;
  for (const auto& [before, after] : sides.pairs) {
    MUSTER_TRY(history::Comparison comparison, history::compareRuns(store, before, after));
    for (const history::FactChange& fact : comparison.facts) {
      CommonFact& common = out.facts[{fact.name, fact.before, fact.after}];
      ++common.devices;
      common.nodes.insert(after.node);
    }
    MUSTER_TRY(auto old, store.pointsOf(before));
    MUSTER_TRY(auto now, store.pointsOf(after));
    for (auto* points : {&old, &now})
      std::erase_if(*points, [&](const history::Point& point) {
        return comparison.otherStages.contains(point.figure.stage);
      });
    finder.add(after.node, old, now);
    out.otherStages.insert(comparison.otherStages.begin(), comparison.otherStages.end());
    out.pairs.push_back(std::move(comparison));
  }
  out.shifts = finder.finish();
  if (isFleet(sides)) out.lone = loneChanges(out);
  return out;
}

bool isLost(const Pair& pair) {
  return isAccepted(pair.first) && !isAccepted(pair.second);
}

std::string nodesText(const std::set<std::string>& nodes) {
  return nodes.size() == 1 ? *nodes.begin() : fmt::format("{} nodes", nodes.size());
}

void printFacts(const CommonFacts& facts) {
  if (!facts.empty()) printText("\nConfiguration\n");
  size_t shown = 0;
  for (const auto& [fact, common] : facts) {
    if (++shown > kMostShown) break;
    const auto& [name, before, after] = fact;
    printText("  {}: {} -> {} ({})\n", name, before.empty() ? "(none)" : printable(before, 100),
              after.empty() ? "(none)" : printable(after, 100), nodesText(common.nodes));
  }
  if (facts.size() > kMostShown)
    printText("  and {} more; --json lists them all\n", facts.size() - kMostShown);
}

void printResults(const Sides& sides) {
  bool any = false;
  for (const auto& [before, after] : sides.pairs) {
    if (before.acceptance == after.acceptance) continue;
    if (!any) printText("\nVerdicts\n");
    printText("  {}: {} -> {}\n", after.node, nameOf(before.acceptance), nameOf(after.acceptance));
    any = true;
  }
  for (const auto* list : {&sides.onlyBefore, &sides.onlyAfter})
    if (!list->empty())
      printText("\nOnly {}: {}\n", list == &sides.onlyBefore ? "before" : "after",
                join(namesOf(*list, sides), ", "));
}

std::string amountText(const history::FigureName& figure, double change) {
  return history::onIntervalScale(figure) ? fmt::format("{:+.1f} degrees", change)
                                          : fmt::format("{:+.1f}%", change * 100);
}

/// Metrics that no node has on the other side, by their stages.
void printOneSided(const char* side, const std::vector<history::FigureName>& figures) {
  std::map<std::string, std::set<std::string>> metrics;
  for (const history::FigureName& figure : figures)
    metrics[figure.stage].insert(figure.metric + (figure.labels.empty() ? "" : " {" + figure.labels + "}"));
  if (!metrics.empty()) printText("\nMetrics only {}\n", side);
  size_t shown = 0;
  for (const auto& [stage, names] : metrics)
    if (++shown <= kMostShown)
      printText("  {}: {}\n", printable(stage), printable(join({names.begin(), names.end()}, ", "), 400));
  if (shown > kMostShown) printText("  and {} more stages; --json lists them all\n", shown - kMostShown);
}

void printLone(const std::vector<LoneChange>& lone) {
  if (!lone.empty()) printText("\nMetrics of fewer than {} nodes, run by run\n", history::kLeastShiftNodes);
  for (size_t i = 0; i < std::min(lone.size(), kMostShown); ++i) {
    const history::FigureChange& change = lone[i].change;
    const std::string& device = change.after.device.name;
    printText("  {} {}{}{} {}: {}\n", change.worse ? "WORSE  " : "changed", lone[i].node,
              device.empty() ? "" : " ", printable(device), figureText(change.after.figure),
              movedText(change.after.figure, change.before.median, change.after.median));
  }
  if (lone.size() > kMostShown) printText("  and {} more; --json lists them all\n", lone.size() - kMostShown);
}

void printShifts(const history::FleetShifts& found) {
  if (!found.shifts.empty()) printText("\nMetrics of the whole fleet beyond the noise\n");
  for (size_t i = 0; i < std::min(found.shifts.size(), kMostShown); ++i) {
    const history::Shift& shift = found.shifts[i];
    printText("  {} {}: {}, noise {}, {} nodes\n", shift.worse ? "WORSE  " : "changed",
              figureText(shift.figure), movedText(shift.figure, shift.before, shift.after),
              amountText(shift.figure, shift.noise), shift.nodes);
  }
  if (!found.odd.empty())
    printText("\nNodes that changed otherwise than the fleet, and devices otherwise than their nodes\n");
  for (size_t i = 0; i < std::min(found.odd.size(), kMostShown); ++i) {
    const history::OddNode& odd = found.odd[i];
    printText("  {} {}{}{} {}: {}, {} {}\n", odd.worse ? "WORSE  " : "changed", odd.node,
              odd.device.empty() ? "" : " ", printable(odd.device), figureText(odd.figure),
              movedText(odd.figure, odd.before, odd.after), odd.device.empty() ? "fleet" : "node",
              amountText(odd.figure, odd.usual));
  }
  const size_t left = found.shifts.size() + found.odd.size() - std::min(found.shifts.size(), kMostShown) -
                      std::min(found.odd.size(), kMostShown);
  if (left > 0) printText("  and {} more; --json lists them all\n", left);
  printOneSided("before", found.onlyBefore);
  printOneSided("after", found.onlyAfter);
  printText(
      "\n{} metrics of the fleet changed, {} unchanged, {} not compared over the fleet (zero, or on fewer "
      "than "
      "{} nodes), {} on one side only\n",
      found.shifts.size(), found.alike, found.tooFew, history::kLeastShiftNodes,
      found.onlyBefore.size() + found.onlyAfter.size());
}

void print(const Sides& sides, const Compared& result) {
  const bool simulated = sides.pairs.front().first.simulated;
  if (!isFleet(sides)) {
    for (const history::Comparison& comparison : result.pairs) printComparison(comparison);
    printResults(sides);
    printOneSided("before", result.shifts.onlyBefore);
    printOneSided("after", result.shifts.onlyAfter);
    return;
  }
  std::set<std::string> both;
  for (const auto& [before, after] : sides.pairs) both.insert(after.node);
  printText("{}{} nodes before, {} after, {} on both sides\n", simulated ? "SIMULATED " : "",
            sides.before.size(), sides.after.size(), both.size());
  printFacts(result.facts);
  printResults(sides);
  printOtherStages(result.otherStages);
  printLone(result.lone);
  printShifts(result.shifts);
}

Json figureJson(const history::FigureName& figure) {
  return {{"stage", figure.stage},
          {"case", figure.caseId},
          {"metric", figure.metric},
          {"labels", figure.labels},
          {"unit", figure.unit}};
}

Json json(const Sides& sides, const Compared& result) {
  Json pairs = Json::array(), shifts = Json::array(), odd = Json::array();
  const auto figures = [](const std::vector<history::FigureName>& names) {
    Json all = Json::array();
    for (const history::FigureName& name : names) all.push_back(figureJson(name));
    return all;
  };
  for (const history::Comparison& comparison : result.pairs) pairs.push_back(toJson(comparison));
  for (const history::Shift& shift : result.shifts.shifts)
    shifts.push_back({{"figure", figureJson(shift.figure)},
                      {"nodes", shift.nodes},
                      {"before", shift.before},
                      {"after", shift.after},
                      {"change", shift.change},
                      {"noise", shift.noise},
                      {"worse", shift.worse}});
  for (const history::OddNode& one : result.shifts.odd)
    odd.push_back({{"node", one.node},
                   {"device", one.device},
                   {"figure", figureJson(one.figure)},
                   {"before", one.before},
                   {"after", one.after},
                   {"change", one.change},
                   {"usual", one.usual},
                   {"worse", one.worse}});
  return {{"simulated", sides.pairs.front().first.simulated},
          {"pairs", pairs},
          {"shifts", shifts},
          {"odd_nodes", odd},
          {"figures_only_before", figures(result.shifts.onlyBefore)},
          {"figures_only_after", figures(result.shifts.onlyAfter)},
          {"only_before", namesOf(sides.onlyBefore, sides)},
          {"only_after", namesOf(sides.onlyAfter, sides)}};
}

/// Of a fleet its shifts and the nodes beside them decide, and what few nodes have; of few nodes each pair.
bool isWorse(const Sides& sides, const Compared& result) {
  const auto worse = [](const auto& one) { return one.worse; };
  if (sides.newlyFailed || std::any_of(sides.pairs.begin(), sides.pairs.end(), isLost) ||
      std::any_of(sides.onlyBefore.begin(), sides.onlyBefore.end(), isAccepted))
    return true;
  if (isFleet(sides))
    return std::any_of(result.shifts.shifts.begin(), result.shifts.shifts.end(), worse) ||
           std::any_of(result.shifts.odd.begin(), result.shifts.odd.end(), worse) ||
           std::any_of(result.lone.begin(), result.lone.end(),
                       [](const LoneChange& one) { return one.change.worse; });
  return std::any_of(result.pairs.begin(), result.pairs.end(), [&](const history::Comparison& c) {
    return std::any_of(c.figures.begin(), c.figures.end(), worse);
  });
}

}  // namespace

Result<int> compareCommand(const CompareOptions& options) {
  MUSTER_TRY(history::Store store, history::Store::open(":memory:", history::Access::kWrite));
  Sides sides;
  PredicateTime call{PredicateTime::kOfCall};
  size_t leftOut = 0;
  MUSTER_TRY(sides.before, readInto(store, options.before, call, leftOut));
  MUSTER_TRY(sides.after, readInto(store, options.after, call, leftOut));
  MUSTER_CHECK_OK(pairUp(store, sides));
  MUSTER_CHECK_OK(checkAlike(sides));
  MUSTER_TRY(const Compared result, compareAll(store, sides));
  if (options.json)
    printJson(json(sides, result));
  else
    print(sides, result);
  return isWorse(sides, result) ? kExitRejected : leftOut > 0 ? kExitIncomplete : kExitAccepted;
}

}  // namespace muster

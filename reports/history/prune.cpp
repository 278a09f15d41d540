// SPDX-License-Identifier: Apache-2.0
// Selects the runs that a history keeps.
#include "reports/history/prune.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace muster::history {
namespace {

constexpr double kSecondsOfDay = 86400;
using NodeRuns = std::vector<const RunSummary*>;  ///< from the newest to the oldest
using Reasons = std::vector<std::optional<KeptFor>>;

/// Spans begin at fixed times, so that each prune finds the same ones.
void keepSpans(const NodeRuns& runs, const PruneRule& rule, Reasons& reasons) {
  std::set<std::pair<double, Acceptance>> seen;
  for (size_t i = 0; i < runs.size(); ++i) {
    const double span = std::floor(runs[i]->started / (rule.every * kSecondsOfDay));
    if (seen.emplace(span, runs[i]->acceptance).second && !reasons[i]) reasons[i] = KeptFor::kSpan;
  }
}

/// The node's last acceptance, which `compare` sets later runs beside.
void keepAcceptance(const NodeRuns& runs, Reasons& reasons) {
  const auto accepted = std::find_if(runs.begin(), runs.end(), [](const RunSummary* run) {
    return run->acceptance == Acceptance::kAccepted;
  });
  if (accepted == runs.end()) return;
  auto& reason = reasons[static_cast<size_t>(accepted - runs.begin())];
  if (!reason) reason = KeptFor::kAcceptance;
}

Reasons reasonsFor(const NodeRuns& runs, const PruneRule& rule, double now, int64_t last) {
  Reasons reasons(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i]->started > now - rule.days * kSecondsOfDay)
      reasons[i] = KeptFor::kYoung;
    else if (i < rule.newest || runs[i]->number == last)
      reasons[i] = KeptFor::kNewest;
  }
  keepAcceptance(runs, reasons);
  keepSpans(runs, rule, reasons);
  return reasons;
}

}  // namespace

PrunePlan planPrune(const std::vector<RunSummary>& runs, const PruneRule& rule, double now) {
  PrunePlan plan;
  plan.runs = runs.size();
  int64_t last = 0;
  std::set<std::string> nodes;
  std::map<std::pair<std::string, bool>, NodeRuns> byNode;
  for (const RunSummary& run : runs) {
    last = std::max(last, run.number);
    nodes.insert(run.node);
    byNode[{run.node, run.simulated}].push_back(&run);
  }
  plan.nodes = nodes.size();
  for (auto& [node, own] : byNode) {
    std::stable_sort(own.begin(), own.end(), [](const RunSummary* a, const RunSummary* b) {
      return a->started != b->started ? a->started > b->started : a->number > b->number;
    });
    const Reasons reasons = reasonsFor(own, rule, now, last);
    for (size_t i = 0; i < own.size(); ++i) {
      if (reasons[i])
        ++plan.kept[static_cast<size_t>(*reasons[i])];
      else
        plan.remove.push_back(own[i]->number);
    }
  }
  std::sort(plan.remove.begin(), plan.remove.end());
  return plan;
}

}  // namespace muster::history

// SPDX-License-Identifier: Apache-2.0
// See later_meetings.h.
#include "reports/fleet/blame/later_meetings.h"

#include <algorithm>
#include <cmath>

#include "reports/fleet/blame/run_table.h"

namespace muster::fleet {

LaterMeetings::LaterMeetings(const RunTable& runs, const Roster& roster, const FleetNames& names)
    : runs_(runs), roster_(roster), names_(names) {
  for (const RunTable::Entry& entry : runs.entries()) {
    const NodeSummary& record = *entry.record;
    const std::string run = runs.runOf(record);
    Span& span = ends_[run].try_emplace(record.node, record.finished, record.finished).first->second;
    span.first = std::min(span.first, record.finished);
    span.last = std::max(span.last, record.finished);
    runsOfNodes_[record.node].insert(run);
    if (!entry.repeated && record.acceptance == Acceptance::kAccepted)
      accepted_[record.node].push_back(&record);
  }
}

LaterMeetings::Span LaterMeetings::endOf(const std::string& run, const std::string& node) const {
  std::vector<double> firsts, lasts;
  if (const auto at = ends_.find(run); at != ends_.end())
    for (const auto& [who, span] : at->second) {
      if (who == node) continue;
      firsts.push_back(span.first);
      lasts.push_back(span.last);
    }
  if (firsts.empty()) return {std::nan(""), std::nan("")};
  std::sort(firsts.begin(), firsts.end());
  std::sort(lasts.begin(), lasts.end());
  return {firsts[(firsts.size() - 1) / 2], lasts[lasts.size() / 2]};
}

bool LaterMeetings::wasMetAfter(const std::string& node, double time, const std::string& before) const {
  const auto runs = runsOfNodes_.find(node);
  return runs != runsOfNodes_.end() &&
         std::any_of(runs->second.begin(), runs->second.end(), [&](const std::string& run) {
           return run != before && runs_.hasMet(run, node) && roster_.knows(run, node) &&
                  endOf(run, node).last > time;
         });
}

bool LaterMeetings::hasOne(const std::string& node, const StageOfRun& before,
                           const Roster::Meeting& meeting) const {
  const double time = endOf(before.first, node).first;
  if (wasMetAfter(node, time, before.first)) return true;
  const std::vector<const NodeSummary*>& records = accepted_.at(node);
  return std::any_of(records.begin(), records.end(), [&](const NodeSummary* record) {
    std::set<std::string> others;
    for (const StageSummary& stage : record->stages)
      for (const NodeAround& around : stage.around) others.insert(names_.texts[around.node]);
    others.erase(node);
    return record->finished > time && !others.empty() &&
           std::all_of(others.begin(), others.end(), [&](const std::string& other) {
             const auto runs = runsOfNodes_.find(other);
             return meeting.named.contains(other) && runs != runsOfNodes_.end() &&
                    !runs->second.contains(before.first) &&
                    wasMetAfter(other, record->finished, before.first);
           });
  });
}

}  // namespace muster::fleet

// SPDX-License-Identifier: Apache-2.0
// Groups deviations by their causes.
#include "runner/record/findings/incidents.h"

#include <algorithm>
#include <map>

#include "runner/core/text.h"

namespace muster {
namespace {

/// Whether only ranks speak that were given up for another rank's sake.
bool isAftermath(const Deviation& deviation) {
  return deviation.first().metric.empty() &&
         std::all_of(deviation.items.begin(), deviation.items.end(), [](const DeviationItem& item) {
           return item.rank != nullptr && (item.rank->state == RankOutcome::kAbandoned ||
                                           item.rank->state == RankOutcome::kCancelled);
         });
}

/// Whether a rank ended in this stage in a way that makes others wait for it.
bool isRankFault(const Deviation& deviation, const StageRecord* stage) {
  return std::any_of(deviation.items.begin(), deviation.items.end(), [&](const DeviationItem& item) {
    return item.stage == stage && item.rank != nullptr &&
           (item.rank->state == RankOutcome::kTimeout || item.rank->state == RankOutcome::kError);
  });
}

/// Whether both are faults of the memory of one device.
bool isSameMemoryFault(const Deviation& a, const Deviation& b) {
  return tellsMemoryFault(a.first().metric) && tellsMemoryFault(b.first().metric) && a.blocks == b.blocks &&
         a.devices() == b.devices();
}

/// The incident to which `deviation` belongs, if there is one.
Incident* causeOf(const Deviation& deviation, std::vector<Incident>& incidents) {
  const bool aftermath = isAftermath(deviation);
  const auto found = std::find_if(incidents.begin(), incidents.end(), [&](const Incident& incident) {
    return isSameMemoryFault(incident.main(), deviation) ||
           (aftermath && isRankFault(incident.main(), deviation.items.front().stage));
  });
  return found == incidents.end() ? nullptr : &*found;
}

bool concerns(const Incident& incident, const std::string& stage) {
  return std::any_of(incident.findings.begin(), incident.findings.end(), [&](const Deviation& deviation) {
    return deviation.blocks && contains(deviation.stages(), stage);
  });
}

/// Lists each skipped stage under the incident that stopped the first of its prerequisites.
void addNotRun(const Record& record, std::vector<Incident>& incidents) {
  std::map<std::string, Incident*> stoppedBy;
  const auto stopped = stagesStoppedByFailure(record);
  for (const StageRecord& stage : record.stages) {
    if (incidents.empty() || stopped.count(&stage) == 0) continue;
    Incident* cause = nullptr;
    for (const std::string& need : stage.needs) {
      if (cause == nullptr && stoppedBy.count(need) > 0) cause = stoppedBy[need];
      for (Incident& incident : incidents)
        if (cause == nullptr && concerns(incident, need)) cause = &incident;
    }
    if (cause == nullptr) cause = &incidents.front();  // it must not be lost
    cause->notRun.push_back(stage.name);
    stoppedBy[stage.name] = cause;
  }
}

}  // namespace

std::string Incident::action() const {
  const auto remedies = main().remedies();
  return remedies.empty() ? "" : remedies.front().substr(0, remedies.front().find("; "));
}

std::string Incident::notRunText() const {
  return notRun.empty() ? "" : "Not run because of it: " + join(notRun, ", ");
}

std::vector<Incident> incidents(const Record& record) {
  std::vector<Incident> found;
  std::vector<Deviation> later;  // those given up may come before the rank that hung
  for (Deviation& deviation : deviations(record)) {
    if (isAftermath(deviation))
      later.push_back(std::move(deviation));
    else if (Incident* cause = causeOf(deviation, found))
      cause->findings.push_back(std::move(deviation));
    else
      found.push_back({{std::move(deviation)}, {}});
  }
  for (Deviation& deviation : later) {
    if (Incident* cause = causeOf(deviation, found))
      cause->findings.push_back(std::move(deviation));
    else
      found.push_back({{std::move(deviation)}, {}});
  }
  addNotRun(record, found);
  return found;
}

}  // namespace muster

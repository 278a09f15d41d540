// SPDX-License-Identifier: Apache-2.0
// Groups deviations by their causes.
#include "runner/record/findings/incidents.h"

#include <algorithm>
#include <map>
#include <type_traits>

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

/// Whether the rank ended in a way that makes others wait for it.
bool isRankFault(const DeviationItem& item) {
  return item.rank != nullptr &&
         (item.rank->state == RankOutcome::kTimeout || item.rank->state == RankOutcome::kError);
}

/// Incidents, indexed by what further deviations are told by.
class IncidentList {
 public:
  /// Adds `deviation` to the first incident that has its cause, or as an incident of its own.
  void add(Deviation deviation) {
    if (Incident* cause = causeOf(deviation)) return cause->findings.push_back(std::move(deviation));
    if (tellsMemoryFault(deviation.first().metric))
      memoryFaults_.emplace(std::pair{deviation.blocks, deviation.devices()}, all_.size());
    for (const DeviationItem& item : deviation.items)
      if (isRankFault(item)) rankFaults_.emplace(item.stage, all_.size());
    all_.push_back({{std::move(deviation)}, {}});
  }
  std::vector<Incident> take() { return std::move(all_); }

 private:
  Incident* causeOf(const Deviation& deviation) {
    if (tellsMemoryFault(deviation.first().metric))
      return find(memoryFaults_, {deviation.blocks, deviation.devices()});
    return isAftermath(deviation) ? find(rankFaults_, deviation.items.front().stage) : nullptr;
  }
  template <typename Key>
  Incident* find(const std::map<Key, size_t>& places, const std::type_identity_t<Key>& key) {
    const auto found = places.find(key);
    return found == places.end() ? nullptr : &all_[found->second];
  }
  std::vector<Incident> all_;
  std::map<std::pair<bool, std::vector<std::string>>, size_t> memoryFaults_;  ///< by the devices
  std::map<const StageRecord*, size_t> rankFaults_;
};

/// The first incident that blocks each stage, by its name.
std::map<std::string, Incident*> stoppedStages(std::vector<Incident>& incidents) {
  std::map<std::string, Incident*> stopped;
  for (Incident& incident : incidents)
    for (const Deviation& deviation : incident.findings)
      if (deviation.blocks)
        for (const std::string& stage : deviation.stages()) stopped.emplace(stage, &incident);
  return stopped;
}

/// Lists each skipped stage under the incident that stopped the first of its prerequisites.
void addNotRun(const Record& record, std::vector<Incident>& incidents) {
  std::map<std::string, Incident*> stoppedBy = stoppedStages(incidents);
  const auto stopped = stagesStoppedByFailure(record);
  for (const StageRecord& stage : record.stages) {
    if (incidents.empty() || stopped.count(&stage) == 0) continue;
    Incident* cause = nullptr;
    for (const std::string& need : stage.needs)
      if (cause == nullptr && stoppedBy.count(need) > 0) cause = stoppedBy[need];
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
  IncidentList list;
  std::vector<Deviation> later;  // those given up may come before the rank that hung
  for (Deviation& deviation : deviations(record)) {
    if (isAftermath(deviation))
      later.push_back(std::move(deviation));
    else
      list.add(std::move(deviation));
  }
  for (Deviation& deviation : later) list.add(std::move(deviation));
  std::vector<Incident> found = list.take();
  addNotRun(record, found);
  return found;
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Lists the slots of a stage.
#include "runner/judge/slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "runner/core/text.h"
#include "runner/judge/check.h"
#include "runner/judge/series.h"
#include "runner/metrics/verdict.h"

namespace muster {
namespace {

/// What the verdicts of a stage may take in memory: those of eight GPUs take a megabyte. Every expectation
/// gives one on every measurement that it matches, so a small file can ask for all memory.
constexpr size_t kMostVerdictBytes = size_t{512} << 20;

/// About what the verdict of a slot takes at most: the texts of its expectation stand in limit, detail and
/// remedy too.
size_t verdictBytes(const Slot& slot) {
  size_t bytes = sizeof(Slot) + sizeof(Verdict) + 2 * slot.detail.size() + slot.remedy.size();
  if (slot.expectation != nullptr) {
    const Expectation& e = *slot.expectation;
    size_t texts = e.metric.size() + e.source.size() + e.remedy.size() + e.origin.size() + e.at.size();
    for (const auto& [label, value] : e.where) texts += label.size() + value.size();
    for (const std::string& text : e.allowed) texts += text.size() + sizeof text;
    bytes += 3 * texts + e.predicate.size();
  }
  if (slot.group != nullptr) {
    for (const auto& [label, value] : slot.group->labels) bytes += 2 * (label.size() + value.size());
    for (const auto& [attempt, merged] : slot.group->attempts)
      if (!merged.texts.empty()) bytes += 2 * merged.texts.front().size();
  }
  return bytes;
}

bool isPlans(const Expectation& e) {
  return e.origin != "standing" && e.origin != "condition" && !e.origin.starts_with("profile");
}

class Lister {
 public:
  explicit Lister(const EvidenceIndex& index) : index_(index), evidence_(index.evidence()) {
    for (const auto& group : index.groups()) byMetric_[group->metric].push_back(group.get());
  }

  std::vector<Slot> list() {
    listCases();
    for (const auto& expectation : evidence_.expectations) listExpectation(expectation);
    listUnjudged();
    listEmptyCases();
    listStrays();
    if (slots_.empty() && evidence_.ends.empty())
      add({.fixed = Outcome::kError, .detail = "the stage ran no case at all"});
    listFaulty();
    if (bytes_ <= kMostVerdictBytes) return std::move(slots_);
    return {{.fixed = Outcome::kError,
             .detail = fmt::format(
                 "{} expectations on {} measurements: their verdicts take more than {} MiB; "
                 "divide the stage",
                 evidence_.expectations.size(), evidence_.measurements.size(), kMostVerdictBytes >> 20),
             .anonymous = true}};
  }

 private:
  void add(Slot slot) {
    if (slot.caseRank != nullptr) spoken_.insert(slot.caseRank);
    bytes_ += verdictBytes(slot);
    if (bytes_ <= kMostVerdictBytes) slots_.push_back(std::move(slot));
  }

  /// Errors and skips of whole cases, and cases that should have run and of which nothing is known.
  void listCases() {
    std::set<std::string> ran;
    for (const auto& caseRank : index_.caseRanks()) {
      ran.insert(caseRank->caseId);
      listCase(*caseRank);
    }
    listFollowers();
    for (const auto& [caseId, metrics] : evidence_.caseMetrics)
      if (ran.count(caseId) == 0)
        add({.fixed = Outcome::kError,
             .detail = fmt::format("case {} has no result", printable(caseId)),
             .caseId = caseId});
  }

  void listCase(const CaseRank& caseRank) {
    const CaseEnd& last = caseRank.lastEnd();
    if (last.state == CaseEnd::State::kError) return addEnd(caseRank, last, Outcome::kError, last.message);
    if (last.state == CaseEnd::State::kUnsupported) return listUnsupported(caseRank);
    if (const CaseEnd* earlier = earlierError(caseRank))
      addEnd(caseRank, *earlier, Outcome::kFlaky,
             fmt::format("failed in attempt {} ({}) and passed in attempt {}", earlier->attempt,
                         printable(earlier->message), caseRank.lastAttempt()));
  }

  /// Of an attempt before the last one; the first that the rank caused itself, else the first; or nullptr.
  static const CaseEnd* earlierError(const CaseRank& caseRank) {
    const CaseEnd* found = nullptr;
    for (const auto& [attempt, end] : caseRank.ends) {
      if (attempt == caseRank.lastAttempt() || end.state != CaseEnd::State::kError) continue;
      if (end.cause == CaseEnd::Cause::kOwn) return &end;
      if (found == nullptr) found = &end;
    }
    return found;
  }

  /// The slot of an error, now or in an earlier attempt; one that comes from elsewhere waits for its like.
  void addEnd(const CaseRank& caseRank, const CaseEnd& end, Outcome outcome, const std::string& detail) {
    if (end.cause == CaseEnd::Cause::kOwn)
      return add({.caseRank = &caseRank, .fixed = outcome, .detail = detail, .remedy = end.remedy});
    spoken_.insert(&caseRank);
    followers_.try_emplace({end.caseId, outcome}, Follower{end, detail});
  }

  /// Errors that come from elsewhere: one for each case, about none of the devices that report them. A case
  /// that a rank of this node failed by itself has its error already.
  void listFollowers() {
    std::set<std::pair<std::string, Outcome>> own;
    for (const Slot& slot : slots_)
      if (slot.caseRank != nullptr && slot.fixed) own.emplace(slot.caseRank->caseId, *slot.fixed);
    for (const auto& [key, follower] : followers_) {
      const auto& [caseId, outcome] = key;
      if (own.count(key) == 0 || follower.end.cause == CaseEnd::Cause::kCancelled)
        slots_.push_back({.fixed = outcome,
                          .detail = follower.detail,
                          .remedy = follower.end.remedy,
                          .caseId = caseId,
                          .anonymous = true});
    }
  }

  void listUnsupported(const CaseRank& caseRank) {
    const CaseEnd& last = caseRank.lastEnd();
    const bool always = std::all_of(caseRank.ends.begin(), caseRank.ends.end(), [](const auto& end) {
      return end.second.state == CaseEnd::State::kUnsupported;
    });
    if (always)
      return add(
          {.caseRank = &caseRank, .fixed = Outcome::kSkipped, .detail = last.message, .remedy = last.remedy});
    add({.caseRank = &caseRank,
         .fixed = Outcome::kError,
         .detail = fmt::format("ran in an earlier attempt, then was reported as unsupported: {}",
                               printable(last.message)),
         .remedy = last.remedy});
  }

  void listExpectation(const Expectation& e) {
    const bool declared = std::any_of(evidence_.caseMetrics.begin(), evidence_.caseMetrics.end(),
                                      [&](const auto& entry) { return entry.second.count(e.metric) > 0; });
    const auto measured = byMetric_.find(e.metric);
    if (!declared && measured == byMetric_.end()) {
      if (isPlans(e))
        add({.expectation = &e,
             .fixed = Outcome::kError,
             .detail = fmt::format("no case of this stage reports {}", printable(e.metric))});
      return;
    }
    if (const std::string fault = expectationFault(e); !fault.empty()) {
      cover(e);
      return add({.expectation = &e,
                  .fixed = Outcome::kError,
                  .detail = fmt::format("the expectation \"{}\" cannot be judged: {}", e.text(), fault)});
    }
    const size_t before = slots_.size();
    bool wanted = false;
    occurred_.clear();
    if (measured != byMetric_.end())
      for (const Group* group : measured->second)
        if (labelsMatch(group->labels, e.where)) occurred_.insert(group->caseId);
    for (const auto& caseRank : index_.caseRanks()) {
      if (bytes_ > kMostVerdictBytes) return;  // nothing of this is kept
      wanted |= listOnCase(e, *caseRank);
    }
    if (slots_.size() > before || wanted) return;
    if (isOfOtherGroup(e, evidence_))
      ofOtherGroups_.insert(e.metric);
    else if (isPlans(e))
      add({.expectation = &e,
           .fixed = Outcome::kError,
           .detail = fmt::format("no measurement for {}: no case of this stage can carry these labels",
                                 printable(e.metric))});
  }

  /// Whatever the cases say: a stage in which a component was found faulty does not pass.
  void listFaulty() {
    const bool failed = std::any_of(slots_.begin(), slots_.end(),
                                    [](const Slot& slot) { return slot.fixed == Outcome::kError; });
    if (!evidence_.faulty.empty() && !failed)
      add({.fixed = Outcome::kError, .detail = evidence_.faulty, .anonymous = true});
  }

  void cover(const Expectation& e) {
    for (const Group* group : byMetric_[e.metric])
      if (labelsMatch(group->labels, e.where)) covered_.insert(group);
  }

  /// Lists what `e` asks of one case on one rank. True when it asks anything.
  bool listOnCase(const Expectation& e, const CaseRank& caseRank) {
    if (e.kind == CheckKind::kDropMax) return listDrops(e, caseRank);
    bool found = false;
    std::set<std::string> devices;
    for (const Group* group : caseRank.groups) {
      if (group->metric != e.metric || !labelsMatch(group->labels, e.where)) continue;
      found = true;
      devices.insert(group->device);
      covered_.insert(group);
      add({.caseRank = &caseRank, .group = group, .expectation = &e});
    }
    if (found) {
      if (caseRank.device.empty()) listMissingDevices(e, caseRank, devices);
      return true;
    }
    const auto metrics = evidence_.caseMetrics.find(caseRank.caseId);
    const bool declares = metrics != evidence_.caseMetrics.end() && metrics->second.count(e.metric) > 0;
    if (!declares || !canCarryOnRank(caseRank, e.where)) return false;
    if (!isPlans(e) && measuredOtherwise(e, caseRank)) return false;
    if (caseRank.rank != 0 && evidence_.leaderMetrics.count(e.metric) > 0) return true;
    // A case that ended in error or was skipped has its own verdict; its missing measurements get none.
    if (caseRank.endedWell()) addMissing(e, caseRank, "");
    return true;
  }

  /// A drop is judged where there are samples enough to see one; the plan's own expectation must find some.
  bool listDrops(const Expectation& e, const CaseRank& caseRank) {
    bool found = false;
    for (const Group* group : caseRank.groups) {
      // Whoever declared the limit declared the series too.
      if (group->metric == e.metric && group->series == Series::kNone && e.origin == "standing") {
        add({.caseRank = &caseRank,
             .group = group,
             .expectation = &e,
             .fixed = Outcome::kError,
             .detail = "the record no longer holds the time order of its samples"});
        found = true;
        continue;
      }
      if (!group->dropsLimitedBy(e)) continue;
      const bool enough = enoughForDrop(group->last().samples.size(), group->series);
      if (!isPlans(e) && (!enough || !group->last().problem.empty())) continue;
      found = true;
      add({.caseRank = &caseRank, .group = group, .expectation = &e});
    }
    if (found || !isPlans(e)) return true;
    const auto metrics = evidence_.caseMetrics.find(caseRank.caseId);
    const bool declares = metrics != evidence_.caseMetrics.end() && metrics->second.count(e.metric) > 0;
    if (!declares || !canCarryOnRank(caseRank, e.where)) return false;
    if (caseRank.rank != 0 && evidence_.leaderMetrics.count(e.metric) > 0) return true;
    if (caseRank.endedWell()) addMissing(e, caseRank, "");
    return true;
  }

  /// Whether `caseRank` measured the metric of `e` with all labels that `e` names, and other values of those
  /// that only the case itself decides: what `e` is about did not occur. If it occurred on another rank of
  /// the case, it is missing here.
  bool measuredOtherwise(const Expectation& e, const CaseRank& caseRank) const {
    if (occurred_.count(caseRank.caseId) > 0) return false;
    const Labels& known = labelsOf(caseRank);
    return std::any_of(caseRank.groups.begin(), caseRank.groups.end(), [&](const Group* group) {
      if (group->metric != e.metric) return false;
      return std::all_of(e.where.begin(), e.where.end(), [&](const auto& label) {
        const auto own = group->labels.find(label.first);
        return own != group->labels.end() && (own->second == label.second || !determined(known, label.first));
      });
    });
  }

  /// Whether the parameters of a case, or its rank, fix the values of a label.
  static bool determined(const Labels& known, const std::string& label) {
    return label == "device" || known.count(label) > 0 || known.count(label + "s") > 0;
  }

  void addMissing(const Expectation& e, const CaseRank& caseRank, const std::string& device) {
    add({.caseRank = &caseRank,
         .expectation = &e,
         .fixed = Outcome::kError,
         .detail = "no measurement for " + printable(e.metric),
         .device = device});
  }

  /// A rank that looks at the whole node and reports some of the stage's devices must report them all.
  void listMissingDevices(const Expectation& e, const CaseRank& caseRank,
                          const std::set<std::string>& reported) {
    const auto& devices = index_.devices();
    const bool perDevice = std::any_of(reported.begin(), reported.end(),
                                       [&](const std::string& device) { return devices.count(device) > 0; });
    if (!perDevice || !caseRank.endedWell()) return;
    const auto wanted = e.where.find("device");
    if (wanted != e.where.end() && (devices.count(wanted->second) == 0 || reported.count(wanted->second) > 0))
      return;
    if (wanted != e.where.end()) return addMissing(e, caseRank, wanted->second);
    for (const auto& device : devices) {
      if (bytes_ > kMostVerdictBytes) return;
      if (reported.count(device) == 0) addMissing(e, caseRank, device);
    }
  }

  /// Not copied: there is one for each expectation and rank.
  [[nodiscard]] const Labels& labelsOf(const CaseRank& caseRank) const {
    static const Labels none;
    const auto known = evidence_.caseLabels.find(caseRank.caseId);
    return known == evidence_.caseLabels.end() ? none : known->second;
  }

  [[nodiscard]] bool canCarryOnRank(const CaseRank& caseRank, Labels where) const {
    const auto device = where.find("device");
    if (caseRank.device.empty() || device == where.end()) return canCarry(labelsOf(caseRank), where);
    if (device->second != caseRank.device) return false;
    where.erase(device);
    return canCarry(labelsOf(caseRank), where);
  }

  void listUnjudged() {
    for (const auto& group : index_.groups()) {
      const CaseRank* caseRank = index_.caseRank(group->caseId, group->rank);
      if (covered_.count(group.get()) > 0 || caseRank == nullptr) continue;
      const std::string& problem = group->last().problem;
      if (!problem.empty())
        add({.caseRank = caseRank,
             .group = group.get(),
             .fixed = Outcome::kError,
             .detail = "no valid measurement: " + problem});
      else if (!group->informational || ofOtherGroups_.count(group->metric) > 0)
        add({.caseRank = caseRank, .group = group.get(), .fixed = Outcome::kUnjudged, .detail = ""});
    }
  }

  /// A case that ended well and left nothing at all has measured nothing: that is no success.
  void listEmptyCases() {
    for (const auto& caseRank : index_.caseRanks())
      if (caseRank->groups.empty() && spoken_.count(caseRank.get()) == 0)
        add({.caseRank = caseRank.get(), .fixed = Outcome::kError, .detail = "passed without a measurement"});
  }

  void listStrays() {
    std::set<std::pair<std::string, int>> seen;
    for (const Group* group : index_.strays())
      if (seen.insert({group->caseId, group->rank}).second)
        add({.group = group,
             .fixed = Outcome::kError,
             .detail = "it was measured in a case or rank that is not part of the stage"});
  }

  const EvidenceIndex& index_;
  const StageEvidence& evidence_;
  std::map<std::string, std::vector<const Group*>> byMetric_;
  std::set<std::string_view> occurred_;  ///< cases that measured, on any rank, what the expectation is about
  std::vector<Slot> slots_;
  size_t bytes_ = 0;  ///< of the verdicts
  struct Follower {
    CaseEnd end;
    std::string detail;
  };
  std::map<std::pair<std::string, Outcome>, Follower> followers_;  ///< by case
  std::set<const CaseRank*> spoken_;
  std::set<const Group*> covered_;
  std::set<std::string> ofOtherGroups_;  ///< metrics with an expectation that isOfOtherGroup()
};

}  // namespace

bool canCarry(const Labels& known, const Labels& where) {
  return std::all_of(where.begin(), where.end(), [&](const auto& wanted) {
    auto own = known.find(wanted.first);
    if (own == known.end()) own = known.find(wanted.first + "s");
    if (own == known.end() || own->second == wanted.second) return true;
    const auto items = split(own->second, ',');
    return std::find(items.begin(), items.end(), wanted.second) != items.end();
  });
}

std::vector<Slot> listSlots(const EvidenceIndex& index) {
  return Lister(index).list();
}

bool isOfOtherGroup(const Expectation& e, const StageEvidence& evidence) {
  if (!evidence.sweep) return false;
  // Each case of the stage has the same; what is sampled beside it has none.
  const auto differs = [&](const char* label) {
    const auto wanted = e.where.find(label);
    if (wanted == e.where.end()) return false;
    return std::any_of(evidence.caseLabels.begin(), evidence.caseLabels.end(), [&](const auto& labels) {
      const auto own = labels.second.find(label);
      return own != labels.second.end() && own->second != wanted->second;
    });
  };
  if (differs("nodes")) return true;
  if (!differs("ranks")) return false;
  const int ranks = std::atoi(e.where.at("ranks").c_str());
  const auto& known = evidence.groupRanks;
  return known.empty() || ranks > *known.rbegin() || known.count(ranks) > 0;
}

}  // namespace muster

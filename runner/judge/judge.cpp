// SPDX-License-Identifier: Apache-2.0
// Judging one stage: every slot becomes one verdict. See judge.h; how a node stands is decided in decide.cpp.
#include "runner/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/judge/check.h"
#include "runner/judge/external_load.h"
#include "runner/judge/peers.h"
#include "runner/judge/slots.h"

namespace muster {
namespace {

Verdict emptyVerdict(const StageEvidence& evidence, Outcome outcome) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.stage = evidence.stage;
  verdict.required = evidence.required;
  verdict.observed = verdict.limit = verdict.margin = kNaN;
  return verdict;
}

/// The one verdict of a stage that did not run here.
StageJudgement judgeNotRun(const StageEvidence& evidence) {
  const bool skipped = evidence.state == StageState::kSkipped || evidence.state == StageState::kIdle;
  const Outcome outcome = skipped                                    ? Outcome::kSkipped
                          : evidence.state == StageState::kElsewhere ? Outcome::kElsewhere
                                                                     : Outcome::kError;
  StageJudgement judgement;
  judgement.accounting.expected = 1;
  Verdict verdict = emptyVerdict(evidence, outcome);
  verdict.detail = evidence.reason.empty() ? "no reason was given" : evidence.reason;
  judgement.accounting.add(verdict);
  judgement.verdicts.push_back(std::move(verdict));
  return judgement;
}

class StageJudge {
 public:
  StageJudge(const EvidenceIndex& index, const JudgeContext& context)
      : index_(index), context_(context), peers_(index) {
    for (const ExternalLoad& load : index.evidence().externalLoad)
      loads_.emplace(std::pair(load.caseId, load.attempt), &load);
    for (const auto& caseRank : index.caseRanks())
      for (const Group* group : caseRank->groups)
        if (const auto subject = subjectOf(*caseRank, *group)) {
          int& last = looked_[*subject];
          last = std::max(last, group->attempts.rbegin()->first);
        }
  }

  Verdict judge(const Slot& slot) {
    Verdict verdict = describe(slot);
    if (slot.fixed) {
      verdict.outcome = *slot.fixed;
      const std::string detail = fixedDetail(slot, verdict);
      const std::string subject = slot.anonymous ? "" : subjectText(verdict);
      verdict.detail = detail.starts_with(subject) ? detail : subject + detail;
      return verdict;
    }
    judgeAttempts(slot, verdict);
    return verdict;
  }

 private:
  /// Everything of a verdict but its outcome and figures.
  Verdict describe(const Slot& slot) const {
    Verdict verdict = emptyVerdict(index_.evidence(), Outcome::kError);
    verdict.caseId = slot.caseId;
    if (slot.caseRank != nullptr) {
      verdict.caseId = slot.caseRank->caseId;
      verdict.rank = slot.caseRank->rank;
      verdict.device = slot.caseRank->device;
    }
    if (slot.group != nullptr) {
      verdict.caseId = slot.group->caseId;
      verdict.rank = slot.group->rank;
      if (!slot.group->device.empty()) verdict.device = slot.group->device;
      verdict.metric = slot.group->metric;
      verdict.labels = slot.group->labels;
    }
    if (!slot.device.empty()) verdict.device = slot.device;
    if (slot.expectation != nullptr) {
      verdict.metric = slot.expectation->metric;
      verdict.expectation = *slot.expectation;
      verdict.remedy = slot.expectation->remedy;
      if (slot.group == nullptr) verdict.labels = slot.expectation->where;
    }
    if (!slot.remedy.empty()) verdict.remedy = slot.remedy;
    return verdict;
  }

  static std::string fixedDetail(const Slot& slot, Verdict& verdict) {
    if (slot.group != nullptr && *slot.fixed == Outcome::kUnjudged) {
      const Merged& merged = slot.group->last();
      verdict.observed = merged.summary.median;
      verdict.observedText = slot.group->isText() ? printable(merged.texts.front())
                                                  : formatQuantity(verdict.observed, slot.group->unit);
      return verdict.observedText + "; no limit";
    }
    return slot.detail.empty() ? "no reason was given" : slot.detail;
  }

  /// Whether it is a figure of all ranks of a group: one of them reports it for all.
  [[nodiscard]] bool isOfGroup(const Group& group) const {
    const StageEvidence& evidence = index_.evidence();
    const auto labels = evidence.caseLabels.find(group.caseId);
    if (evidence.leaderMetrics.count(group.metric) == 0 || labels == evidence.caseLabels.end()) return false;
    const auto ranks = labels->second.find("ranks");
    return ranks != labels->second.end() && ranks->second != "1";
  }

  /// A miss that external load explains says nothing about the device: it could not be measured.
  void excuse(const Slot& slot, int attempt, CheckResult& result, Verdict& verdict) const {
    verdict.remedy = slot.expectation->remedy;
    if (result.outcome != Outcome::kFail) return;
    const auto load = loads_.find({slot.group->caseId, attempt});
    if (load == loads_.end()) return;
    const std::string why =
        explainedByLoad(*slot.expectation, *slot.group, result, *load->second, isOfGroup(*slot.group));
    if (why.empty()) return;
    result.outcome = Outcome::kError;
    result.unrelated = true;
    result.detail += "; not measurable: " + why;
    verdict.remedy = "Stop other work on this node, then run again";
  }

  static CheckResult notJudgeable(const Expectation& e) {
    const std::string detail =
        fmt::format("not judged: required {}, and this partial run left out other devices", e.text());
    return {Outcome::kSkipped, kNaN, "", kNaN, "", kNaN, detail};
  }

  CheckResult checkAttempt(const Slot& slot, int attempt, const Merged& merged, Verdict& verdict) {
    const Expectation& e = *slot.expectation;
    const bool relative = e.kind == CheckKind::kWithin;
    if (relative && index_.evidence().peersMissing) return notJudgeable(e);
    CheckResult result =
        check(e, *slot.group, merged, context_, relative ? peers_.of(e, *slot.group) : Peers{});
    excuse(slot, attempt, result, verdict);
    const bool ofFleet = relative && e.peers == PeerGroup::kFleet && context_.peersAreDeferred;
    if (!ofFleet || !merged.problem.empty() || slot.group->isText()) return result;
    result.outcome = Outcome::kDeferred;
    result.observed = comparedStatistic(e, *slot.group, merged);
    const double worst = worstLevel(e, *slot.group, merged);
    const bool drops = std::isfinite(worst) && slot.group->dropLimit->severity == Severity::kFail;
    if (drops) result.observed = worst;
    result.observedText = formatQuantity(result.observed, slot.group->unit);
    result.limit = result.margin = kNaN;
    result.limitText = e.text();
    result.detail = fmt::format("{}; required {}, pending fleet evaluation", result.observedText, e.text());
    return result;
  }

  /// The last attempt counts. One that ended well and no longer measured this has no measurement.
  void judgeAttempts(const Slot& slot, Verdict& verdict) {
    CheckResult last;
    const AttemptOutcome* failed = nullptr;  // the first that says something about the machine
    verdict.attempts.reserve(slot.group->attempts.size() + 1);
    for (const auto& [attempt, merged] : slot.group->attempts) {
      last = checkAttempt(slot, attempt, merged, verdict);
      verdict.attempts.push_back({attempt, last.outcome, last.observed});
      if (failed == nullptr && isBad(last.outcome) && !last.unrelated) failed = &verdict.attempts.back();
    }
    const int lastAttempt = slot.caseRank->lastAttempt();
    const bool missing = verdict.attempts.back().attempt < lastAttempt;
    if (missing && slot.caseRank->endedWell() && lookedAgain(slot)) {
      if (isBad(last.outcome)) {
        const std::string detail = fmt::format("{}; not found in attempt {}", last.detail, lastAttempt);
        // A condition that names a part of the machine may be the beginning of a fault: it stays open.
        const bool open = slot.group->labels.contains("culprit") && !index_.evidence().allowFlaky;
        const Outcome unrelated = open ? Outcome::kError : Outcome::kWarn;
        last = {last.unrelated ? unrelated : Outcome::kPass, kNaN, "", kNaN, "", kNaN, detail};
        verdict.attempts.push_back({lastAttempt, last.outcome, kNaN});
      }
    } else if (missing && slot.caseRank->endedWell()) {
      const std::string detail = fmt::format("no measurement in attempt {}", lastAttempt);
      last = {Outcome::kError, kNaN, "", kNaN, "", kNaN, detail};
      verdict.attempts.push_back({lastAttempt, Outcome::kError, kNaN});
    } else if (missing && last.outcome == Outcome::kFail && wasBeingRetried(*slot.caseRank)) {
      last.outcome = Outcome::kError;
      last.detail += fmt::format("; the run was interrupted in attempt {}", lastAttempt);
    }
    fill(verdict, last);
    if (failed != nullptr && (verdict.outcome == Outcome::kPass || verdict.outcome == Outcome::kWarn)) {
      verdict.outcome = Outcome::kFlaky;
      verdict.detail +=
          fmt::format("; attempt {} had ended in {}", failed->attempt, outcomeName(failed->outcome));
    }
    if (verdict.attempts.size() == 1 && verdict.attempts.front().outcome == verdict.outcome)
      verdict.attempts.clear();
  }

  static bool isBad(Outcome outcome) { return outcome == Outcome::kFail || outcome == Outcome::kError; }

  /// Whether the whole run ended while what had failed was tried again, by a plan that allows such a failure.
  [[nodiscard]] bool wasBeingRetried(const CaseRank& caseRank) const {
    return index_.evidence().allowFlaky && caseRank.rank >= 0 &&
           caseRank.lastEnd().cause == CaseEnd::Cause::kCancelled;
  }

  /// What was measured, and on what, but for the labels that say what was found.
  using Subject = std::tuple<const CaseRank*, std::string, std::string, Labels>;

  /// Nothing where the metric has no such labels.
  [[nodiscard]] std::optional<Subject> subjectOf(const CaseRank& caseRank, const Group& group) const {
    const auto found = index_.evidence().findingLabels.find(group.metric);
    if (found == index_.evidence().findingLabels.end()) return std::nullopt;
    Labels labels = group.labels;
    for (const std::string& label : found->second) labels.erase(label);
    return Subject{&caseRank, group.metric, group.device, std::move(labels)};
  }

  /// Whether the last attempt reports on what the measurement is about, whatever it found.
  [[nodiscard]] bool lookedAgain(const Slot& slot) const {
    const auto subject = subjectOf(*slot.caseRank, *slot.group);
    const auto last = subject ? looked_.find(*subject) : looked_.end();
    return last != looked_.end() && last->second >= slot.caseRank->lastAttempt();
  }

  static void fill(Verdict& verdict, const CheckResult& result) {
    verdict.outcome = result.outcome;
    verdict.observed = result.observed;
    verdict.observedText = result.observedText;
    verdict.limit = result.limit;
    verdict.limitText = result.limitText;
    verdict.margin = result.margin;
    verdict.detail = subjectText(verdict) + result.detail;
    // Nothing to compare with on a machine of one device: that is no lack that anybody could mend.
    if (result.outcome == Outcome::kSkipped) verdict.required = false;
  }

  const EvidenceIndex& index_;
  const JudgeContext& context_;
  PeerTable peers_;
  std::map<std::pair<std::string, int>, const ExternalLoad*> loads_;  ///< by case and attempt
  std::map<Subject, int> looked_;                                     ///< the last attempt that reports on it
};

}  // namespace

StageJudgement judgeStage(const StageEvidence& evidence, const JudgeContext& context) {
  if (evidence.state != StageState::kRan) return judgeNotRun(evidence);
  const EvidenceIndex index(evidence);
  const std::vector<Slot> slots = listSlots(index);
  StageJudge judge(index, context);
  StageJudgement judgement;
  judgement.accounting.expected = slots.size();
  for (const Slot& slot : slots) {
    judgement.verdicts.push_back(judge.judge(slot));
    judgement.accounting.add(judgement.verdicts.back());
  }
  return judgement;
}

}  // namespace muster

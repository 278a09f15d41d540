// SPDX-License-Identifier: Apache-2.0
// Groups verdicts into deviations and formats their texts.
#include "runner/record/findings/deviations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "runner/core/statistics.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/record_check.h"

namespace muster {

namespace {

/// The ranks of a stage by their numbers and devices; the last attempt counts.
class RankIndex {
 public:
  explicit RankIndex(const StageRecord& stage) {
    for (const RankRecord& rank : stage.ranks) {
      add(byNumber_[rank.rank], rank);
      add(byDevice_[rank.device], rank);
    }
  }
  /// The rank a verdict speaks of: by its number, else by its device.
  [[nodiscard]] const RankRecord* of(const Verdict& verdict) const {
    if (verdict.rank >= 0) return find(byNumber_, verdict.rank);
    return verdict.device.empty() ? nullptr : find(byDevice_, verdict.device);
  }

 private:
  static void add(const RankRecord*& last, const RankRecord& rank) {
    if (last == nullptr || rank.attempt >= last->attempt) last = &rank;
  }
  template <typename Ranks, typename Key>
  static const RankRecord* find(const Ranks& ranks, const Key& key) {
    const auto found = ranks.find(key);
    return found == ranks.end() ? nullptr : found->second;
  }
  std::map<int, const RankRecord*> byNumber_;
  std::map<std::string, const RankRecord*> byDevice_;
};

/// Texts without repeats, in the order in which they came.
class DistinctTexts {
 public:
  void add(const std::string& text) {
    if (seen_.insert(text).second) inOrder_.push_back(text);
  }
  std::vector<std::string> take() { return std::move(inOrder_); }

 private:
  std::set<std::string> seen_;
  std::vector<std::string> inOrder_;
};

/// What verdicts of one deviation have in common. Without a metric the text says what happened, and where.
std::string deviationKey(const StageRecord& stage, const Verdict& verdict, bool blocks) {
  const std::string kind = fmt::format("{}{}", outcomeName(verdict.outcome), blocks ? " blocks" : "");
  if (verdict.metric.empty())
    return join({kind, stage.name, verdict.stage, verdict.device, verdict.detail}, "\n");
  // A device that throttles or loses memory does so in every stage from then on: that is one finding.
  const std::string origin = verdict.expectation ? verdict.expectation->origin : "";
  if (tellsMemoryFault(verdict.metric)) return join({kind, verdict.metric, verdict.device}, "\n");
  if (origin == "standing" || origin == "condition") return join({kind, "standing", verdict.metric}, "\n");
  return join({kind, stage.name, verdict.stage, verdict.metric}, "\n");
}

/// `flakyAllowed`: allowsFlaky() of its stage.
bool blocksAcceptance(const Record& record, bool flakyAllowed, const Verdict& verdict) {
  switch (verdict.outcome) {
    case Outcome::kFail:
    case Outcome::kError:
      return true;
    case Outcome::kFlaky:
      return !flakyAllowed;
    case Outcome::kSkipped:
      return verdict.required;
    case Outcome::kUnjudged:
      return record.strict;
    default:
      return false;
  }
}

void sortWorstFirst(std::vector<Deviation>& groups) {
  std::stable_sort(groups.begin(), groups.end(), [](const Deviation& a, const Deviation& b) {
    if (a.blocks != b.blocks) return a.blocks;
    return a.outcome < b.outcome;
  });
}

/// Groups the verdicts that `wanted` picks, by the order of the outcomes and then of the stages.
std::vector<Deviation> group(const Record& record, const std::function<bool(const Verdict&, bool)>& wanted) {
  std::vector<Deviation> groups;
  std::map<std::string, size_t> known;
  const auto stopped = stagesStoppedByFailure(record);
  for (const auto& stage : record.stages) {
    if (stopped.count(&stage) > 0) continue;
    const RankIndex ranks(stage);
    const bool flakyAllowed = allowsFlaky(stage);
    for (const auto& verdict : stage.verdicts) {
      const bool blocks = blocksAcceptance(record, flakyAllowed, verdict);
      if (!wanted(verdict, blocks)) continue;
      const auto [at, isNew] = known.try_emplace(deviationKey(stage, verdict, blocks), groups.size());
      if (isNew) groups.push_back({verdict.outcome, blocks, {}});
      groups[at->second].items.push_back({&verdict, &stage, ranks.of(verdict)});
    }
  }
  sortWorstFirst(groups);
  return groups;
}

/// An unknown SKU that nobody allowed blocks acceptance without a verdict of its own.
bool lacksSku(const Record& record) {
  if (!record.profile.name.empty() || record.allowUnknownSku || record.stages.empty()) return false;
  return record.acceptance == Acceptance::kIncomplete || record.acceptance == Acceptance::kRejected;
}

Deviation unknownSku(const Record& record) {
  auto verdict = std::make_shared<Verdict>();
  verdict->stage = verdict->caseId = record.stages.front().name;
  verdict->margin = kNaN;
  const std::string note = skuNote(record);
  verdict->detail = "unknown SKU, so no limits apply" + (note.empty() ? "" : ": " + note);
  verdict->remedy =
      "Add a profile of this model (plans/skus, muster baseline learn), or set allow_unknown_sku = true";
  return {Outcome::kError, true, {{verdict.get(), &record.stages.front(), nullptr}}, verdict};
}

}  // namespace

std::vector<std::string> Deviation::devices() const {
  DistinctTexts names;
  for (const auto& item : items)
    if (!item.verdict->device.empty()) names.add(item.verdict->device);
  return names.take();
}

namespace {

/// What `text` says of every item, if it says the same.
std::string common(const Deviation& deviation, const std::function<std::string(const Verdict&)>& text) {
  std::string first = text(deviation.first());
  for (const auto& item : deviation.items)
    if (text(*item.verdict) != first) return "";
  return first;
}

}  // namespace

const DeviationItem& Deviation::worst() const {
  const DeviationItem* found = &items.front();
  for (const auto& item : items)
    if (std::isfinite(item.verdict->margin) &&
        (!std::isfinite(found->verdict->margin) || item.verdict->margin < found->verdict->margin))
      found = &item;
  return *found;
}

std::string Deviation::who() const {
  DistinctTexts culprits;
  for (const auto& item : items) {
    const auto found = item.verdict->labels.find("culprit");
    if (found == item.verdict->labels.end()) return devicesText(devices());
    culprits.add(found->second);
  }
  return devicesText(culprits.take());
}

namespace {

/// Whether `fact` is what a test says of the wrong results that `metric` counts: "gemm_first_fault" belongs
/// to "gemm_wrong_elements" and "gemm_repeat_mismatches".
bool tellsFirstFault(const Measurement& fact, const std::string& metric) {
  const std::string_view ending = "_first_fault";
  if (fact.text.empty() || !fact.metric.ends_with(ending)) return false;
  return metric.starts_with(std::string_view(fact.metric).substr(0, fact.metric.size() - ending.size() + 1));
}

}  // namespace

std::string Deviation::firstFault() const {
  std::map<std::tuple<const StageRecord*, std::string_view, std::string_view>, const std::string*> facts;
  const StageRecord* indexed = nullptr;  // items come in the order of the stages
  for (const auto& item : items) {
    if (item.stage != indexed)
      for (const auto& m : item.stage->measurements)
        if (tellsFirstFault(m, first().metric)) facts.try_emplace({item.stage, m.caseId, m.device}, &m.text);
    indexed = item.stage;
    if (!item.verdict->expectation || item.verdict->expectation->unit != "count") continue;
    const auto found = facts.find({item.stage, item.verdict->caseId, item.verdict->device});
    if (found != facts.end()) return *found->second;
  }
  return "";
}

std::vector<std::string> Deviation::stages() const {
  DistinctTexts names;
  for (const auto& item : items) names.add(item.stage->name);
  return names.take();
}

std::string Deviation::commonCase() const {
  return common(*this, caseText);
}
std::string Deviation::commonWanted() const {
  return common(*this, wantedText);
}
bool holdsText(std::string_view text, std::string_view part) {
  return part.empty() || memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

std::string Deviation::commonDetail() const {
  return common(*this, [](const Verdict& verdict) {
    const bool repeats = !verdict.observedText.empty() && !verdict.limitText.empty() &&
                         holdsText(verdict.detail, verdict.observedText) &&
                         holdsText(verdict.detail, verdict.limitText);
    return repeats ? "" : verdict.detail;
  });
}

std::vector<const Expectation*> Deviation::origins() const {
  std::vector<const Expectation*> found;
  std::set<std::string> sources;
  for (const auto& item : items) {
    if (!item.verdict->expectation || item.verdict->expectation->source.empty()) continue;
    const Expectation* wanted = &*item.verdict->expectation;
    if (sources.insert(wanted->source).second) found.push_back(wanted);
  }
  return found;
}

std::vector<std::string> Deviation::remedies() const {
  DistinctTexts found;
  for (const auto& item : items) {
    const Verdict& verdict = *item.verdict;
    std::string remedy = verdict.remedy;
    if (remedy.empty() && verdict.expectation) remedy = verdict.expectation->remedy;
    const auto culprit = verdict.labels.find("kind");
    if (culprit != verdict.labels.end()) remedy = remedyFor(remedy, culprit->second);
    if (!remedy.empty()) found.add(remedy);
  }
  return found.take();
}

std::vector<std::string> Deviation::reruns() const {
  DistinctTexts found;
  const std::string told = commonDetail().substr(0, kMostTold);
  for (const auto& item : items)
    if (item.rank != nullptr && !item.rank->rerun.empty() && !holdsText(told, item.rank->rerun))
      found.add(item.rank->rerun);
  return found.take();
}

std::vector<Deviation> deviations(const Record& record) {
  auto found = group(record, [](const Verdict& verdict, bool blocks) {
    return blocks || verdict.outcome == Outcome::kWarn || verdict.outcome == Outcome::kFlaky;
  });
  if (!lacksSku(record)) return found;
  found.insert(found.begin(), unknownSku(record));
  sortWorstFirst(found);
  return found;
}

/// A reason names the prerequisite after at most so many bytes: each that failed is looked for there alone.
static constexpr size_t kMostBefore = 1'000;

std::set<const StageRecord*> stagesStoppedByFailure(const Record& record) {
  std::set<const StageRecord*> stopped;
  std::set<std::string> failed;  // names of stages that did not pass, or were stopped
  for (const StageRecord& stage : record.stages) {
    const std::set<std::string> needs(stage.needs.begin(), stage.needs.end());
    const std::string_view reason = stage.reason;
    const bool isStopped = stage.state == StageState::kSkipped &&
                           std::any_of(needs.begin(), needs.end(), [&](const std::string& need) {
                             return failed.count(need) > 0 &&
                                    reason.substr(0, kMostBefore + need.size()).find(need) != reason.npos;
                           });
    const bool flakyAllowed = allowsFlaky(stage);
    if (isStopped) stopped.insert(&stage);
    if (isStopped || std::any_of(stage.verdicts.begin(), stage.verdicts.end(),
                                 [&](const auto& v) { return blocksAcceptance(record, flakyAllowed, v); }))
      failed.insert(stage.name);
  }
  return stopped;
}

bool tellsMemoryFault(const std::string& metric) {
  return metric.starts_with("env.ecc_") || metric.starts_with("env.row_remap_") || metric == "env.xid_fatal";
}

std::vector<Deviation> notJudged(const Record& record) {
  return group(record, [](const Verdict& verdict, bool blocks) {
    const Outcome outcome = verdict.outcome;
    return !blocks && (outcome == Outcome::kUnjudged || outcome == Outcome::kSkipped ||
                       outcome == Outcome::kDeferred || outcome == Outcome::kElsewhere);
  });
}

std::vector<Deviation> waived(const Record& record) {
  return group(record, [](const Verdict& verdict, bool) { return verdict.outcome == Outcome::kWaived; });
}

std::string devicesText(const std::vector<std::string>& devices) {
  constexpr size_t kListed = 8;
  if (devices.size() <= kListed) return join(devices, ", ");
  const std::vector<std::string> head(devices.begin(), devices.begin() + kListed);
  return fmt::format("{} and {} more", join(head, ", "), devices.size() - kListed);
}

std::string caseText(const Verdict& verdict) {
  Labels labels = verdict.labels;
  labels.erase("device");
  const auto bytes = labels.find("bytes");
  if (bytes != labels.end()) {
    const auto size = parseAs(bytes->second, "B");
    if (size.ok()) bytes->second = formatQuantity(*size, "B", 6);
  }
  if (!labels.empty()) return labelsText(labels);
  return verdict.caseId == verdict.stage ? "" : verdict.caseId;
}

std::string shareText(double value, double peers, const std::string& unit) {
  std::string measured = formatQuantity(value, unit, 3);
  const std::string typical = formatQuantity(peers, unit, 3);
  const size_t a = measured.find(' '), b = typical.find(' ');
  if (a != std::string::npos && b != std::string::npos && measured.substr(a) == typical.substr(b))
    measured.resize(a);
  return fmt::format("{} of {}, {:.0f}%", measured, typical, 100 * value / peers);
}

std::string MeasuredTexts::of(const StageRecord& stage, const Verdict& verdict) {
  const auto culprit = verdict.labels.find("culprit");
  if (culprit == verdict.labels.end()) return verdict.observedText;
  const auto [values, isNew] = stages_.try_emplace(&stage);
  if (isNew)
    for (const Measurement& m : stage.measurements)
      if (const auto named = m.labels.find("culprit"); named != m.labels.end() && !m.samples.empty())
        values->second.emplace(std::tuple{m.metric, m.caseId, named->second}, m.samples.front());
  const std::string stem = verdict.metric.substr(0, verdict.metric.find('.') + 1) + "culprit_";
  const auto valueOf = [&](const std::string& name) {
    const auto found = values->second.find({stem + name, verdict.caseId, culprit->second});
    return found == values->second.end() ? kNaN : found->second;
  };
  for (const auto& [name, unit] : {std::pair{"bandwidth", "B/s"}, {"latency", "s"}}) {
    const double value = valueOf(name);
    const double peers = valueOf(std::string("peer_") + name);
    if (value > 0 && peers > 0) return shareText(value, peers, unit);
  }
  const double loss = valueOf("loss");
  return std::isfinite(loss) ? fmt::format("{:.0f}% of its peers", 100 * (1 - loss)) : verdict.observedText;
}

std::string measuredText(const StageRecord& stage, const Verdict& verdict) {
  return MeasuredTexts().of(stage, verdict);
}

std::string wantedText(const Verdict& verdict) {
  if (verdict.labels.count("culprit") > 0 && verdict.limitText == "at most 0") return "no faulty component";
  if (!verdict.limitText.empty()) return verdict.limitText;
  return verdict.expectation ? verdict.expectation->text() : "";
}

std::string remedyFor(const std::string& remedy, const std::string& kind) {
  const std::string text = "; " + remedy;
  const size_t begin = text.find("; " + kind + ": ");
  if (kind.empty() || begin == std::string::npos) return remedy;
  const size_t end = text.find("; ", begin + 2);
  return text.substr(begin + 2, end == std::string::npos ? end : end - begin - 2);
}

std::string skuNote(const Record& record) {
  const std::string repeated = "unknown: ";
  const bool repeats = record.profile.name.empty() && record.skuHow.starts_with(repeated);
  return repeats ? record.skuHow.substr(repeated.size()) : record.skuHow;
}

std::string plural(size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string marginText(const Verdict& verdict) {
  if (!std::isfinite(verdict.margin)) return "";
  const double percent = std::fabs(verdict.margin) * 100;
  if (percent < 0.05) return "at the limit";
  const std::string text = fmt::format("{:.{}f}%", percent, percent < 10 ? 1 : 0);
  if (verdict.margin >= 0) return text + " to spare";
  return text + (verdict.observed < verdict.limit ? " below limit" : " above limit");
}

}  // namespace muster

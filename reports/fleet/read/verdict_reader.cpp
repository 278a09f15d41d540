// SPDX-License-Identifier: Apache-2.0
// See stage_reader.h: the verdicts of a stage, counted; those that a reader must see or that are deferred,
// kept.
#include <algorithm>

#include "reports/fleet/read/cause.h"
#include "reports/fleet/read/label_list.h"
#include "reports/fleet/read/stage_reader.h"
#include "runner/record/verdict_check.h"

namespace muster::fleet {
namespace {

constexpr size_t kLineBytes = 300;
constexpr size_t kMostDeferred = 5'000;
constexpr size_t kMostExpectationBytes = 4'000;

template <typename Object>
std::string_view textOr(const Object& object, std::string_view key) {
  std::string_view text;
  return object.at_key(key).get(text) == simdjson::SUCCESS ? text : std::string_view();
}

double numberOr(const ColumnarReader& object, std::string_view key) {
  dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) return std::numeric_limits<double>::quiet_NaN();
  return numberOf(element).value_or(std::numeric_limits<double>::quiet_NaN());
}

/// The kind, limit and severity of an expectation in a record; false where they are none.
bool readExpectation(const dom::element& expectation, VerdictClaim& claim) {
  std::string_view kind, severity;
  if (expectation["kind"].get(kind) != simdjson::SUCCESS) return false;
  for (int i = 0; i <= static_cast<int>(CheckKind::kPredicate); ++i)
    if (kind == checkKindName(static_cast<CheckKind>(i))) {
      claim.kind = static_cast<CheckKind>(i);
      dom::element limit;
      if (expectation["limit"].get(limit) == simdjson::SUCCESS) claim.wanted = numberOf(limit).value_or(0);
      if (expectation["tolerance"].get(limit) == simdjson::SUCCESS)
        claim.tolerance = numberOf(limit).value_or(0);
      if (expectation["severity"].get(severity) == simdjson::SUCCESS && severity == "warn")
        claim.severity = Severity::kWarn;
      return true;
    }
  return false;
}

/// What blocks first, then the worst outcome, then the largest miss.
bool worse(const DeviationSummary& a, const DeviationSummary& b) {
  if (a.blocks != b.blocks) return a.blocks;
  if (a.outcome != b.outcome) return a.outcome < b.outcome;
  const double x = std::isnan(a.margin) ? 0 : a.margin;
  const double y = std::isnan(b.margin) ? 0 : b.margin;
  return x < y;
}

}  // namespace

void StageReader::VerdictFields::read(std::string_view key, const dom::element& value) {
  const auto textOf = [&](std::string_view& text) {
    if (value.get(text) != simdjson::SUCCESS) text = {};
  };
  const auto number = [&] { return numberOf(value).value_or(std::numeric_limits<double>::quiet_NaN()); };
  if (isKey(key, "outcome")) return textOf(outcomeName);
  if (isKey(key, "metric")) return textOf(metric);
  if (isKey(key, "case")) return textOf(caseId);
  if (isKey(key, "device")) return textOf(device);
  if (isKey(key, "observed")) {
    hasObserved = true;
    observed = number();
  } else if (isKey(key, "limit")) {
    limit = number();
  } else if (isKey(key, "margin")) {
    margin = number();
  } else if (isKey(key, "rank")) {
    if (value.get(rank) != simdjson::SUCCESS) rank = -1;
  } else if (isKey(key, "required")) {
    if (value.get(required) != simdjson::SUCCESS) required = true;
  } else if (isKey(key, "device_label")) {
    if (value.get(deviceLabel) != simdjson::SUCCESS) deviceLabel = true;
  } else if (isKey(key, "expectation")) {
    hasExpectation = true;
    expectation = value;
  } else if (isKey(key, "labels")) {
    labels = LabelList();
    labelled = labels.read(value) == simdjson::SUCCESS;
  }
}

void StageReader::readClaims(const dom::array& expectations) {
  claims_.clear();
  for (const dom::element item : expectations) {
    Claim& one = claims_.emplace_back();
    one.expectation = item;
    one.known = readExpectation(item, one.claim);
  }
}

void StageReader::readVerdicts(const dom::array& verdicts, const dom::array& expectations,
                               StageSummary& summary) {
  readClaims(expectations);
  cases_.clear();
  VerdictFields fields;
  for (const dom::element item : verdicts) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      return failures_.fail("verdicts", "has an entry that is not an object");
    ColumnarReader rows(object, failures_);
    VerdictFields shared;
    for (const auto& [key, value] : object)  // where a column has null, the verdict has nothing
      if (!rows.hasColumn(key)) shared.read(key, value);
    do {
      if (++verdicts_ > limits_.verdicts)
        failures_.fail("verdicts", fmt::format("the record holds more than {} verdicts", limits_.verdicts));
      fields = shared;
      rows.eachOwn([&](std::string_view key, const dom::element& value) { fields.read(key, value); });
      if (failures_.ok()) readVerdict(rows, fields, summary);
      if (!failures_.ok()) return;
    } while (rows.next(failures_));
    if (!failures_.ok()) return;
  }
}

void StageReader::readVerdict(const ColumnarReader& verdict, VerdictFields& fields, StageSummary& summary) {
  const auto outcome = outcomeFromName(fields.outcomeName);
  if (!outcome.ok()) return failures_.fail("verdicts", outcome.error().message);
  fields.outcome = *outcome;
  for (const std::string_view name : {fields.metric, fields.caseId, fields.device})
    if (name.size() > kMostNameBytes)
      return failures_.fail("verdicts", fmt::format("a name is longer than {} bytes", kMostNameBytes));
  Verdict counted;
  counted.outcome = *outcome;
  counted.required = fields.required;
  counted_.add(counted);
  const Waiver* waiver = waivers_.concernsStage() ? coveringWaiver(verdict, *outcome) : nullptr;
  if (waiver != nullptr) counted.outcome = Outcome::kWaived;
  if (!summary.required && fields.caseId != kTelemetryCase) {
    const auto at = cases_.find(fields.caseId);
    bool& skipped = at != cases_.end() ? at->second : cases_.emplace(fields.caseId, false).first->second;
    skipped = skipped || *outcome == Outcome::kSkipped;
  }
  summary.accounting.add(counted);
  ++summary.accounting.expected;
  if (fields.rank < 0 && fields.device.empty()) {
    summary.shared.add(counted);
    ++summary.shared.expected;
  }

  Claim own;  // of an expectation that stands in the verdict itself
  const Claim* asked = &own;
  if (uint64_t index = 0; fields.hasExpectation && fields.expectation.get(index) == simdjson::SUCCESS) {
    if (index >= claims_.size())
      return failures_.fail("verdicts",
                            fmt::format("expectation {} is not in the stage's evidence.expectations", index));
    asked = &claims_[index];
  } else if (fields.hasExpectation) {
    own.expectation = fields.expectation;
    if (dom::object object; own.expectation.get(object) == simdjson::SUCCESS)
      requireUniqueKeys(object, failures_);
    own.known = readExpectation(own.expectation, own.claim);
  }
  if (const std::string why = contradictionOf(fields, *asked, summary.state); !why.empty())
    return failures_.fail("verdicts", fmt::format("edited: {} of {}: {}", printable(fields.metric, 80),
                                                  printable(fields.device, 40), why));
  noteJudged(fields);
  if (!failures_.ok()) return;
  if (*outcome == Outcome::kDeferred) {
    if (!fields.hasExpectation) return failures_.fail("verdicts", "a deferred verdict has no expectation");
    addDeferred(verdict, fields, asked->expectation);
  }
  if (blocksOrTells(counted.outcome, counted.required))
    addDeviation(verdict, asked->expectation, fields.hasExpectation, counted.outcome,
                 waiver == nullptr ? "" : waivedText(*outcome, *waiver));
}

std::string StageReader::contradictionOf(const VerdictFields& verdict, const Claim& asked, StageState state) {
  VerdictClaim claim = asked.claim;
  claim.outcome = verdict.outcome;
  claim.stageState = state;
  claim.hasExpectation = verdict.hasExpectation;
  if (verdict.hasExpectation && !asked.known) return "its expectation has no known kind";
  claim.observed = verdict.observed;
  claim.limit = verdict.limit;
  claim.margin = verdict.margin;
  claim.dropsWarn = (verdict.outcome == Outcome::kWarn || verdict.outcome == Outcome::kFlaky) &&
                    warnedDrops_.contains(verdict.metric);
  claim.underWaivers =
      verdict.outcome == Outcome::kWaived && (ownWaivers_.contains({stage_, std::string(verdict.metric)}) ||
                                              ownWaivers_.contains({"", std::string(verdict.metric)}));
  return contradictionIn(claim);
}

const Waiver* StageReader::coveringWaiver(const ColumnarReader& verdict, Outcome recorded) {
  WaiverTarget target;
  target.node = node_->node;
  target.stage = stage_;
  target.metric = textOr(verdict, "metric");
  target.device = textOr(verdict, "device");
  for (const DeviceIdentity& device : node_->devices)
    if (device.id == target.device) target.serial = device.serial;
  LabelList labels;
  if (dom::element element; verdict.at_key("labels").get(element) == simdjson::SUCCESS)
    if (labels.read(element) != simdjson::SUCCESS) failures_.fail("labels", "must be texts by name");
  target.labels = labels.without({});
  // The record leaves out a label that only repeats the device.
  bool labelled = true;
  if (verdict.at_key("device_label").get(labelled) != simdjson::SUCCESS) labelled = true;
  if (labelled && !target.device.empty()) target.labels.emplace("device", target.device);
  return waivers_.settle(recorded, target);
}

bool StageReader::blocksOrTells(Outcome outcome, bool required) const {
  switch (outcome) {
    case Outcome::kFail:
    case Outcome::kError:
    case Outcome::kFlaky:
    case Outcome::kWarn:
    case Outcome::kWaived:
      return true;
    case Outcome::kSkipped:
      return required;
    case Outcome::kUnjudged:
      return node_->strict;
    default:
      return false;
  }
}

void StageReader::addDeviation(const ColumnarReader& verdict, const dom::element& expectation,
                               bool hasExpectation, Outcome outcome, const std::string& waived) {
  LabelList labels;
  if (dom::element element; verdict.at_key("labels").get(element) == simdjson::SUCCESS)
    if (labels.read(element) != simdjson::SUCCESS) return failures_.fail("labels", "must be texts by name");
  DeviationSummary deviation;
  deviation.outcome = outcome;
  deviation.stage = stageNumber_;
  deviation.metric = text(textOr(verdict, "metric"));
  deviation.device = bounded(textOr(verdict, "device"), kLineBytes);
  deviation.labels = bounded(labelsText(labels.without({"device", "rank"})), kLineBytes);
  deviation.detail = bounded(textOr(verdict, "detail"), waived.empty() ? kLineBytes : kLineBytes / 2) +
                     bounded(waived, kLineBytes / 2);
  deviation.margin = numberOr(verdict, "margin");
  std::string_view remedy = textOr(verdict, "remedy");
  if (dom::object object; hasExpectation && expectation.get(object) == simdjson::SUCCESS) {
    if (remedy.empty()) remedy = textOr(object, "remedy");
    deviation.limitSource = bounded(textOr(object, "source"), kLineBytes);
  }
  deviation.remedy = bounded(remedy, kLineBytes);
  deviation.blocks = outcome != Outcome::kWarn && outcome != Outcome::kWaived &&
                     (outcome != Outcome::kFlaky || !allowsFlaky_);
  if (deviation.blocks) findCause(verdict, deviation);
  deviation.ofOthers = deviation.blocks && (deviation.cause != Cause::kOwn || scope_ == Scope::kCluster);
  auto& all = node_->deviations;
  const auto same = std::find_if(all.begin(), all.end(), [&](const DeviationSummary& d) {
    return d.cause != Cause::kOwn && d.cause == deviation.cause && d.source == deviation.source &&
           d.outcome == deviation.outcome && d.stage == deviation.stage && d.metric == deviation.metric;
  });
  if (same != all.end()) {
    ++same->times;
    return;
  }
  all.push_back(std::move(deviation));
  if (all.size() >= deviationsKept_ + 8 * kMostDeviations) cutDeviations();
}

void StageReader::cutDeviations() {
  auto& all = node_->deviations;
  std::stable_sort(all.begin(), all.end(), worse);
  size_t own = 0, others = 0;
  node_->deviationsLeft += std::erase_if(all, [&](const DeviationSummary& d) {
    return d.ofOthers ? ++others > kMostOfOthers : ++own > kMostDeviations;
  });
  deviationsKept_ = all.size();
}

void StageReader::findCause(const ColumnarReader& verdict, DeviationSummary& deviation) {
  const std::string_view metric = textOr(verdict, "metric");
  const std::string_view detail = textOr(verdict, "detail");
  if (metric.empty()) {
    int64_t rank = -1;
    const bool ofRank = verdict.at_key("rank").get(rank) == simdjson::SUCCESS && rank >= 0;
    const bool stopped =
        ofRank ? stopped_.contains(rank) : cancelledCases_.contains(std::string(textOr(verdict, "case")));
    const auto [at, fresh] = causes_.try_emplace({detail.data(), detail.size(), stopped});
    if (fresh) at->second = caseCause(detail, culprit_, stopped);
    const CaseCause& cause = at->second;
    deviation.cause = cause.cause;
    // Only what was left out can be so for want of another stage: an error is somebody's.
    if (cause.cause == Cause::kNeed && deviation.outcome != Outcome::kSkipped) deviation.cause = Cause::kOwn;
    deviation.source = boundedCause(cause.source);
    return;
  }
  if (!ofGroup()) return;
  // One rank tells it for all: it is no result of that rank's device. What it does not tell at all is.
  const bool ofAll = leaderMetrics_.contains(std::string(metric));
  if (deviation.outcome == Outcome::kError) {
    if (ofAll && metrics_.contains(metric)) deviation.cause = Cause::kGroup;
    return;
  }
  const auto fault = std::find_if(firstFaults_.begin(), firstFaults_.end(), [&](const FirstFault& known) {
    return known.device == textOr(verdict, "device") && known.caseId == textOr(verdict, "case") &&
           metric.starts_with(known.stem);
  });
  if (fault != firstFaults_.end()) {
    deviation.cause = Cause::kRank;
    deviation.source = fault->rank;
    return;
  }
  if (ofAll) deviation.cause = Cause::kGroup;
}

void StageReader::finish() {
  cutDeviations();
  node_->deviations.shrink_to_fit();
  node_->waivers = waivers_.counts();
  node_->figures.shrink_to_fit();
}

void StageReader::addDeferred(const ColumnarReader& verdict, const VerdictFields& fields,
                              const dom::element& expectation) {
  LabelList labels;
  if (dom::element element; verdict.at_key("labels").get(element) == simdjson::SUCCESS)
    if (labels.read(element) != simdjson::SUCCESS) return failures_.fail("labels", "must be texts by name");
  if (node_->deferred.size() >= kMostDeferred)
    return failures_.fail("verdicts", fmt::format("the record defers more than {} verdicts", kMostDeferred));
  const std::string whole = simdjson::minify(expectation);
  if (whole.size() > kMostExpectationBytes)
    return failures_.fail("expectation", fmt::format("is longer than {} bytes", kMostExpectationBytes));
  auto wanted = parseJson(whole);
  if (!wanted.ok()) return failures_.fail("expectation", wanted.error().message);
  auto read = expectationFromJson(*wanted, "expectation");
  if (!read.ok()) return failures_.fail("expectation", read.error().message);
  wanted->erase("at");  // a plan that lies elsewhere on each node is the same plan
  const std::string text = dumpJson(*wanted);
  const std::string metric(textOr(verdict, "metric"));
  std::string key;
  for (const std::string_view part :
       {std::string_view(stage_), textOr(verdict, "case"), std::string_view(metric), std::string_view(text)})
    appendPart(key, part);
  labels.append(key, {"device", "rank", "peer"});
  if (read->kind != CheckKind::kWithin || read->peers != PeerGroup::kFleet)
    return failures_.fail("verdicts", "a deferred verdict's expectation is not relative to the fleet");
  const auto facts = metrics_.find(metric);
  if (facts == metrics_.end())
    return failures_.fail("verdicts", fmt::format("deferred, but no {} was measured", printable(metric, 80)));
  const std::string question = key;
  appendPart(key, directionName(facts->second.direction));  // no record chooses for the others
  DeferredSummary deferred;
  deferred.key = names_.deferred.number(key, [&] {
    return DeferredKey{stage_,
                       std::string(textOr(verdict, "case")),
                       metric,
                       labels.without({"device", "rank", "peer"}),
                       facts->second.direction,
                       *read,
                       question};
  });
  if (deferredKeys_.tryEmplace(deferred.key, true).second) countKey(key.size(), labels);
  deferred.device = bounded(textOr(verdict, "device"), kLineBytes);
  deferred.observed = numberOr(verdict, "observed");
  if (!std::isfinite(deferred.observed))
    return failures_.fail("verdicts",
                          fmt::format("{} is deferred without a finite value", printable(metric, 80)));
  // One vote for each thing that was measured: what has no measurement would outvote the other nodes.
  const std::optional<uint64_t> id = measurementOf(fields);
  const auto span = id ? comparable_.find(*id) : comparable_.end();
  if (span == comparable_.end())
    return failures_.fail("verdicts", fmt::format("edited: {} of {} is deferred, and was not measured there",
                                                  printable(metric, 80), printable(deferred.device, 40)));
  if (!deferredOn_.insert({*id, deferred.key}).second)
    return failures_.fail("verdicts", fmt::format("edited: {} of {} is deferred twice", printable(metric, 80),
                                                  printable(deferred.device, 40)));
  requireWithin(span->second, fields, "is deferred");
  if (!failures_.ok()) return;
  node_->deferred.push_back(std::move(deferred));
}

}  // namespace muster::fleet

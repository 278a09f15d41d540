// SPDX-License-Identifier: Apache-2.0
// See stage_reader.h: the measurements of a stage, as figures that nodes are compared by.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "reports/fleet/read/cause.h"
#include "reports/fleet/read/columnar_reader.h"
#include "reports/fleet/read/inventory_reader.h"
#include "reports/fleet/read/label_list.h"
#include "reports/fleet/read/stage_reader.h"
#include "runner/core/statistics.h"
#include "runner/core/units.h"
#include "runner/judge/judge.h"
#include "runner/judge/series.h"
#include "runner/metrics/measurement.h"
#include "runner/record/fold/sample_pack.h"
#include "runner/record/record_check.h"

namespace muster::fleet {
namespace {

constexpr uint64_t kMostCompared = 100'000'000;  ///< pairs of labels; real records have some 100,000
constexpr std::string_view kProgramMetric = "exec.program";
constexpr std::string_view kDeviceCount = "env.device_count";
constexpr std::string_view kDeviceName = "env.device_name";
constexpr std::string_view kDeviceMemory = "env.device_memory";
constexpr std::string_view kMemoryFact = "memory_bytes";
constexpr size_t kMostPrograms = 1'000;  ///< of one stage
constexpr size_t kMostFaults = 1'000;    ///< of one stage; each failed verdict is held against all of them

/// Whether figures of this kind are compared between nodes. Counts and flags have limits of their own, and
/// shares that a plugin reports beside its figures say how they were measured. Power has no better side, but
/// its spread tells.
bool isCompared(std::string_view unit, Direction direction, bool informational) {
  if (unit == "count" || unit == "bool" || unit == "text") return false;
  if (unit == "ratio" && informational) return false;
  return direction != Direction::kNone || unit == "W";
}

/// Whether a Figure can hold it.
bool isFigure(double value) {
  return std::abs(value) <= std::numeric_limits<float>::max();
}

uint64_t mixed(uint64_t hash, uint64_t value) {
  return ((hash ^ value) * 0x9e3779b97f4a7c15u) ^ (hash >> 29);
}

/// What tells one measurement of a stage from all others. A verdict names the device of its rank where the
/// measurement names none, so the device counts only as far as it is a label.
uint64_t measurementId(std::string_view metric, std::string_view caseId, int64_t rank,
                       const LabelList& labels, std::string_view deviceLabel, std::string& key) {
  key.clear();
  for (const std::string_view part : {metric, caseId, labels.find("device").value_or(deviceLabel)})
    appendPart(key, part);
  labels.append(key, {"device"});
  key.append(reinterpret_cast<const char*>(&rank), sizeof rank);
  return keyedHash(key);
}

}  // namespace

struct StageReader::Parts {
  std::string_view metric;
  std::string_view unit;
  std::string_view caseId;
  std::string_view device;
  std::string_view peak;
  std::string_view direction;
  std::string_view text;  ///< of a fact
  std::string_view series;
  double window = 0;
  int64_t rank = kNoRank;
  bool deviceLabel = true;  ///< the device is a label too, which is left out
  LabelList labels;
  bool informational = false;
  int64_t attempt = 1;
  int64_t exponent = 0;
  dom::element samples;
  bool hasSamples = false;
  bool unpacked = false;  ///< scratch_ holds them
  bool noted = false;     ///< in metrics_, and what follows is known
  Direction side = Direction::kNone;
  bool compared = false;
  uint64_t nameHash = 0;  ///< of what names it
  uint32_t key = kNoKey;  ///< of the figure, once it is known

  static constexpr uint32_t kNoKey = 0xffffffff;
  static constexpr int64_t kNoRank = INT64_MIN;  // telemetry has -1

  simdjson::error_code read(std::string_view name, const dom::element& value) {
    if (isKey(name, "samples")) {
      samples = value;
      hasSamples = true;
      return simdjson::SUCCESS;
    }
    if (isKey(name, "device")) return value.get(device);
    if (isKey(name, "text")) return value.get(text);
    if (isKey(name, "rank")) return value.get(rank);
    if (isKey(name, "device_label")) return value.get(deviceLabel);
    if (isKey(name, "attempt")) return value.get(attempt);
    if (isKey(name, "exponent")) return value.get(exponent);
    if (isKey(name, "series")) return value.get(series);
    if (isKey(name, "window")) return value.get(window);
    if (!isKey(name, "metric") && !isKey(name, "unit") && !isKey(name, "case") && !isKey(name, "labels") &&
        !isKey(name, "peak") && !isKey(name, "direction") && !isKey(name, "informational"))
      return simdjson::SUCCESS;
    noted = false;
    key = kNoKey;
    if (isKey(name, "metric")) return value.get(metric);
    if (isKey(name, "unit")) return value.get(unit);
    if (isKey(name, "case")) return value.get(caseId);
    if (isKey(name, "direction")) return value.get(direction);
    if (isKey(name, "peak")) return value.get(peak);
    if (isKey(name, "informational")) return value.get(informational);
    return labels.read(value);
  }
};

void StageReader::readMeasurements(const dom::array& measurements, bool accepted) {
  usedSlots_ = 0;
  slotByKey_.clear();
  for (const dom::element item : measurements) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      failures_.fail("measurements", "has an entry that is not an object");
    if (failures_.ok()) readMeasurementGroup(object, accepted);
    if (!failures_.ok()) return;
  }
  finishFigures();
}

void StageReader::readMeasurementGroup(const dom::object& group, bool accepted) {
  Parts shared;
  const auto take = [&](Parts& parts, std::string_view key, const dom::element& value) {
    if (parts.read(key, value) != simdjson::SUCCESS)
      failures_.fail(key, "a measurement's field is of another type than expected");
  };
  for (const auto& [key, value] : group) take(shared, key, value);
  ColumnarReader rows(group, failures_);
  const bool alike = !rows.hasColumn("metric") && !rows.hasColumn("labels") && !rows.hasColumn("case") &&
                     !rows.hasColumn("unit");
  Parts parts;
  do {
    if (++measurements_ > limits_.measurements)
      failures_.fail("measurements",
                     fmt::format("the record holds more than {} measurements", limits_.measurements));
    if (!failures_.ok()) return;
    parts = shared;
    rows.eachOwn([&](std::string_view key, const dom::element& value) { take(parts, key, value); });
    if (failures_.ok()) addMeasurement(parts, accepted);
    if (!alike) continue;
    shared.key = parts.key;
    shared.noted = parts.noted;
    shared.side = parts.side;
    shared.compared = parts.compared;
    shared.nameHash = parts.nameHash;
  } while (rows.next(failures_));
}

void StageReader::addMeasurement(Parts& parts, bool accepted) {
  countUnfolded(parts);
  if (parts.rank == Parts::kNoRank) failures_.fail("rank", "a measurement has none");
  if (failures_.ok() && !parts.noted) noteMetric(parts);
  if (!failures_.ok()) return;
  noteFirstFault(parts);
  if (isOwnStage(stage_)) noteDevice(parts);
  hashMeasurement(parts);
  noteAsked(parts);
  if (!failures_.ok() || !parts.compared) return;
  if (parts.key == Parts::kNoKey) parts.key = figureKey(parts);
  if (failures_.ok()) addSamples(parts, accepted);
}

void StageReader::noteMetric(Parts& parts) {
  if (parts.metric.empty() || !isBaseUnit(parts.unit))
    failures_.fail("measurements",
                   fmt::format("the metric \"{}\" has the unit \"{}\", which is not a base unit",
                               printable(parts.metric, 80), printable(parts.unit, 40)));
  const auto direction = directionFromName(parts.direction.empty() ? "none" : parts.direction);
  if (!direction.ok()) failures_.fail("direction", direction.error().message);
  if (!failures_.ok()) return;
  if (parts.metric.size() > kMostNameBytes)
    return failures_.fail("metric", fmt::format("its name is longer than {} bytes", kMostNameBytes));
  parts.side = *direction;
  parts.compared = isCompared(parts.unit, *direction, parts.informational);
  askedOfMetric_.clear();
  for (Asked& asked : asked_)
    if (asked.counts && asked.metric == parts.metric) askedOfMetric_.push_back(&asked);
  ofFleet_ = fleetMetrics_.contains(parts.metric);
  metrics_[std::string(parts.metric)] = {*direction, std::string(parts.unit)};
  parts.nameHash = 0;
  for (const std::string_view part : {std::string_view(stage_), parts.metric, parts.caseId, parts.unit})
    parts.nameHash = mixed(parts.nameHash, keyedHash(part));
  parts.noted = true;
}

void StageReader::noteFirstFault(const Parts& parts) {
  if (!ofGroup() || !parts.metric.ends_with(kFirstFault)) return;
  const std::optional<std::string> rank = sourceRank(parts.text);
  if (!rank) return;
  if (firstFaults_.size() >= kMostFaults)
    return failures_.fail("measurements", fmt::format("more than {} first faults", kMostFaults));
  const std::string_view stem = parts.metric.substr(0, parts.metric.size() - kFirstFault.size());
  firstFaults_.push_back({std::string(parts.device), std::string(parts.caseId), std::string(stem), *rank});
}

void StageReader::readExpectations(const dom::object& evidence) {
  asked_.clear();
  askedOfMetric_.clear();
  spans_.clear();
  spanOf_.clear();
  judged_.clear();
  measured_.clear();
  fleetMetrics_.clear();
  comparable_.clear();
  deferredOn_.clear();
  warnedDrops_.clear();
  failedDrops_.clear();
  dom::array expectations;
  if (!failures_.ok() || evidence.at_key("expectations").get(expectations) != simdjson::SUCCESS) return;
  if (expectations.size() > limits_.expectations)
    return failures_.fail("evidence.expectations",
                          fmt::format("the stage has more than {}", limits_.expectations));
  for (const dom::element item : expectations) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      return failures_.fail("evidence.expectations", "has an entry that is not an object");
    requireUniqueKeys(object, failures_);
    if (!failures_.ok()) return;
    std::string_view metric, kind, peers, severity;
    if (object["metric"].get(metric) != simdjson::SUCCESS || object["kind"].get(kind) != simdjson::SUCCESS)
      continue;
    if (kind == checkKindName(CheckKind::kWithin) && object["peers"].get(peers) == simdjson::SUCCESS &&
        peers == "fleet")
      fleetMetrics_.insert(metric);
    if (kind != checkKindName(CheckKind::kDropMax)) continue;
    const bool warns = object["severity"].get(severity) == simdjson::SUCCESS && severity == "warn";
    (warns ? warnedDrops_ : failedDrops_).insert(metric);
  }
  if (accepted_) readAsked(expectations);
}

void StageReader::readAsked(const dom::array& expectations) {
  for (const dom::element item : expectations) {
    Asked asked;
    asked.expectation = item;
    const bool about = item["metric"].get(asked.metric) == simdjson::SUCCESS &&
                       item["kind"].get(asked.kind) == simdjson::SUCCESS;
    if (dom::element where; about && item["where"].get(where) == simdjson::SUCCESS)
      if (asked.where.read(where) != simdjson::SUCCESS)
        return failures_.fail("evidence.expectations", "where must be texts by name");
    const auto textOf = [](Asked& one) -> const std::string& {
      if (one.text.empty()) one.text = simdjson::minify(one.expectation);
      return one.text;
    };
    const auto isSame = [&](Asked& other) {
      return other.counts && other.metric == asked.metric && other.kind == asked.kind &&
             other.where == asked.where && textOf(other) == textOf(asked);
    };
    asked.counts = about && asked.kind != checkKindName(CheckKind::kDropMax) &&
                   std::none_of(asked_.begin(), asked_.end(), isSame);
    asked_.push_back(std::move(asked));
  }
}

void StageReader::countUnfolded(const Parts& parts) {
  uint64_t samples = 0;
  if (dom::array list; parts.hasSamples && parts.samples.get(list) == simdjson::SUCCESS)
    samples = list.size();
  else if (dom::object packed; parts.hasSamples && parts.samples.get(packed) == simdjson::SUCCESS)
    if (packed.at_key("n").get(samples) != simdjson::SUCCESS || samples > kMostPacked) samples = 1;
  samples_ += samples;
  if (samples_ > limits_.samples)
    return failures_.fail("samples", fmt::format("the record holds more than {} samples", limits_.samples));
  unfolded_ += parts.metric.size() + parts.caseId.size() + parts.unit.size() + parts.device.size() +
               parts.text.size() + parts.peak.size() + parts.labels.bytes();
  if (unfolded_ > limits_.bytes)
    failures_.fail("measurements", fmt::format("the texts of their rows unfold to more than {}",
                                               formatQuantity(static_cast<double>(limits_.bytes), "B")));
}

void StageReader::countKey(size_t textBytes, const LabelList& labels) {
  constexpr size_t kCopies = 3;  // the text in the table and in the reader's own, and its parts
  keyBytes_ += kCopies * textBytes + labels.keptBytes();
  if (keyBytes_ > limits_.keyBytes)
    failures_.fail("measurements",
                   fmt::format("the names and labels of its measurements expand to more than {}",
                               formatQuantity(static_cast<double>(limits_.keyBytes), "B")));
}

uint64_t StageReader::measuredId(std::string_view metric, std::string_view caseId, int64_t rank) {
  scratchKey_.clear();
  for (const std::string_view part : {metric, caseId}) appendPart(scratchKey_, part);
  scratchKey_.append(reinterpret_cast<const char*>(&rank), sizeof rank);
  return keyedHash(scratchKey_);
}

bool StageReader::lacksMeasurements(const dom::object& evidence, const StageSummary& stage) {
  requireUniqueKeys(evidence, failures_);
  dom::array ends;
  dom::object caseMetrics;
  if (measured_.size() == 0 || evidence.at_key("ends").get(ends) != simdjson::SUCCESS || ends.size() == 0 ||
      evidence.at_key("case_metrics").get(caseMetrics) != simdjson::SUCCESS)
    return true;
  std::set<std::string_view> limited;
  for (const Asked& asked : asked_)
    if (asked.counts) limited.insert(asked.metric);
  struct Case {
    std::map<int64_t, CaseEnd::State> ended;  ///< the best of all attempts, by rank
    std::set<std::string_view> metrics;       ///< that each of them measures, and are limited
    std::set<std::string_view> ofLeader;
  };
  std::map<std::string_view, Case> cases;
  for (const auto& [caseId, metrics] : caseMetrics) {
    Case& one = cases[caseId];
    if (dom::array list; metrics.get(list) == simdjson::SUCCESS)
      for (const dom::element item : list)
        if (std::string_view metric; item.get(metric) == simdjson::SUCCESS && limited.contains(metric))
          (leaderMetrics_.contains(std::string(metric)) ? one.ofLeader : one.metrics).insert(metric);
  }
  for (const dom::element end : ends) {
    std::string_view caseId, state;
    int64_t rank = 0;
    if (end["case"].get(caseId) != simdjson::SUCCESS || end["rank"].get(rank) != simdjson::SUCCESS ||
        end["state"].get(state) != simdjson::SUCCESS)
      return true;
    const std::optional<CaseEnd::State> known = fromName<CaseEnd::State>(state);
    if (!known) return true;
    Case& one = cases[caseId];
    const auto [best, isFirst] = one.ended.emplace(rank, *known);
    if (!isFirst && (best->second == CaseEnd::State::kOk || *known == CaseEnd::State::kError)) continue;
    best->second = *known;
    if (*known != CaseEnd::State::kOk) continue;
    const auto lacks = [&](std::string_view metric) {
      return measured_.find(measuredId(metric, caseId, rank)) == nullptr;
    };
    if (lacks("") || std::any_of(one.metrics.begin(), one.metrics.end(), lacks)) return true;
    if (rank == 0 && std::any_of(one.ofLeader.begin(), one.ofLeader.end(), lacks)) return true;
  }
  const bool maySkip = !stage.required && stage.accounting.of(Outcome::kSkipped) > 0;
  const auto isBad = [&](const Case& one) {  // what is unsupported is so on all ranks
    const auto count = [&](CaseEnd::State state) {
      return static_cast<size_t>(std::count_if(one.ended.begin(), one.ended.end(),
                                               [&](const auto& r) { return r.second == state; }));
    };
    const size_t unsupported = count(CaseEnd::State::kUnsupported);
    return count(CaseEnd::State::kError) > 0 ||
           (unsupported > 0 && (!maySkip || unsupported < one.ended.size()));
  };
  size_t ranks = stage.scope == Scope::kDevice ? listed_ : 1;
  for (const auto& [caseId, one] : cases)
    if (caseId != kTelemetryCase) ranks = std::max(ranks, one.ended.size());
  return std::any_of(cases.begin(), cases.end(), [&](const auto& one) {
    const auto& ended = one.second.ended;
    return ended.size() < (one.first == kTelemetryCase ? 1 : ranks) || isBad(one.second);
  });
}

void StageReader::noteDevice(Parts& parts) {
  if (parts.metric != kDeviceCount && parts.metric != kDeviceName && parts.metric != kDeviceMemory) return;
  const bool number =
      parts.metric != kDeviceName && parts.hasSamples && unpack(parts) && scratch_.size() == 1;
  const auto begin = node_->devices.begin(), end = begin + static_cast<std::ptrdiff_t>(listed_);
  const auto device = std::find_if(begin, end, [&](const auto& one) { return one.id == parts.device; });
  bool same = device != end;
  if (parts.metric == kDeviceCount)
    same = number && scratch_.front() == static_cast<double>(listed_);
  else if (same && parts.metric == kDeviceName)
    same = bounded(parts.text, kFactBytes) == device->name;
  else if (same) {
    const Fact bytes{static_cast<int16_t>(device - begin), text(kMemoryFact),
                     number ? text(fmt::format("{}", scratch_.front())) : 0};
    same = number && std::any_of(node_->facts.begin(), node_->facts.end(), [&](const Fact& fact) {
             return fact.device == bytes.device && fact.name == bytes.name && fact.value == bytes.value;
           });
  }
  if (same)
    told_.insert(fmt::format("{} {}", parts.metric, parts.device));
  else
    toldOtherwise_ = true;
}

void StageReader::noteAsked(Parts& parts) {
  if (accepted_) {
    measured_.tryEmplace(measuredId("", parts.caseId, parts.rank), true);
    if (!askedOfMetric_.empty())
      measured_.tryEmplace(measuredId(parts.metric, parts.caseId, parts.rank), true);
  }
  if (askedOfMetric_.empty() && !ofFleet_) return;
  const std::string_view device = parts.deviceLabel ? parts.device : std::string_view();
  concerned_.clear();
  for (Asked* asked : askedOfMetric_) {
    compared_ += asked->where.size() * parts.labels.size();
    if (parts.labels.match(asked->where, device)) concerned_.push_back(asked);
  }
  if (compared_ > kMostCompared)
    return failures_.fail("expectations", "they and the measurements have too many labels to compare");
  if (concerned_.empty() && !ofFleet_) return;
  const uint64_t id =
      measurementId(parts.metric, parts.caseId, parts.rank, parts.labels, device, scratchKey_);
  if (ofFleet_) widen(comparable_[id], parts);
  if (concerned_.empty()) return;
  const auto [number, fresh] = spanOf_.tryEmplace(id, spans_.size());
  if (fresh) {
    spans_.emplace_back();
    for (Asked* asked : concerned_) ++asked->due;
  }
  widen(spans_[*number], parts);
}

void StageReader::widen(Span& span, Parts& parts) {
  if (!parts.hasSamples || !unpack(parts) || std::abs(parts.exponent) > kMostExponent) return;
  for (const double value : scratch_) {
    span.low = std::min(span.low, value);
    span.high = std::max(span.high, value);
  }
}

std::optional<uint64_t> StageReader::measurementOf(const VerdictFields& verdict) {
  if (!verdict.labelled) {
    failures_.fail("labels", "must be texts by name");
    return std::nullopt;
  }
  const std::string_view device = verdict.deviceLabel ? verdict.device : std::string_view();
  return measurementId(verdict.metric, verdict.caseId, verdict.rank, verdict.labels, device, scratchKey_);
}

void StageReader::noteJudged(const VerdictFields& verdict) {
  uint64_t index = 0;
  if (asked_.empty() || !verdict.hasExpectation || verdict.expectation.get(index) != simdjson::SUCCESS ||
      index >= asked_.size())
    return;
  const std::optional<uint64_t> id = measurementOf(verdict);
  if (!id) return;
  const size_t* const number = spanOf_.find(*id);
  if (number == nullptr || !judged_.tryEmplace((static_cast<uint64_t>(*number) << 32) | index, true).second)
    return;
  ++asked_[index].judged;
  const CheckKind kind = claims_[index].claim.kind;
  if (verdict.outcome != Outcome::kPass || kind == CheckKind::kCvMax || kind == CheckKind::kDropMax) return;
  requireWithin(spans_[*number], verdict, "passes");
}

/// Fails where the figure of a verdict is not within the samples of its measurement.
void StageReader::requireWithin(const Span& span, const VerdictFields& verdict, const char* outcome) {
  if (!verdict.hasObserved) return;
  constexpr double kRounding = 1e-6;
  const double figure = verdict.observed;
  if (figure >= span.low - kRounding * std::abs(span.low) &&
      figure <= span.high + kRounding * std::abs(span.high))
    return;
  failures_.fail("verdicts", fmt::format("edited: {} of {} {} with {}, and its samples are {} to {}",
                                         printable(verdict.metric, 80), printable(verdict.device, 40),
                                         outcome, figure, span.low, span.high));
}

/// Fails where an expectation applies to more measurements than it has verdicts on.
void StageReader::checkAsked() {
  for (const Asked& asked : asked_)
    if (asked.counts && asked.judged < asked.due)
      return failures_.fail("verdicts", fmt::format("edited: {} was measured {} times and judged {} times",
                                                    printable(asked.metric, 80), asked.due, asked.judged));
}

/// The sum over all measurements, so that their order does not matter.
void StageReader::hashMeasurement(Parts& parts) {
  if (parts.metric == kProgramMetric && programs_.size() < kMostPrograms) programs_.emplace(parts.text);
  uint64_t hash = parts.nameHash;
  const auto mix = [&](uint64_t value) { hash = mixed(hash, value); };
  for (const std::string_view part : {parts.device, parts.text}) mix(keyedHash(part));
  mix(static_cast<uint64_t>(parts.attempt));
  mix(static_cast<uint64_t>(parts.exponent));
  if (dom::array list; parts.hasSamples && parts.samples.get(list) == simdjson::SUCCESS) {
    scratch_.clear();
    parts.unpacked = readSamples(parts.samples, scratch_);
    for (const double value : scratch_) mix(std::bit_cast<uint64_t>(value));
    if (parts.unpacked) scale(parts);
  } else if (dom::object packed; parts.hasSamples && parts.samples.get(packed) == simdjson::SUCCESS) {
    for (const auto& [key, value] : packed) mix(std::bit_cast<uint64_t>(numberOf(value).value_or(0)));
  }
  node_->samplesHash += hash;
}

/// Puts the measurement's samples into scratch_, in base units where the exponent is in range. False: they
/// are none, which is a failure.
bool StageReader::unpack(Parts& parts) {
  if (parts.unpacked) return true;
  scratch_.clear();
  parts.unpacked = readSamples(parts.samples, scratch_);
  if (parts.unpacked)
    scale(parts);
  else
    failures_.fail("samples", fmt::format("{} has an entry that is not a list of numbers", parts.metric));
  return parts.unpacked;
}

void StageReader::scale(const Parts& parts) {
  if (parts.exponent == 0 || std::abs(parts.exponent) > kMostExponent) return;
  const double ten = scaledByTen(1, static_cast<int>(std::abs(parts.exponent)));
  if (parts.exponent > 0)
    for (double& value : scratch_) value *= ten;
  else
    for (double& value : scratch_) value /= ten;
}

uint32_t StageReader::figureKey(const Parts& parts) {
  std::string key;
  for (const std::string_view part : {std::string_view(stage_), parts.caseId, parts.metric, parts.unit})
    appendPart(key, part);
  parts.labels.append(key, {"device", "rank"});
  // What a record says of a metric is not said for the others.
  for (const std::string_view part : {std::string_view(directionName(parts.side)),
                                      std::string_view(parts.informational ? "i" : ""), parts.peak})
    appendPart(key, part);
  const size_t textBytes = key.size();
  const uint32_t number = numberOfFigure(parts, std::move(key));
  if (figures_.tryEmplace(number, true).second) countKey(textBytes, parts.labels);
  return number;
}

uint32_t StageReader::numberOfFigure(const Parts& parts, std::string key) {
  const auto at = knownKeys_.find(key);
  if (at != knownKeys_.end()) return at->second;
  knownBytes_ += key.size();
  const uint32_t number = names_.figures.number(key, [&] {
    return FigureKey{stage_,
                     std::string(parts.caseId),
                     std::string(parts.metric),
                     std::string(parts.unit),
                     parts.labels.without({"device", "rank"}),
                     parts.side,
                     parts.informational,
                     std::string(parts.peak)};
  });
  knownKeys_.emplace(std::move(key), number);
  return number;
}

StageReader::Slot& StageReader::slotOf(uint32_t key, int16_t device) {
  const uint64_t id = (static_cast<uint64_t>(key) << 16) | static_cast<uint16_t>(device);
  const auto [at, fresh] = slotByKey_.tryEmplace(id, usedSlots_);
  if (!fresh) return slots_[*at];
  if (usedSlots_ == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[usedSlots_++];
  slot.key = key;
  slot.device = device;
  slot.attempt = 1;
  slot.finite = true;
  slot.series = Series::kNone;
  slot.samples.clear();
  return slot;
}

void StageReader::addSamples(Parts& parts, bool accepted) {
  if (!parts.hasSamples) return;
  const int16_t device = deviceIndex(parts.device);
  if (!failures_.ok()) return;
  const int attempt = static_cast<int>(std::clamp<int64_t>(parts.attempt, 1, 1'000'000));
  Slot& slot = slotOf(parts.key, device);
  if (attempt < slot.attempt) return;
  if (attempt > slot.attempt) {
    slot.samples.clear();
    slot.finite = true;
  }
  slot.attempt = attempt;
  if (!unpack(parts)) return;
  if (std::abs(parts.exponent) > kMostExponent)
    return failures_.fail("exponent", fmt::format("{} is out of range", parts.exponent));
  const auto odd = std::find_if_not(scratch_.begin(), scratch_.end(), isFigure);
  if (odd != scratch_.end() && accepted && !parts.informational)
    return failures_.fail("samples", fmt::format("{} of {} holds {}, yet the record says accepted",
                                                 printable(parts.metric, 80), printable(parts.device, 40),
                                                 std::isnan(*odd)   ? "NaN"
                                                 : std::isinf(*odd) ? "an infinity"
                                                                    : "a number that no measurement gives"));
  slot.finite = slot.finite && odd == scratch_.end();
  slot.samples.insert(slot.samples.end(), scratch_.begin(), scratch_.end());
  if (!spreads_ || !failedDrops_.contains(parts.metric)) return;
  slot.direction = parts.side;
  slot.window = parts.window;
  if (const auto series = seriesFromName(parts.series); series.ok()) slot.series = *series;
}

// A hundred million samples in a large fleet: no call for each.
[[gnu::flatten]] bool StageReader::readSamples(const dom::element& samples, std::vector<double>& out) {
  if (dom::object packed; samples.get(packed) == simdjson::SUCCESS) {
    uint64_t n = 0;
    dom::element value;
    if (packed.at_key("n").get(n) != simdjson::SUCCESS || n == 0 || n > kMostPacked) return false;
    if (packed.at_key("value").get(value) != simdjson::SUCCESS) return false;
    const std::optional<double> number = numberOf(value);
    if (number) out.insert(out.end(), n, *number);
    return number.has_value();
  }
  dom::array list;
  if (samples.get(list) != simdjson::SUCCESS) return false;
  out.reserve(out.size() + list.size());
  for (const dom::element item : list) {
    double value = 0;
    if (item.get_double().get(value) != simdjson::SUCCESS) {
      const std::optional<double> number = numberOf(item);
      if (!number) return false;
      value = *number;
    }
    out.push_back(value);
  }
  return true;
}

void StageReader::finishFigures() {
  for (size_t i = 0; i < usedSlots_; ++i) {
    Slot& slot = slots_[i];
    // Without a finite median there is nothing to compare; the node's own verdict is an error already.
    if (slot.samples.empty() || !slot.finite) continue;
    Figure figure;
    figure.key = slot.key;
    figure.device = slot.device;
    figure.n = static_cast<uint16_t>(std::min<size_t>(slot.samples.size(), 65535));
    if (spreads_)
      if (const double cv = summarize(slot.samples).cv; isFigure(cv)) figure.cv = static_cast<float>(cv);
    figure.median = figure.compared = static_cast<float>(medianOf(slot.samples));
    if (const auto stretch = slot.series == Series::kNone
                                 ? std::nullopt
                                 : worstStretch(slot.samples, slot.series, slot.direction, slot.window)) {
      const auto level = static_cast<float>(sustainedLevel(*stretch, slot.direction));
      figure.compared = slot.direction == Direction::kLower ? std::max(figure.median, level)
                                                            : std::min(figure.median, level);
    }
    node_->figures.push_back(figure);
  }
}

}  // namespace muster::fleet

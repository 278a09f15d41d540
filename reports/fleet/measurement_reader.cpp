// SPDX-License-Identifier: Apache-2.0
// See stage_reader.h: the measurements of a stage, as figures that nodes are compared by.
#include <algorithm>
#include <bit>

#include "reports/fleet/cause.h"
#include "reports/fleet/folded_rows.h"
#include "reports/fleet/label_list.h"
#include "reports/fleet/stage_reader.h"
#include "reports/model/sample_pack.h"
#include "runner/core/measurement.h"
#include "runner/core/units.h"

namespace muster::fleet {
namespace {

constexpr size_t kMostFaults = 1'000;  ///< of one stage; each failed verdict is held against all of them

/// Whether figures of this kind are compared between nodes. Counts and flags have limits of their own, and
/// shares that a plugin reports beside its figures say how they were measured. Power has no better side, but
/// its spread tells.
bool isCompared(std::string_view unit, Direction direction, bool informational) {
  if (unit == "count" || unit == "bool" || unit == "text") return false;
  if (unit == "ratio" && informational) return false;
  return direction != Direction::kNone || unit == "W";
}

/// What tells one measurement of a stage from all others. A verdict names the device of its rank where the
/// measurement names none, so the device counts only as far as it is a label.
uint64_t measurementId(std::string_view metric, std::string_view caseId, int64_t rank,
                       const LabelList& labels, std::string_view deviceLabel) {
  std::string key;
  for (const std::string_view part : {metric, caseId, labels.find("device").value_or(deviceLabel)})
    appendPart(key, part);
  labels.append(key, {"device"});
  return std::hash<std::string>()(key) * 31 + static_cast<uint64_t>(rank);
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
  int64_t rank = 0;
  bool deviceLabel = true;  ///< the device is a label too, which is left out
  LabelList labels;
  bool informational = false;
  int64_t attempt = 1;
  int64_t exponent = 0;
  dom::element samples;
  bool hasSamples = false;
  bool noted = false;     ///< in metrics_
  uint32_t key = kNoKey;  ///< of the figure, once it is known

  static constexpr uint32_t kNoKey = 0xffffffff;

  simdjson::error_code read(std::string_view name, const dom::element& value) {
    if (name == "samples") {
      samples = value;
      hasSamples = true;
      return simdjson::SUCCESS;
    }
    if (name == "device") return value.get(device);
    if (name == "text") return value.get(text);
    if (name == "rank") return value.get(rank);
    if (name == "device_label") return value.get(deviceLabel);
    if (name == "attempt") return value.get(attempt);
    if (name == "exponent") return value.get(exponent);
    if (name != "metric" && name != "unit" && name != "case" && name != "labels" && name != "peak" &&
        name != "direction" && name != "informational")
      return simdjson::SUCCESS;
    noted = false;
    key = kNoKey;
    if (name == "metric") return value.get(metric);
    if (name == "unit") return value.get(unit);
    if (name == "case") return value.get(caseId);
    if (name == "direction") return value.get(direction);
    if (name == "peak") return value.get(peak);
    if (name == "informational") return value.get(informational);
    return labels.read(value);
  }
};

void StageReader::readMeasurements(const dom::array& measurements, bool accepted) {
  usedSlots_ = 0;
  slotByKey_.clear();
  for (const dom::element item : measurements) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      failures_.fail("measurements", "holds something that is no object");
    if (failures_.ok()) readMeasurementGroup(object, accepted);
    if (!failures_.ok()) return;
  }
  finishFigures();
}

void StageReader::readMeasurementGroup(const dom::object& group, bool accepted) {
  Parts shared;
  const auto take = [&](Parts& parts, std::string_view key, const dom::element& value) {
    if (parts.read(key, value) != simdjson::SUCCESS)
      failures_.fail(key, "a measurement's field is of another type than wanted");
  };
  for (const auto& [key, value] : group) take(shared, key, value);
  FoldedRows rows(group, failures_);
  do {
    if (++measurements_ > limits_.measurements)
      failures_.fail("measurements",
                     fmt::format("the record holds more than {} measurements", limits_.measurements));
    if (!failures_.ok()) return;
    Parts parts = shared;
    rows.eachOwn([&](std::string_view key, const dom::element& value) { take(parts, key, value); });
    if (failures_.ok()) addMeasurement(parts, accepted);
    if (rows.hasColumn("metric") || rows.hasColumn("labels")) continue;
    shared.key = parts.key;
    shared.noted = parts.noted;
  } while (rows.next(failures_));
}

void StageReader::addMeasurement(Parts& parts, bool accepted) {
  if (parts.metric.empty() || !isBaseUnit(parts.unit))
    failures_.fail("measurements", fmt::format("the metric \"{}\" has the unit \"{}\", which is no base unit",
                                               printable(parts.metric, 80), printable(parts.unit, 40)));
  const auto direction = directionFromName(parts.direction.empty() ? "none" : parts.direction);
  if (!direction.ok()) failures_.fail("direction", direction.error().message);
  if (!failures_.ok()) return;
  countUnfolded(parts);
  if (!parts.noted && parts.metric.size() > kMostNameBytes)
    failures_.fail("metric", fmt::format("its name is longer than {} bytes", kMostNameBytes));
  if (!failures_.ok()) return;
  if (!parts.noted) metrics_[std::string(parts.metric)] = {*direction, std::string(parts.unit)};
  parts.noted = true;
  noteFirstFault(parts);
  hashMeasurement(parts);
  noteAsked(parts);
  if (!failures_.ok()) return;
  if (!isCompared(parts.unit, *direction, parts.informational)) return;
  if (parts.key == Parts::kNoKey) parts.key = figureKey(parts, *direction);
  addSamples(parts, accepted);
}

void StageReader::noteFirstFault(const Parts& parts) {
  if (!ofGroup_ || !parts.metric.ends_with(kFirstFault)) return;
  const std::optional<std::string> rank = sourceRank(parts.text);
  if (!rank) return;
  if (firstFaults_.size() >= kMostFaults)
    return failures_.fail("measurements", fmt::format("more than {} first faults", kMostFaults));
  const std::string_view stem = parts.metric.substr(0, parts.metric.size() - kFirstFault.size());
  firstFaults_.push_back({std::string(parts.device), std::string(parts.caseId), std::string(stem), *rank});
}

void StageReader::readExpectations(const dom::object& evidence) {
  asked_.clear();
  spans_.clear();
  judged_.clear();
  fleetMetrics_.clear();
  comparable_.clear();
  deferredOn_.clear();
  warnedDrops_.clear();
  dom::array expectations;
  if (!failures_.ok() || evidence.at_key("expectations").get(expectations) != simdjson::SUCCESS) return;
  if (expectations.size() > limits_.expectations)
    return failures_.fail("evidence.expectations",
                          fmt::format("the stage has more than {}", limits_.expectations));
  for (const dom::element item : expectations) {
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      return failures_.fail("evidence.expectations", "holds something that is no object");
    requireUniqueKeys(object, failures_);
    if (!failures_.ok()) return;
    std::string_view metric, kind, peers, severity;
    if (object["metric"].get(metric) != simdjson::SUCCESS || object["kind"].get(kind) != simdjson::SUCCESS)
      continue;
    if (kind == checkKindName(CheckKind::kWithin) && object["peers"].get(peers) == simdjson::SUCCESS &&
        peers == "fleet")
      fleetMetrics_.insert(metric);
    if (kind == checkKindName(CheckKind::kDropMax) && object["severity"].get(severity) == simdjson::SUCCESS &&
        severity == "warn")
      warnedDrops_.insert(metric);
  }
  if (accepted_) readAsked(expectations);
}

void StageReader::readAsked(const dom::array& expectations) {
  std::set<std::string> known;
  for (const dom::element item : expectations) {
    Asked asked;
    std::string_view kind;
    const bool about =
        item["metric"].get(asked.metric) == simdjson::SUCCESS && item["kind"].get(kind) == simdjson::SUCCESS;
    if (dom::element where; about && item["where"].get(where) == simdjson::SUCCESS)
      if (asked.where.read(where) != simdjson::SUCCESS)
        return failures_.fail("evidence.expectations", "where must be texts by name");
    asked.counts =
        known.insert(simdjson::minify(item)).second && about && kind != checkKindName(CheckKind::kDropMax);
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

void StageReader::noteAsked(const Parts& parts) {
  const bool ofFleet = fleetMetrics_.contains(parts.metric);
  if (asked_.empty() && !ofFleet) return;
  const std::string_view device = parts.deviceLabel ? parts.device : std::string_view();
  const auto concerns = [&](const Asked& asked) {
    return asked.counts && asked.metric == parts.metric && parts.labels.match(asked.where, device);
  };
  const bool asked = std::any_of(asked_.begin(), asked_.end(), concerns);
  if (!asked && !ofFleet) return;
  const uint64_t id = measurementId(parts.metric, parts.caseId, parts.rank, parts.labels, device);
  if (ofFleet) widen(comparable_[id], parts);
  if (!asked) return;
  const auto [at, fresh] = spans_.try_emplace(id);
  if (fresh)
    for (Asked& one : asked_) one.due += concerns(one) ? 1 : 0;
  widen(at->second, parts);
}

void StageReader::widen(Span& span, const Parts& parts) {
  if (!parts.hasSamples) return;
  scratch_.clear();
  if (!readSamples(parts.samples, scratch_))
    return failures_.fail("samples",
                          fmt::format("{} holds something that is no list of numbers", parts.metric));
  if (std::abs(parts.exponent) > kMostExponent) return;
  for (const double sample : scratch_) {
    const double value = scaledByTen(sample, static_cast<int>(parts.exponent));
    span.low = std::min(span.low, value);
    span.high = std::max(span.high, value);
  }
}

std::optional<uint64_t> StageReader::measurementOf(const FoldedRows& verdict) {
  LabelList labels;
  if (dom::element element; verdict.at_key("labels").get(element) == simdjson::SUCCESS)
    if (labels.read(element) != simdjson::SUCCESS) {
      failures_.fail("labels", "must be texts by name");
      return std::nullopt;
    }
  std::string_view metric, caseId, device;
  int64_t rank = -1;
  bool deviceLabel = true;
  const auto read = [&](const char* key, auto& value) {
    if (verdict.at_key(key).get(value) != simdjson::SUCCESS) value = {};
  };
  read("metric", metric);
  read("case", caseId);
  read("device", device);
  if (verdict.at_key("rank").get(rank) != simdjson::SUCCESS) rank = -1;
  if (verdict.at_key("device_label").get(deviceLabel) != simdjson::SUCCESS) deviceLabel = true;
  return measurementId(metric, caseId, rank, labels, deviceLabel ? device : std::string_view());
}

void StageReader::noteJudged(const FoldedRows& verdict, Outcome outcome, const dom::array& expectations) {
  uint64_t index = 0;
  if (asked_.empty() || verdict.at_key("expectation").get(index) != simdjson::SUCCESS ||
      index >= asked_.size())
    return;
  const std::optional<uint64_t> id = measurementOf(verdict);
  if (!id) return;
  const auto span = spans_.find(*id);
  if (span == spans_.end() || !judged_.insert({span->first, index}).second) return;
  ++asked_[index].judged;
  std::string_view kind;
  if (outcome != Outcome::kPass || expectations.at(index)["kind"].get(kind) != simdjson::SUCCESS ||
      kind == checkKindName(CheckKind::kCvMax) || kind == checkKindName(CheckKind::kDropMax))
    return;
  requireWithin(span->second, verdict, "passes");
}

/// Fails where the figure of a verdict is not within the samples of its measurement.
void StageReader::requireWithin(const Span& span, const FoldedRows& verdict, const char* outcome) {
  dom::element observed;
  if (verdict.at_key("observed").get(observed) != simdjson::SUCCESS) return;
  constexpr double kRounding = 1e-6;
  const double figure = numberOf(observed).value_or(std::numeric_limits<double>::quiet_NaN());
  if (figure >= span.low - kRounding * std::abs(span.low) &&
      figure <= span.high + kRounding * std::abs(span.high))
    return;
  std::string_view metric, device;
  if (verdict.at_key("metric").get(metric) != simdjson::SUCCESS) metric = {};
  if (verdict.at_key("device").get(device) != simdjson::SUCCESS) device = {};
  failures_.fail("verdicts", fmt::format("edited: {} of {} {} with {}, and its samples are {} to {}",
                                         printable(metric, 80), printable(device, 40), outcome, figure,
                                         span.low, span.high));
}

/// Fails where an expectation applies to more measurements than it has verdicts on.
void StageReader::checkAsked() {
  for (const Asked& asked : asked_)
    if (asked.counts && asked.judged < asked.due)
      return failures_.fail("verdicts", fmt::format("edited: {} was measured {} times and judged {} times",
                                                    printable(asked.metric, 80), asked.due, asked.judged));
}

/// The sum over all measurements, so that their order does not matter.
void StageReader::hashMeasurement(const Parts& parts) {
  uint64_t hash = 0;
  const auto mix = [&](uint64_t value) { hash = ((hash ^ value) * 0x9e3779b97f4a7c15u) ^ (hash >> 29); };
  const auto mixNumber = [&](const dom::element& element) {
    mix(std::bit_cast<uint64_t>(numberOf(element).value_or(0)));
  };
  for (const std::string_view part :
       {std::string_view(stage_), parts.metric, parts.caseId, parts.device, parts.unit, parts.text})
    mix(std::hash<std::string_view>()(part));
  mix(static_cast<uint64_t>(parts.attempt));
  mix(static_cast<uint64_t>(parts.exponent));
  if (dom::array list; parts.hasSamples && parts.samples.get(list) == simdjson::SUCCESS) {
    for (const dom::element item : list) mixNumber(item);
  } else if (dom::object packed; parts.hasSamples && parts.samples.get(packed) == simdjson::SUCCESS) {
    for (const auto& [key, value] : packed) mixNumber(value);
  }
  node_->samplesHash += hash;
}

uint32_t StageReader::figureKey(const Parts& parts, Direction direction) {
  std::string key;
  for (const std::string_view part : {std::string_view(stage_), parts.caseId, parts.metric, parts.unit})
    appendPart(key, part);
  parts.labels.append(key, {"device", "rank"});
  const auto at = knownKeys_.find(key);
  if (at != knownKeys_.end()) return at->second;
  const uint32_t number = names_.figures.number(key, [&] {
    return FigureKey{stage_,
                     std::string(parts.caseId),
                     std::string(parts.metric),
                     std::string(parts.unit),
                     parts.labels.without({"device", "rank"}),
                     direction,
                     parts.informational,
                     std::string(parts.peak)};
  });
  knownKeys_.emplace(std::move(key), number);
  return number;
}

StageReader::Slot& StageReader::slotOf(uint32_t key, int16_t device) {
  const uint64_t id = (static_cast<uint64_t>(key) << 16) | static_cast<uint16_t>(device);
  const auto [at, fresh] = slotByKey_.try_emplace(id, usedSlots_);
  if (!fresh) return slots_[at->second];
  if (usedSlots_ == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[usedSlots_++];
  slot.key = key;
  slot.device = device;
  slot.attempt = 1;
  slot.samples.clear();
  return slot;
}

void StageReader::addSamples(const Parts& parts, bool accepted) {
  if (!parts.hasSamples) return;
  const int16_t device = deviceIndex(parts.device);
  if (!failures_.ok()) return;
  const int attempt = static_cast<int>(std::clamp<int64_t>(parts.attempt, 1, 1'000'000));
  Slot& slot = slotOf(parts.key, device);
  if (attempt < slot.attempt) return;
  if (attempt > slot.attempt) slot.samples.clear();
  slot.attempt = attempt;
  const size_t before = slot.samples.size();
  if (!readSamples(parts.samples, slot.samples))
    return failures_.fail("samples",
                          fmt::format("{} holds something that is no list of numbers", parts.metric));
  if (std::abs(parts.exponent) > kMostExponent)
    return failures_.fail("exponent", fmt::format("{} is out of range", parts.exponent));
  for (size_t i = before; i < slot.samples.size(); ++i) {
    double& value = slot.samples[i];
    if (!std::isfinite(value) && accepted && !parts.informational)
      return failures_.fail("samples", fmt::format("{} of {} holds {}, yet the record says accepted",
                                                   printable(parts.metric, 80), printable(parts.device, 40),
                                                   std::isnan(value) ? "NaN" : "an infinity"));
    if (parts.exponent != 0) value = scaledByTen(value, static_cast<int>(parts.exponent));
  }
}

bool StageReader::readSamples(const dom::element& samples, std::vector<double>& out) {
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
  for (const dom::element item : list) {
    const std::optional<double> number = numberOf(item);
    if (!number) return false;
    out.push_back(*number);
  }
  return true;
}

void StageReader::finishFigures() {
  for (size_t i = 0; i < usedSlots_; ++i) {
    const Slot& slot = slots_[i];
    const Summary summary = summarize(slot.samples);
    // Without a finite median there is nothing to compare; the node's own verdict is an error already.
    if (!std::isfinite(summary.median)) continue;
    Figure figure;
    figure.key = slot.key;
    figure.device = slot.device;
    figure.n = static_cast<uint16_t>(std::min<size_t>(slot.samples.size(), 65535));
    figure.median = static_cast<float>(summary.median);
    figure.cv = std::isfinite(summary.cv) ? static_cast<float>(summary.cv) : 0;
    node_->figures.push_back(figure);
  }
}

}  // namespace muster::fleet

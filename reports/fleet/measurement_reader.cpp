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

/// Whether figures of this kind are compared between nodes. Counts and flags have limits of their own, and
/// shares that a plugin reports beside its figures say how they were measured. Power has no better side, but
/// its spread tells.
bool isCompared(std::string_view unit, Direction direction, bool informational) {
  if (unit == "count" || unit == "bool" || unit == "text") return false;
  if (unit == "ratio" && informational) return false;
  return direction != Direction::kNone || unit == "W";
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
  if (!parts.noted) metrics_[std::string(parts.metric)] = {*direction, std::string(parts.unit)};
  parts.noted = true;
  noteFirstFault(parts);
  hashMeasurement(parts);
  if (!isCompared(parts.unit, *direction, parts.informational)) return;
  if (parts.key == Parts::kNoKey) parts.key = figureKey(parts, *direction);
  addSamples(parts, accepted);
}

void StageReader::noteFirstFault(const Parts& parts) {
  if (!ofGroup_ || !parts.metric.ends_with(kFirstFault)) return;
  const std::optional<std::string> rank = sourceRank(parts.text);
  if (!rank) return;
  const std::string_view stem = parts.metric.substr(0, parts.metric.size() - kFirstFault.size());
  firstFaults_.push_back({std::string(parts.device), std::string(parts.caseId), std::string(stem), *rank});
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
  samples_ += slot.samples.size() - before;
  if (samples_ > limits_.samples)
    return failures_.fail("samples", fmt::format("the record holds more than {} samples", limits_.samples));
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

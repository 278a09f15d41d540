// SPDX-License-Identifier: Apache-2.0
// See stage_reader.h: the stage itself and its measurements. Verdicts are in verdict_reader.cpp.
#include "reports/fleet/stage_reader.h"

#include <algorithm>

#include "reports/fleet/label_list.h"
#include "reports/model/record_check.h"
#include "runner/core/measurement.h"
#include "runner/core/units.h"

namespace muster::fleet {
namespace {

constexpr size_t kReasonBytes = 300;
constexpr size_t kNameBytes = 200;

/// Whether figures of this kind are compared between nodes. Counts and flags have limits of their own, and
/// shares that a plugin reports beside its figures say how they were measured. Power has no better side, but
/// its spread tells.
bool isCompared(std::string_view unit, Direction direction, bool informational) {
  if (unit == "count" || unit == "bool" || unit == "text") return false;
  if (unit == "ratio" && informational) return false;
  return direction != Direction::kNone || unit == "W";
}

Direction directionOf(std::string_view name, Failures& failures) {
  const auto direction = directionFromName(name);
  if (!direction.ok()) failures.fail("direction", direction.error().message);
  return direction.ok() ? *direction : Direction::kNone;
}

}  // namespace

struct StageReader::Parts {
  std::string_view metric;
  std::string_view unit;
  std::string_view caseId;
  std::string_view device;
  std::string_view peak;
  LabelList labels;
  Direction direction = Direction::kNone;
  bool informational = false;
  int attempt = 1;
  dom::array samples;
  bool hasSamples = false;
};

uint32_t StageReader::text(std::string_view text) {
  const auto at = knownTexts_.find(std::string(text));
  if (at != knownTexts_.end()) return at->second;
  const uint32_t number = names_.text(text);
  knownTexts_.emplace(text, number);
  return number;
}

void StageReader::begin(NodeSummary& node) {
  node_ = &node;
  counted_ = {};
  waivers_.begin(node);
  flakyAllowed_ = true;
  measurements_ = verdicts_ = 0;
  // Serial numbers and other texts of one record alone must not gather here for the whole fleet.
  constexpr size_t kMostKnown = 50'000;
  if (knownTexts_.size() > kMostKnown) knownTexts_.clear();
  if (knownKeys_.size() > kMostKnown) knownKeys_.clear();
}

void StageReader::read(const dom::object& stage, bool accepted) {
  failures_.at(fmt::format("stages[{}]", node_->stages.size()));
  Fields fields(stage, failures_);
  StageSummary summary;
  stage_ = fields.text("name");
  if (stage_.empty() || stage_.size() > kNameBytes || stage_.find_first_of("/\\") != std::string::npos)
    failures_.fail("name", fmt::format("\"{}\" is no name of a stage", printable(stage_, 80)));
  stageNumber_ = summary.name = text(stage_);
  summary.scope = fields.text("scope");
  summary.state = fields.text("state");
  summary.reason = bounded(fields.text("reason"), kReasonBytes);
  summary.required = fields.flag("required");
  const auto outcome = outcomeFromName(fields.text("outcome"));
  if (outcome.ok())
    summary.outcome = *outcome;
  else
    failures_.fail("outcome", outcome.error().message);
  waivers_.beginStage(stage_, summary.state == "ran");
  readGroup(stage, summary);
  checkArtifacts(fields.array("artifacts"));
  metrics_.clear();
  readMeasurements(fields.array("measurements"), accepted);
  dom::array expectations;
  const dom::object evidence = fields.object("evidence");
  if (failures_.ok()) {
    // Without expectations no verdict may point at one: readVerdict says so.
    const auto missing = evidence.at_key("expectations").get(expectations);
    if (missing == simdjson::SUCCESS || missing == simdjson::NO_SUCH_FIELD)
      readVerdicts(fields.array("verdicts"), expectations, summary);
    else
      failures_.fail("evidence.expectations", "must be a list");
  }
  settleStage(evidence, summary);
  node_->stages.push_back(std::move(summary));
}

void StageReader::settleStage(const dom::object& evidence, StageSummary& summary) {
  if (!failures_.ok()) return;
  bool allowed = false;
  if (summary.accounting.of(Outcome::kFlaky) > 0 &&
      (evidence.at_key("allow_flaky").get(allowed) != simdjson::SUCCESS || !allowed))
    flakyAllowed_ = false;
  if (!waivers_.concernsStage()) return;
  summary.outcome = Outcome::kPass;
  for (int i = kOutcomeCount - 1; i >= 0; --i)
    if (summary.accounting.counts[i] > 0) summary.outcome = static_cast<Outcome>(i);
}

void StageReader::readGroup(const dom::object& stage, StageSummary& summary) {
  dom::object group;
  if (stage.at_key("group").get(group) != simdjson::SUCCESS) return;
  Fields fields(group, failures_);
  summary.worldSize = fields.count("world_size");
  summary.groupNodes = fields.count("nodes");
  summary.culprit = bounded(fields.text("culprit"), kReasonBytes);
}

void StageReader::checkArtifacts(const dom::array& artifacts) {
  for (const dom::element item : artifacts) {
    std::string_view path;
    if (item["path"].get(path) != simdjson::SUCCESS)
      failures_.fail("artifacts", "holds an artifact without a path");
    else if (!isSafeRelativePath(path))
      failures_.fail("artifacts",
                     fmt::format("the path \"{}\" leaves the record's folder", printable(path, 80)));
    if (!failures_.ok()) return;
  }
}

void StageReader::readMeasurements(const dom::array& measurements, bool accepted) {
  usedSlots_ = 0;
  slotByKey_.clear();
  for (const dom::element item : measurements) {
    if (++measurements_ > limits_.measurements)
      failures_.fail("measurements",
                     fmt::format("the record holds more than {} measurements", limits_.measurements));
    dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      failures_.fail("measurements", "holds something that is no object");
    Parts parts;
    if (!failures_.ok() || !readMeasurement(object, parts)) return;
    if (isCompared(parts.unit, parts.direction, parts.informational)) addSamples(parts, accepted);
    if (!failures_.ok()) return;
  }
  finishFigures();
}

bool StageReader::readMeasurement(const dom::object& object, Parts& parts) {
  std::string_view direction;
  for (const auto& [key, value] : object) {
    auto error = simdjson::SUCCESS;
    int64_t attempt = 1;
    if (key == "metric")
      error = value.get(parts.metric);
    else if (key == "unit")
      error = value.get(parts.unit);
    else if (key == "case")
      error = value.get(parts.caseId);
    else if (key == "device")
      error = value.get(parts.device);
    else if (key == "direction")
      error = value.get(direction);
    else if (key == "peak")
      error = value.get(parts.peak);
    else if (key == "informational")
      error = value.get(parts.informational);
    else if (key == "labels")
      error = parts.labels.read(value);
    else if (key == "samples") {
      error = value.get(parts.samples);
      parts.hasSamples = true;
    } else if (key == "attempt") {
      error = value.get(attempt);
      parts.attempt = static_cast<int>(std::clamp<int64_t>(attempt, 1, 1'000'000));
    }
    if (error != simdjson::SUCCESS)
      failures_.fail(key, "a measurement's field is of another type than wanted");
  }
  if (parts.metric.empty() || !isBaseUnit(parts.unit))
    failures_.fail("measurements", fmt::format("the metric \"{}\" has the unit \"{}\", which is no base unit",
                                               printable(parts.metric, 80), printable(parts.unit, 40)));
  if (!direction.empty()) parts.direction = directionOf(direction, failures_);
  if (failures_.ok()) metrics_[std::string(parts.metric)] = {parts.direction, std::string(parts.unit)};
  return failures_.ok();
}

uint32_t StageReader::figureKey(const Parts& parts) {
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
                     parts.direction,
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
  Slot& slot = slotOf(figureKey(parts), device);
  if (parts.attempt < slot.attempt) return;
  if (parts.attempt > slot.attempt) slot.samples.clear();
  slot.attempt = parts.attempt;
  for (const dom::element item : parts.samples) {
    const std::optional<double> value = numberOf(item);
    if (!value)
      return failures_.fail("samples", fmt::format("{} holds something that is no number", parts.metric));
    if (!std::isfinite(*value) && accepted && !parts.informational)
      return failures_.fail("samples", fmt::format("{} of {} holds {}, yet the record says accepted",
                                                   printable(parts.metric, 80), printable(parts.device, 40),
                                                   std::isnan(*value) ? "NaN" : "an infinity"));
    slot.samples.push_back(*value);
  }
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

int16_t StageReader::deviceIndex(std::string_view id) {
  if (id.empty()) return -1;
  for (size_t i = 0; i < node_->devices.size(); ++i)
    if (node_->devices[i].id == id) return static_cast<int16_t>(i);
  if (node_->devices.size() >= limits_.devices) {
    failures_.fail("device", fmt::format("the record names more than {} devices", limits_.devices));
    return -1;
  }
  // A device that the inventory does not list (a NUMA node, an HCA): still one of its own.
  DeviceIdentity device;
  device.id = bounded(id, kNameBytes);
  device.kind = "other";
  node_->devices.push_back(std::move(device));
  return static_cast<int16_t>(node_->devices.size() - 1);
}

}  // namespace muster::fleet

// SPDX-License-Identifier: Apache-2.0
// Writes one stage as a step of an OCP stream.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "reports/formats/ocp_stream.h"
#include "runner/core/json.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/record_check.h"

namespace muster {
namespace {

/// Bytes of the validators of one stage's texts. Each measurement has its own copy, and a record may hold
/// many of both.
constexpr size_t kMostValidatorBytes = 16u << 20;

/// What the verdicts of one measurement have in common: metric, case, device and labels.
using Subject = std::tuple<std::string, std::string, std::string, Labels>;

struct TextValidators {
  Json list = Json::array();
  std::set<std::string> known = {};  ///< of the list
  size_t bytes = 0;
};

/// What the writers of one step share.
struct Step {
  OcpStream& stream;
  const StageRecord& stage;
  std::string id;
  const std::set<std::string>& parts;  ///< ids of the inventory's devices
  std::map<Subject, TextValidators> validators = {};
  size_t keptBytes = 0;       ///< of them
  size_t validatorBytes = 0;  ///< in all measurements so far
  size_t series = 0;

  /// What the limit cannot leave out.
  void frame(double at, const char* kind, const Json& value) { stream.step(at, id, kind, value); }
  template <typename F>
  bool add(Weight weight, double at, const char* kind, F make) {
    return stream.add(weight, at, &id, kind, make);
  }
  [[nodiscard]] double end() const { return stage.started + stage.duration; }

  /// Names the device: one of the inventory by its id there, another one by its name alone.
  void name(const std::string& device, Json& value) const {
    if (device.empty()) return;
    if (parts.count(device) > 0)
      value["hardwareInfoId"] = device;
    else
      value["subcomponent"] = {{"name", device}};
  }
};

/// A text as a regular expression that matches it alone.
std::string literal(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
    out += plain ? std::string(1, c) : std::string("\\") + c;
  }
  return out;
}

/// Whether the limit is the least value that meets it; of a range it is the nearer end.
bool isLeast(const Verdict& verdict) {
  switch (verdict.expectation->kind) {
    case CheckKind::kMin:
    case CheckKind::kOfPeak:
      return true;
    case CheckKind::kMax:
    case CheckKind::kCvMax:
    case CheckKind::kDropMax:
      return false;
    default:
      if (verdict.limitText.starts_with("at least")) return true;
      if (verdict.limitText.starts_with("at most")) return false;
      return (verdict.observed >= verdict.limit) == (verdict.margin >= 0);
  }
}

Json validator(const char* type, const Json& value, const Verdict& verdict) {
  return {{"type", type}, {"value", value}, {"name", wantedText(verdict)}};
}

/// The limit of a number; none where it is no single number.
Json numberValidators(const Verdict& verdict) {
  Json list = Json::array();
  if (!std::isfinite(verdict.limit) || verdict.expectation->kind == CheckKind::kPredicate) return list;
  const CheckKind kind = verdict.expectation->kind;
  const char* type = kind == CheckKind::kEquals || kind == CheckKind::kOneOf ? "EQUAL"
                     : isLeast(verdict)                                      ? "GREATER_THAN_OR_EQUAL"
                                                                             : "LESS_THAN_OR_EQUAL";
  list.push_back(validator(type, verdict.limit, verdict));
  return list;
}

/// The words or values that are allowed of a text.
Json textValidators(const Verdict& verdict) {
  Json list = Json::array();
  const Expectation& e = *verdict.expectation;
  if (e.kind == CheckKind::kEquals || e.kind == CheckKind::kOneOf) {
    std::vector<std::string> choices;
    for (const std::string& text : e.allowed) choices.push_back(literal(text));
    list.push_back(validator("REGEX_MATCH", "^(" + join(choices, "|") + ")$", verdict));
  } else if (e.kind == CheckKind::kContains || e.kind == CheckKind::kExcludes) {
    const char* type = e.kind == CheckKind::kContains ? "REGEX_MATCH" : "REGEX_NO_MATCH";
    for (const std::string& word : e.allowed)
      list.push_back(validator(type, fmt::format("(^|\\W){}(\\W|$)", literal(word)), verdict));
  }
  return list;
}

/// Those of a requirement that other verdicts of the same subject (other ranks') have too stand there once.
void addTextValidators(Step& step, const Verdict& verdict) {
  if (!verdict.expectation || step.stream.limit().isFull(Weight::kBulk)) return;
  const Json list = textValidators(verdict);
  if (list.empty()) return;
  TextValidators& all = step.validators[{verdict.metric, verdict.caseId, verdict.device, verdict.labels}];
  for (const Json& one : list) {
    std::string text = dumpJson(one);
    if (step.keptBytes + text.size() > kMostValidatorBytes || all.known.contains(text)) continue;
    step.keptBytes += text.size();
    all.bytes += text.size();
    all.known.insert(std::move(text));
    all.list.push_back(one);
  }
}

Json metadataOf(const Measurement& m) {
  return {{"case", m.caseId},     {"labels", Json(m.labels)}, {"rank", m.rank},
          {"attempt", m.attempt}, {"repeat", m.repeat},       {"direction", directionName(m.direction)}};
}

Json textJson(Step& step, const Measurement& m) {
  Json value = {{"name", m.metric}, {"value", m.text}, {"metadata", metadataOf(m)}};
  const auto validators = step.validators.find({m.metric, m.caseId, m.device, m.labels});
  if (validators != step.validators.end() && step.validatorBytes <= kMostValidatorBytes) {
    value["validators"] = validators->second.list;
    step.validatorBytes += validators->second.bytes;
  }
  step.name(m.device, value);
  return value;
}

void addText(Step& step, const Measurement& m) {
  step.add(Weight::kBulk, step.end(), "measurement", [&] { return textJson(step, m); });
}

/// A series of values, each at its time, that `start` describes. Of one that the limit cuts, the values that
/// are there count.
template <typename Start, typename TimeOf>
void addSeries(Step& step, const std::vector<double>& values, Start start, TimeOf timeOf) {
  const std::string id = fmt::format("s{}", step.series++);
  const bool begins = step.add(Weight::kBulk, step.stage.started, "measurementSeriesStart", [&] {
    Json json = start();
    json["measurementSeriesId"] = id;
    return json;
  });
  if (!begins) return step.stream.limit().leaveOut(values.size() + 1);
  size_t there = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double at = step.stage.started + timeOf(i);
    there += step.add(Weight::kBulk, at, "measurementSeriesElement", [&] {
      return Json{{"index", i},
                  {"value", numberToJson(values[i])},
                  {"timestamp", ocpTime(at)},
                  {"measurementSeriesId", id}};
    });
  }
  step.frame(step.end(), "measurementSeriesEnd", {{"measurementSeriesId", id}, {"totalCount", there}});
}

/// Samples have times of their own only as windows of equal length; all others have that of their stage.
void addSamples(Step& step, const Measurement& m) {
  const auto start = [&] {
    Json json = {{"name", m.metric}, {"unit", m.unit}, {"metadata", metadataOf(m)}};
    step.name(m.device, json);
    return json;
  };
  const double window = m.series == Series::kWindows ? m.window : 0;
  addSeries(step, m.samples, start, [&](size_t i) { return window * static_cast<double>(i); });
}

void addReadings(Step& step, const TelemetrySeries& series) {
  const auto start = [&] {
    Json json = {{"name", series.metric}, {"unit", series.unit}};
    step.name(series.device, json);
    return json;
  };
  addSeries(step, series.value, start, [&](size_t i) { return i < series.time.size() ? series.time[i] : 0; });
}

/// What is compared of a measurement: "median", or a share that its samples have among themselves.
std::string statisticOf(const Expectation& e) {
  return e.kind == CheckKind::kCvMax     ? "coefficient of variation"
         : e.kind == CheckKind::kDropMax ? "drop"
                                         : e.statistic;
}

/// The value that was compared, with its limit: the validator holds exactly if the requirement was met.
Json comparedJson(Step& step, const Verdict& verdict) {
  const Expectation& e = *verdict.expectation;
  Json value = {{"name", fmt::format("{} ({})", verdict.metric, statisticOf(e))},
                {"value", verdict.observed},
                {"unit", e.comparesStability() ? "ratio" : e.unit},
                {"metadata",
                 {{"case", verdict.caseId},
                  {"labels", Json(verdict.labels)},
                  {"source", e.source},
                  {"measured", verdict.observedText}}}};
  if (Json validators = numberValidators(verdict); !validators.empty()) value["validators"] = validators;
  step.name(verdict.device, value);
  return value;
}

const char* diagnosisType(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
    case Outcome::kWarn:
      return "PASS";
    case Outcome::kFail:
    case Outcome::kFlaky:
    case Outcome::kWaived:
      return "FAIL";
    default:
      return "UNKNOWN";
  }
}

/// What the specification has no word for.
Json extensionJson(const Verdict& verdict) {
  Json content = {{"metric", verdict.metric},
                  {"case", verdict.caseId},
                  {"device", verdict.device},
                  {"required", verdict.required},
                  {"detail", verdict.detail}};
  for (const AttemptOutcome& attempt : verdict.attempts)
    content["attempts"].push_back({{"attempt", attempt.attempt}, {"outcome", outcomeName(attempt.outcome)}});
  return {{"name", fmt::format("muster.{}", outcomeName(verdict.outcome))}, {"content", content}};
}

Json diagnosisJson(const Step& step, const Verdict& verdict) {
  const std::string about = verdict.metric.empty() ? step.stage.name : verdict.metric;
  Json diagnosis = {{"verdict", fmt::format("{} {}", about, outcomeName(verdict.outcome))},
                    {"type", diagnosisType(outcomeWithoutFlaky(step.stage, verdict))}};
  if (!verdict.detail.empty()) diagnosis["message"] = verdict.detail;
  step.name(verdict.device, diagnosis);
  return diagnosis;
}

void addVerdict(Step& step, const Verdict& verdict) {
  const auto add = [&](const char* kind, const auto& make) {
    step.add(weightOf(verdict.outcome), step.end(), kind, make);
  };
  if (verdict.expectation && std::isfinite(verdict.observed))
    add("measurement", [&] { return comparedJson(step, verdict); });
  add("diagnosis", [&] { return diagnosisJson(step, verdict); });
  if (verdict.outcome == Outcome::kError)
    add("error", [&] { return Json{{"symptom", "not-measured"}, {"message", verdict.detail}}; });
  else if (verdict.outcome != Outcome::kPass && verdict.outcome != Outcome::kFail)
    add("extension", [&] { return extensionJson(verdict); });
}

void addProcesses(Step& step) {
  const auto add = [&](const char* kind, const auto& make) {
    step.add(Weight::kFinding, step.end(), kind, make);
  };
  for (const RankRecord& rank : step.stage.ranks)
    if (!rank.error.empty())
      add("error", [&] {
        return Json{{"symptom", fmt::format("rank-{}", nameOf(rank.state))},
                    {"message", fmt::format("rank {} {}: {}", rank.rank, rank.device, rank.error)}};
      });
  for (const std::string& line : step.stage.log)
    add("log", [&] { return Json{{"severity", "WARNING"}, {"message", line}}; });
  for (const ArtifactRecord& file : step.stage.artifacts)
    add("file", [&] {
      return Json{{"displayName", file.name},
                  {"uri", file.path},
                  {"isSnapshot", true},
                  {"contentType", file.mediaType},
                  {"metadata", {{"sha256", file.sha256}, {"bytes", file.bytes}}}};
    });
}

const char* statusOf(const StageRecord& stage) {
  if (stage.state == StageState::kError || stage.outcome == Outcome::kError) return "ERROR";
  return stage.state == StageState::kRan ? "COMPLETE" : "SKIP";
}

}  // namespace

void addOcpStage(OcpStream& stream, const Record& record, size_t index, const std::set<std::string>& parts) {
  const StageRecord& stage = record.stages[index];
  Step step{stream, stage, std::to_string(index), parts};
  TextLimit& limit = stream.limit();
  const size_t leftOut = limit.leftOut();
  for (const Verdict& verdict : stage.verdicts) addTextValidators(step, verdict);
  step.frame(stage.started, "testStepStart", {{"name", stage.name}});
  for (const Measurement& m : stage.measurements) m.isText() ? addText(step, m) : addSamples(step, m);
  for (const TelemetrySeries& series : stage.telemetry) addReadings(step, series);
  for (const Verdict& verdict : stage.verdicts) addVerdict(step, verdict);
  addProcesses(step);
  if (limit.leftOut() > leftOut)
    step.frame(step.end(), "log",
               {{"severity", "ERROR"}, {"message", TextLimit::noteOf(limit.leftOut() - leftOut)}});
  step.frame(step.end(), "testStepEnd", {{"status", statusOf(stage)}});
}

}  // namespace muster

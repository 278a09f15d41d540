// SPDX-License-Identifier: Apache-2.0
// Streams of OCP Test & Validation 2.0. Values that carry Muster's metadata (`muster report --format ocp`)
// are its measurements again; a step of another program counts by its diagnoses, so it can reject a node and
// never accept one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

constexpr size_t kMostStreamCases = 1'000;  // and steps

struct Series {
  Measurement start;
  bool imported = false;
  bool ended = false;
};

/// What is told of one diagnosed part.
struct Diagnosis {
  std::string device, verdict;
  bool passed = false;
};

struct Step {
  std::string name, error;
  bool ended = false;
  std::map<std::string, Series> series;
  std::vector<Measurement> values;
  std::set<std::string> identities;  ///< of these values
  std::vector<Diagnosis> diagnoses;
  size_t others = 0;  ///< values without Muster's metadata
};

struct Stream {
  std::string name, version, status, result, error;
  std::map<std::string, std::string> hardware;  ///< id -> name
  std::map<std::string, Step> steps;            ///< by id
  bool started = false, ended = false;
  double sequence = -1;
  size_t results = 0;  ///< values and diagnoses of all steps
};

std::string textIn(const Json& json, const char* key) {
  return holds(json, key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

void note(std::string& first, const std::string& error) {
  if (first.empty()) first = printable(error, 300);
}

/// "gpu3", by its hardware id or the name of a part.
std::string deviceOf(const Json& json) {
  const std::string id = textIn(json, "hardwareInfoId");
  return id.empty() && holds(json, "subcomponent") ? textIn(json["subcomponent"], "name") : id;
}

/// The measurement that a value or series is, without its samples; nothing without Muster's metadata.
Result<std::optional<Measurement>> measurementOf(const Json& json) {
  std::optional<Measurement> none;
  if (!holds(json, "metadata") || !holds(json["metadata"], "case") || !holds(json["metadata"], "rank"))
    return none;
  Measurement m;
  JsonReader r(json, "measurement");
  r.read("name", m.metric);
  m.unit = "text";
  r.optional("unit", m.unit);
  JsonReader metadata(json["metadata"], "measurement.metadata");
  metadata.read("case", m.caseId);
  metadata.read("rank", m.rank);
  metadata.read("labels", m.labels);
  metadata.optional("attempt", m.attempt);  // judged as one whose end is not known, unless it is the first
  metadata.optional("repeat", m.repeat);
  MUSTER_CHECK_OK(r.status());
  MUSTER_CHECK_OK(metadata.status());
  if (m.rank < -1 || m.attempt < 1 || m.repeat < 0)
    return Error{ErrorCode::kUsage, "is no rank, attempt or repeat", "measurement.metadata"};
  m.device = deviceOf(json);
  return std::optional<Measurement>(std::move(m));
}

/// A value is there once: the samples of two would be judged by their median.
Status keep(Measurement m, const char* kind, Step& step) {
  const Json identity = {m.metric, m.caseId, m.rank, m.device, m.labels, m.attempt, m.repeat};
  if (!step.identities.insert(dumpJson(identity)).second)
    return Error{ErrorCode::kUsage,
                 "is a second value of " + printable(m.metric + " " + labelsText(m.labels), 200), kind};
  step.values.push_back(std::move(m));
  return {};
}

Status takeValue(const Json& json, Step& step) {
  MUSTER_TRY(std::optional<Measurement> m, measurementOf(json));
  if (!m) {
    ++step.others;
    return {};
  }
  JsonReader r(json, "measurement");
  if (m->isText()) {
    r.read("value", m->text);
  } else {
    m->samples.resize(1);
    r.read("value", m->samples.front());
    if (r.ok() && !std::isfinite(m->samples.front()))
      return Error{ErrorCode::kUsage, "is no finite number", "measurement.value"};
  }
  MUSTER_CHECK_OK(r.status());
  return keep(std::move(*m), "measurement", step);
}

Status beginSeries(const Json& json, Step& step) {
  JsonReader r(json, "measurementSeriesStart");
  std::string id;
  r.read("measurementSeriesId", id);
  MUSTER_CHECK_OK(r.status());
  MUSTER_TRY(std::optional<Measurement> m, measurementOf(json));
  Series series;
  series.imported = m.has_value() && !m->isText();
  if (m) series.start = std::move(*m);
  step.others += series.imported ? 0 : 1;
  if (!step.series.emplace(id, std::move(series)).second)
    return Error{ErrorCode::kUsage, "is a second series of this id", "measurementSeriesStart"};
  return {};
}

Result<Series*> openSeries(const Json& json, Step& step, const char* kind) {
  JsonReader r(json, kind);
  std::string id;
  r.read("measurementSeriesId", id);
  MUSTER_CHECK_OK(r.status());
  const auto at = step.series.find(id);
  if (at == step.series.end() || at->second.ended)
    return Error{ErrorCode::kUsage, "is of no series that has begun", kind};
  return &at->second;
}

Status addElement(const Json& json, Step& step) {
  constexpr const char* kKind = "measurementSeriesElement";
  MUSTER_TRY(Series * series, openSeries(json, step, kKind));
  JsonReader r(json, kKind);
  double value = 0;
  uint64_t index = 0;
  r.read("index", index);
  if (series->imported) r.read("value", value);
  MUSTER_CHECK_OK(r.status());
  if (!std::isfinite(value))
    return Error{ErrorCode::kUsage, "is no finite number", std::string(kKind) + ".value"};
  if (index != series->start.samples.size())
    return Error{ErrorCode::kUsage,
                 fmt::format("is {}; expected {}: elements are missing", index, series->start.samples.size()),
                 std::string(kKind) + ".index"};
  series->start.samples.push_back(value);
  return {};
}

Status endSeries(const Json& json, Step& step) {
  constexpr const char* kKind = "measurementSeriesEnd";
  MUSTER_TRY(Series * series, openSeries(json, step, kKind));
  JsonReader r(json, kKind);
  uint64_t count = 0;
  r.read("totalCount", count);
  MUSTER_CHECK_OK(r.status());
  if (count != series->start.samples.size())
    return Error{ErrorCode::kUsage,
                 fmt::format("is {}; the series has {} elements", count, series->start.samples.size()),
                 std::string(kKind) + ".totalCount"};
  series->ended = true;
  if (!series->imported || series->start.samples.empty()) return {};
  return keep(std::move(series->start), kKind, step);
}

Status takeDiagnosis(const Json& json, Step& step, ImportedFile& file) {
  JsonReader r(json, "diagnosis");
  Diagnosis diagnosis{deviceOf(json), "", false};
  std::string type;
  r.read("verdict", diagnosis.verdict);
  r.read("type", type);
  MUSTER_CHECK_OK(r.status());
  diagnosis.passed = type == "PASS";
  file.failures += type == "FAIL" ? 1 : 0;
  if (type != "PASS" && type != "FAIL")
    note(step.error, "its diagnosis " + diagnosis.verdict + " is " + type);
  step.diagnoses.push_back(std::move(diagnosis));
  return {};
}

void takeError(const Json& json, std::string& error) {
  note(error, "the stream holds an error: " + textIn(json, "symptom") + " " + textIn(json, "message"));
}

void takeLog(const Json& json, std::string& error) {
  const std::string severity = textIn(json, "severity");
  if (severity == "ERROR" || severity == "FATAL")
    note(error, "the log holds an error: " + textIn(json, "message"));
}

Status takeOfStep(const Json& json, const std::string& kind, Step& step, ImportedFile& file) {
  if (kind == "measurement") return takeValue(json, step);
  if (kind == "measurementSeriesStart") return beginSeries(json, step);
  if (kind == "measurementSeriesElement") return addElement(json, step);
  if (kind == "measurementSeriesEnd") return endSeries(json, step);
  if (kind == "diagnosis") return takeDiagnosis(json, step, file);
  if (kind == "error") takeError(json, step.error);
  if (kind == "log") takeLog(json, step.error);
  if (kind != "testStepEnd") return {};
  step.ended = true;
  if (const std::string status = textIn(json, "status"); status != "COMPLETE")
    note(step.error, "the step ended as " + status);
  return {};
}

/// The one artifact that the object holds, besides its other keys.
Result<std::pair<std::string, const Json*>> artifactIn(const Json& json) {
  std::optional<std::pair<std::string, const Json*>> found;
  if (json.is_object())
    for (const auto& [key, value] : json.items()) {
      if (!value.is_object()) continue;
      if (found) return Error{ErrorCode::kUsage, "holds two artifacts", key};
      found = {key, &value};
    }
  if (!found) return Error{ErrorCode::kUsage, "holds no artifact", ""};
  return std::move(*found);
}

Status stepArtifact(const Json& json, Stream& stream, ImportedFile& file) {
  JsonReader r(json, "testStepArtifact");
  std::string id;
  r.read("testStepId", id);
  MUSTER_CHECK_OK(r.status());
  MUSTER_TRY(const auto artifact, artifactIn(json));
  const auto& [kind, content] = artifact;
  if (kind == "testStepStart") {
    if (stream.steps.size() >= kMostStreamCases)
      return Error{ErrorCode::kUsage, "is one of too many steps", "testStepId"};
    if (!stream.steps.emplace(id, Step{}).second)
      return Error{ErrorCode::kUsage, "is a second step of this id", "testStepId"};
    stream.steps[id].name = printable(textIn(*content, "name"), 80);
    return {};
  }
  const auto step = stream.steps.find(id);
  if (step == stream.steps.end() || step->second.ended)
    return Error{ErrorCode::kUsage, "is of no step that is running", "testStepId"};
  const auto resultsOf = [](const Step& of) { return of.values.size() + of.diagnoses.size(); };
  stream.results -= resultsOf(step->second);
  MUSTER_CHECK_OK(takeOfStep(*content, kind, step->second, file));
  stream.results += resultsOf(step->second);
  return checkCounts(stream.results, stream.steps.size());
}

/// Simulated and imported values are no evidence, whatever the stream says.
void readMarks(const Json& dut, std::string& error) {
  if (!holds(dut, "metadata") || !holds(dut["metadata"], "marks")) return;
  for (const Json& mark : dut["metadata"]["marks"])
    if (mark.is_string() &&
        (mark.get<std::string>().starts_with("SIMULATED") || mark.get<std::string>().starts_with("IMPORTED")))
      note(error, "no evidence of its own: " + mark.get<std::string>());
}

void startRun(const Json& json, Stream& stream, ImportedFile& file) {
  stream.started = true;
  stream.name = textIn(json, "name");
  stream.version = textIn(json, "version");
  if (!holds(json, "dutInfo")) return;
  const Json& dut = json["dutInfo"];
  readMarks(dut, stream.error);
  if (const std::string name = textIn(dut, "name"); !name.empty()) addOnce(file.hosts, printable(name, 200));
  if (holds(dut, "hardwareInfos"))
    for (const Json& part : dut["hardwareInfos"])
      stream.hardware[textIn(part, "hardwareInfoId")] = textIn(part, "name");
}

Status runArtifact(const Json& json, Stream& stream, ImportedFile& file) {
  MUSTER_TRY(const auto artifact, artifactIn(json));
  const auto& [kind, content] = artifact;
  if (stream.ended || (kind == "testRunStart") == stream.started)
    return Error{ErrorCode::kUsage, "is outside of the one run that a file holds", kind};
  if (kind == "testRunStart") startRun(*content, stream, file);
  if (kind == "error") takeError(*content, stream.error);
  if (kind == "log") takeLog(*content, stream.error);
  if (kind != "testRunEnd") return {};
  stream.ended = true;
  stream.status = textIn(*content, "status");
  stream.result = textIn(*content, "result");
  return {};
}

Status takeLine(const Json& json, Stream& stream, ImportedFile& file) {
  JsonReader r(json, "");
  double sequence = 0;
  r.read("sequenceNumber", sequence);
  MUSTER_CHECK_OK(r.status());
  if (sequence != stream.sequence + 1)
    return Error{
        ErrorCode::kUsage,
        fmt::format("is {}; expected {}: lines are missing, or out of order", sequence, stream.sequence + 1),
        "sequenceNumber"};
  stream.sequence = sequence;
  if (holds(json, "testRunArtifact")) return runArtifact(json["testRunArtifact"], stream, file);
  if (!holds(json, "testStepArtifact")) return {};
  if (!stream.started || stream.ended)
    return Error{ErrorCode::kUsage, "is outside of the run", "testStepArtifact"};
  return stepArtifact(json["testStepArtifact"], stream, file);
}

/// Why a step has no result; empty: it has one.
std::string errorOf(const Stream& stream, const Step& step) {
  if (!step.error.empty()) return step.error;
  if (!step.ended) return "the step has no end: it was interrupted";
  for (const auto& [id, series] : step.series)
    if (!series.ended) return "a series of values has no end";
  if (!stream.error.empty()) return stream.error;
  if (!stream.ended) return "the stream ends before its run: it was interrupted";
  return stream.status == "COMPLETE" ? "" : "the run ended as " + printable(stream.status, 40);
}

/// Ranks that measured the same metrics. A part that no rank worked on has the rank -1, and the node no
/// device.
struct Peers {
  std::vector<std::string> devices;  ///< by rank; "": the node
  std::vector<Measurement> values;
};

std::map<std::set<std::string>, Peers> peersOf(const std::vector<Measurement>& values) {
  std::map<std::pair<int, std::string>, std::vector<Measurement>> byRank;
  for (const Measurement& m : values) byRank[{m.rank, m.device}].push_back(m);
  std::map<std::set<std::string>, Peers> all;
  for (auto& [place, measured] : byRank) {
    std::set<std::string> metrics;
    for (const Measurement& m : measured) metrics.insert(m.metric);
    Peers& peers = all[metrics];
    for (Measurement& m : measured) {
      m.rank = static_cast<int>(peers.devices.size());
      peers.values.push_back(std::move(m));
    }
    peers.devices.push_back(place.second);
  }
  return all;
}

/// The values of one case of a step: each group of peers is a case of its own, because all its ranks must
/// have all its metrics.
void addCase(const std::string& name, const std::string& error, const std::vector<Measurement>& values,
             ImportedFile& file) {
  if (values.empty()) file.cases.push_back({name, {}, {}, {}, error});
  std::set<std::string> ids;
  for (auto& [metrics, peers] : peersOf(values)) {
    const std::string first = peers.devices.front().empty() ? "node" : printable(peers.devices.front(), 40);
    std::string id = ids.empty() ? name : fmt::format("{} ({})", name, first);
    if (!ids.insert(id).second) id = fmt::format("{} ({}, {})", name, first, ids.size());
    ids.insert(id);
    ImportedCase one{id, {}, metrics, peers.devices, error};
    if (one.devices.size() == 1 && one.devices.front().empty()) one.devices.clear();
    for (Measurement& m : peers.values) {
      m.caseId = id;
      file.measurements.push_back(std::move(m));
    }
    file.cases.push_back(std::move(one));
  }
}

/// A step without values: what it says of its parts.
void addDiagnoses(const Step& step, const std::string& name, const std::string& error, ImportedFile& file) {
  std::map<std::string, bool> passed;  // by device
  for (const Diagnosis& diagnosis : step.diagnoses) {
    const auto [at, fresh] = passed.emplace(diagnosis.device, diagnosis.passed);
    if (!fresh) at->second = at->second && diagnosis.passed;
  }
  std::vector<Measurement> values;
  int rank = 0;
  for (const auto& [device, good] : passed) {
    Measurement m = valueOf("imported.test_passed", {{"test", name}}, good ? 1 : 0, name);
    m.device = device;
    if (!device.empty()) m.labels["device"] = device;
    m.rank = rank++;
    values.push_back(std::move(m));
  }
  addCase(name, error.empty() && values.empty() ? "it has neither a value nor a diagnosis" : error, values,
          file);
}

void addStep(const Stream& stream, const std::string& id, const Step& step, ImportedFile& file) {
  const std::string name = fmt::format("{}:{}", printable(id, 40), step.name), error = errorOf(stream, step);
  if (step.others > 0)
    file.notes.push_back(
        fmt::format("{}: {} values without Muster's metadata were left out", name, step.others));
  std::map<std::string, std::vector<Measurement>> cases;
  for (const Measurement& m : step.values) cases[m.caseId].push_back(m);
  if (cases.empty()) return addDiagnoses(step, name, error, file);
  for (const auto& [caseId, values] : cases)
    addCase(name + "/" + printable(caseId, 120), error, values, file);
}

bool isOcp(const Source& source) {
  const std::optional<Json> first = source.json ? source.json : firstJsonLine(source);
  return first && holds(*first, "schemaVersion") && holds((*first)["schemaVersion"], "major");
}

Result<ImportedFile> readOcp(const Source& source) {
  ImportedFile file;
  Stream stream;
  MUSTER_CHECK_OK(eachJsonLine(source, [&](const Json& json, size_t line) -> Status {
    if (stream.sequence < 0 && json["schemaVersion"]["major"] != 2)
      return source.refuse(line, "schemaVersion.major: is not 2, the version that Muster reads");
    const Status status = takeLine(json, stream, file);
    return status.ok() ? Status() : Status(refuseAt(source, line, status.error()));
  }));
  for (const auto& [id, step] : stream.steps) {
    addStep(stream, id, step, file);
    if (file.cases.size() > kMostStreamCases)
      return source.refuse("", fmt::format("it holds more than {} tests", kMostStreamCases));
  }
  if (file.cases.empty()) file.cases.push_back({"run", {}, {}, {}, "the stream holds no step"});
  std::set<std::string> devices;
  for (const Measurement& m : file.measurements)
    if (!m.device.empty() && stream.hardware.contains(m.device)) devices.insert(m.device);
  for (const std::string& device : devices) addOnce(file.deviceNames, stream.hardware[device]);
  file.ranks = static_cast<int>(devices.size());
  file.ownNames = true;
  file.tool = stream.name + " " + stream.version;
  file.said = stream.ended ? stream.status + ", " + stream.result : "no testRunEnd";
  file.limits = "by its own validators";
  file.verdict = stream.result == "PASS"   ? ToolVerdict::kPassed
                 : stream.result == "FAIL" ? ToolVerdict::kFailed
                                           : ToolVerdict::kNone;
  // The run as a whole may fail where no diagnosis does: the tool's word counts.
  if (file.verdict == ToolVerdict::kFailed) file.failures = std::max(file.failures, 1);
  return file;
}

}  // namespace

const Format kOcp = {"ocp", isOcp, readOcp};

}  // namespace muster::imports

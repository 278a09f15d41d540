// SPDX-License-Identifier: Apache-2.0
// JSON -> Record, field by field: whatever is missing, of the wrong type or contradictory is an error with
// its path.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runner/core/text.h"
#include "runner/record/fold/columnar_rows.h"
#include "runner/record/fold/measurement_fold.h"
#include "runner/record/record.h"
#include "runner/record/record_check.h"
#include "runner/record/telemetry_fold.h"
#include "runner/record/verdict_fold.h"
#include "runner/record/waiver_json.h"
#include "runner/system/files.h"

namespace muster {
namespace {

/// What shared fields and packed samples may unfold to: a real record of eight GPUs has a megabyte and a
/// hundred thousand samples.
constexpr uint64_t kMostUnfolded = 256ull << 20;
constexpr uint64_t kMostSamples = 20'000'000;
constexpr uint64_t kRowBytes = 500;  ///< what a row takes in memory, however short it is in the file
/// What a series takes in memory: 300 points, each with its time.
constexpr uint64_t kSeriesBytes = 4'800;
/// Names are shared by thousands of rows here, and by all points of a history.
constexpr size_t kMostNameBytes = 1'000;
constexpr size_t kMostPathBytes = 4'096;
constexpr size_t kMostIncludes = 256;        ///< each is looked for in the whole text
constexpr size_t kMostTextBytes = 1u << 20;  ///< of a plan or profile
constexpr size_t kMostExpectations = 1'000;  ///< of one stage; a real one of eight GPUs has 50

/// Reads a number that must not be negative, infinite or missing.
template <typename T>
void readCount(JsonReader& r, const char* key, T& out) {
  r.read(key, out);
  if (r.ok() && !(out >= 0 && std::isfinite(static_cast<double>(out))))
    r.fail(key, "must be a number of zero or more");
}

void readDigest(JsonReader& r, const char* key, std::string& out) {
  r.read(key, out);
  if (!r.ok() || out.empty()) return;
  if (out.size() != 64 || out.find_first_not_of("0123456789abcdef") != std::string::npos)
    r.fail(key, "must be 64 lower-case hexadecimal digits");
}

/// Reads a name, path or the like.
void readName(JsonReader& r, const char* key, std::string& out, size_t most = kMostNameBytes) {
  r.read(key, out);
  if (r.ok() && out.size() > most)
    r.fail(key, fmt::format("is {} bytes long; at most {} are read", out.size(), most));
}

void readFreeObject(JsonReader& r, const char* key, Json& out) {
  if (const Json* object = r.object(key)) out = *object;
}

/// Reads one list of records by `fromJson(item, path)`.
template <typename T, typename F>
void readList(JsonReader& r, const char* key, std::vector<T>& out, F fromJson) {
  r.each(key, [&](const Json& item, const std::string& path) -> Status {
    MUSTER_TRY(auto value, fromJson(item, path));
    out.push_back(std::move(value));
    return {};
  });
}

Result<ArtifactRecord> artifactFromJson(const Json& json, const std::string& path) {
  ArtifactRecord artifact;
  JsonReader r(json, path);
  r.read("name", artifact.name);
  r.read("path", artifact.path);
  r.read("media_type", artifact.mediaType);
  r.read("bytes", artifact.bytes);
  readDigest(r, "sha256", artifact.sha256);
  if (r.ok() && !isSafeRelativePath(artifact.path))
    r.fail("path", fmt::format("\"{}\" leaves the record's folder; expected a relative path without \"..\"",
                               printable(artifact.path, 200)));
  MUSTER_CHECK_OK(r.status());
  return artifact;
}

Result<RankRecord> rankFromJson(const Json& json, const std::string& path) {
  RankRecord rank;
  JsonReader r(json, path);
  r.read("rank", rank.rank);
  r.read("device", rank.device);
  r.read("attempt", rank.attempt);
  r.read("state", rank.state);
  r.read("exit_code", rank.exitCode);
  r.read("signal", rank.signal);
  r.read("error", rank.error);
  r.read("last_progress", rank.lastProgress);
  r.read("output_tail", rank.outputTail);
  r.read("rerun", rank.rerun);
  MUSTER_CHECK_OK(r.status());
  return rank;
}

Result<CaseRecord> caseFromJson(const Json& json, const std::string& path) {
  CaseRecord item;
  JsonReader r(json, path);
  r.read("id", item.id);
  readFreeObject(r, "params", item.params);
  MUSTER_CHECK_OK(r.status());
  return item;
}

Result<Rejudgement> rejudgementFromJson(const Json& json, const std::string& path) {
  Rejudgement again;
  JsonReader r(json, path);
  readDigest(r, "from_sha256", again.fromSha256);
  readCount(r, "at", again.at);
  r.read("version", again.toolVersion);
  r.read("build_id", again.buildId);
  r.read("profile", again.profile);
  readDigest(r, "profile_sha256", again.profileSha256);
  readDigest(r, "waivers_sha256", again.waiversSha256);
  r.read("strict", again.strict);
  MUSTER_CHECK_OK(r.status());
  return again;
}

Status readRedacted(const Json& json, Record& record) {
  JsonReader r(json, "record.redacted");
  readDigest(r, "from_sha256", record.redacted.fromSha256);
  r.read("rules", record.redacted.rules);
  if (r.ok() && record.redacted.fromSha256.empty()) r.fail("from_sha256", "is empty");
  return r.status();
}

Result<ImportedRecord> importedFromJson(const Json& json, const std::string& path) {
  ImportedRecord item;
  JsonReader r(json, path);
  readName(r, "stage", item.stage);
  readName(r, "file", item.file, kMostPathBytes);
  readDigest(r, "sha256", item.sha256);
  readCount(r, "bytes", item.bytes);
  readName(r, "format", item.format);
  readName(r, "tool", item.tool);
  readName(r, "said", item.said);
  readName(r, "differs", item.differs);
  r.optional("device_names", item.deviceNames);
  MUSTER_CHECK_OK(r.status());
  return item;
}

/// The last two words of each line: the heading of an included file ends with its path and SHA-256.
std::set<std::string_view> headingsIn(std::string_view text) {
  std::set<std::string_view> ends;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    const size_t last = line.rfind(' ');
    const size_t before = last == line.npos || last == 0 ? line.npos : line.rfind(' ', last - 1);
    ends.insert(line.substr(before + 1));  // all of a line of two words
    text.remove_prefix(end + 1);
  }
  return ends;
}

Result<SourceRecord> sourceFromJson(const Json& json, const std::string& path) {
  SourceRecord source;
  JsonReader r(json, path);
  readName(r, "name", source.name);
  readName(r, "path", source.path, kMostPathBytes);
  readDigest(r, "sha256", source.sha256);
  readName(r, "text", source.text, kMostTextBytes);
  r.optional("includes", source.includes);
  MUSTER_CHECK_OK(r.status());
  if (source.includes.size() > kMostIncludes)
    return Error{ErrorCode::kProtocol,
                 fmt::format("names {} files; at most {} are read", source.includes.size(), kMostIncludes),
                 path + ".includes"};
  if (source.includes.empty()) return source;
  const std::set<std::string_view> headings = headingsIn(source.text);
  for (const auto& [file, sha256] : source.includes)
    if (!headings.contains(file + " " + sha256))
      return Error{ErrorCode::kProtocol, printable(file, 80) + " is not part of the text with this SHA-256",
                   path + ".includes"};
  return source;
}

void readSource(JsonReader& r, const char* key, SourceRecord& out) {
  const Json* object = r.object(key);
  if (object == nullptr) return;
  auto source = sourceFromJson(*object, std::string("record.") + key);
  if (source.ok())
    out = std::move(*source);
  else
    r.fail(source.error());
}

Status readAccounting(const Json& json, Accounting& out) {
  JsonReader r(json, "record.accounting");
  uint64_t expected = 0;
  uint64_t requiredSkips = 0;
  r.read("expected", expected);
  r.read("required_skips", requiredSkips);
  const Json* counts = r.object("counts");
  MUSTER_CHECK_OK(r.status());
  JsonReader c(*counts, "record.accounting.counts");
  for (int i = 0; i < kOutcomeCount; ++i) {
    uint64_t count = 0;
    c.read(outcomeName(static_cast<Outcome>(i)), count);
    out.counts[i] = count;
  }
  out.expected = expected;
  out.requiredSkips = requiredSkips;
  return c.status();
}

Status readTool(const Json& json, Record& record) {
  JsonReader r(json, "record.tool");
  readName(r, "version", record.toolVersion);
  readName(r, "build_id", record.buildId);
  r.optional("binaries", record.binaries);
  return r.status();
}

Status readRun(const Json& json, Record& record) {
  JsonReader r(json, "record.run");
  readName(r, "id", record.runId);
  readName(r, "node", record.node);
  readCount(r, "node_rank", record.nodeRank);
  readCount(r, "node_count", record.nodeCount);
  readCount(r, "started", record.started);
  readCount(r, "finished", record.finished);
  readName(r, "backend", record.backend);
  r.read("seed", record.seed);
  readName(r, "boot_id", record.bootId);
  readCount(r, "resumed", record.resumed);
  r.read("strict", record.strict);
  r.read("allow_unknown_sku", record.allowUnknownSku);
  r.read("overrides", record.overrides);
  r.read("command", record.command);
  r.optional("rerun", record.rerun);
  MUSTER_CHECK_OK(r.status());
  if (!json.contains("selection")) return {};
  MUSTER_TRY(record.selection, selectionFromJson(json["selection"], "record.run.selection"));
  return {};
}

/// Calls `read(value)` for every member of the object `key`; a false return is reported as "must be
/// <wanted>".
template <typename F>
void readMap(JsonReader& r, const char* key, const char* wanted, F read) {
  const Json* object = r.object(key);
  if (object == nullptr) return;
  for (const auto& [name, value] : object->items())
    if (!read(name, value)) r.fail(key, fmt::format("\"{}\" must be {}", printable(name, 80), wanted));
}

void readMaps(JsonReader& r, Record& record) {
  readMap(r, "peaks", "a number", [&](const std::string& name, const Json& value) {
    return numberFromJson(value, record.peaks[name]);
  });
  r.read("environment", record.environment);
}

/// Reads the object `key` by `read(object, record)` and passes its failure on.
void readPart(JsonReader& r, const char* key, Record& record, Status (*read)(const Json&, Record&)) {
  const Json* object = r.object(key);
  if (object == nullptr) return;
  Status status = read(*object, record);
  if (!status.ok()) r.fail(status.error());
}

/// Measurements first: verdicts and series point at them.
Status readFolded(const Json& json, const std::string& path, StageRecord& stage) {
  JsonReader r(json, path);
  const Json* measurements = r.array("measurements");
  const Json* telemetry = r.object("telemetry");
  const Json* verdicts = r.array("verdicts");
  MUSTER_CHECK_OK(r.status());
  MUSTER_TRY(stage.measurements, unfoldedMeasurements(*measurements, path + ".measurements"));
  for (const Measurement& m : stage.measurements)
    for (const std::string* name : {&m.metric, &m.caseId, &m.unit, &m.device})
      if (name->size() > kMostNameBytes)
        return Error{ErrorCode::kProtocol,
                     fmt::format("a name of {} bytes; at most {} are read", name->size(), kMostNameBytes),
                     path + ".measurements"};
  MUSTER_TRY(stage.telemetry, unfoldedTelemetry(*telemetry, stage, path + ".telemetry"));
  MUSTER_TRY(stage.verdicts, unfoldedVerdicts(*verdicts, stage, path + ".verdicts"));
  return {};
}

/// What the expectations take that a stage's verdicts refer to by their index, once for each row.
Result<uint64_t> referredBytes(const Json& stage) {
  const auto evidence = stage.find("evidence");
  if (evidence == stage.end() || !evidence->is_object()) return 0;
  const auto list = evidence->find("expectations");
  if (list == evidence->end() || !list->is_array()) return 0;
  if (list->size() > kMostExpectations)
    return Error{
        ErrorCode::kProtocol,
        fmt::format("{} expectations; at most {} of a stage are read", list->size(), kMostExpectations),
        "record.stages.evidence.expectations"};
  uint64_t longest = 0;
  for (const Json& expectation : *list) longest = std::max(longest, heldBytes(expectation));
  const auto verdicts = stage.find("verdicts");
  return verdicts == stage.end() ? 0 : longest * rowCount(*verdicts);
}

/// A file of a few bytes must not ask for all memory.
Status checkUnfolded(const Json& record) {
  uint64_t bytes = 0;
  uint64_t samples = 0;
  const auto stages = record.find("stages");
  if (stages == record.end() || !stages->is_array()) return {};
  for (const Json& stage : *stages) {
    if (!stage.is_object()) continue;
    for (const char* list : {"measurements", "verdicts"})
      if (stage.contains(list)) bytes += expandedBytes(stage[list]) + kRowBytes * rowCount(stage[list]);
    MUSTER_TRY(const uint64_t referred, referredBytes(stage));
    bytes += referred;
    const auto telemetry = stage.find("telemetry");
    if (telemetry != stage.end() && telemetry->is_object() && telemetry->contains("series"))
      bytes += expandedBytes((*telemetry)["series"]) + kSeriesBytes * rowCount((*telemetry)["series"]);
    if (stage.contains("measurements")) samples += packedSampleCount(stage["measurements"]);
  }
  bytes += samples * sizeof(double);
  if (bytes <= kMostUnfolded && samples <= kMostSamples) return {};
  return Error{ErrorCode::kProtocol,
               fmt::format("its rows unfold to {} bytes and {} packed samples; at most {} and {} are read",
                           bytes, samples, kMostUnfolded, kMostSamples),
               "record.stages"};
}

Status checkSchema(int schema) {
  if (schema == kRecordSchema) return {};
  const char* next =
      schema < kRecordSchema
          ? "an older Muster wrote it: read it with that one (tool.version), or run the plan again"
          : "a newer Muster wrote it: read it with that one (tool.version)";
  return Error{ErrorCode::kProtocol,
               fmt::format("is {}; this Muster reads records of schema {}; {}", schema, kRecordSchema, next),
               "record.schema"};
}

}  // namespace

Result<StageRecord> stageRecordFromJson(const Json& json, const std::string& path) {
  StageRecord stage;
  std::string outcome;
  JsonReader r(json, path);
  readName(r, "name", stage.name);
  readName(r, "plugin", stage.plugin);
  readName(r, "plugin_version", stage.pluginVersion);
  if (r.has("plugin_sha256")) readDigest(r, "plugin_sha256", stage.pluginSha256);
  readName(r, "test", stage.test);
  r.read("scope", stage.scope);
  r.read("needs", stage.needs);
  r.read("required", stage.required);
  r.read("state", stage.state);
  r.read("reason", stage.reason);
  r.read("outcome", outcome);
  readCount(r, "started", stage.started);
  readCount(r, "duration", stage.duration);
  readCount(r, "timeout", stage.timeout);
  readCount(r, "repeat", stage.repeat);
  readCount(r, "attempts", stage.attempts);
  readList(r, "cases", stage.cases, caseFromJson);
  readList(r, "ranks", stage.ranks, rankFromJson);
  r.read("log", stage.log);
  readList(r, "artifacts", stage.artifacts, artifactFromJson);
  readFreeObject(r, "evidence", stage.evidence);
  if (r.has("group")) readFreeObject(r, "group", stage.group);
  MUSTER_CHECK_OK(r.status());
  MUSTER_CHECK_OK(readFolded(json, path, stage));
  auto known = outcomeFromName(outcome);
  if (!known.ok()) return std::move(known).error().context(path + ".outcome");
  stage.outcome = *known;
  return stage;
}

namespace {

/// A stage's JSON is freed once it is read: all of it beside the whole record is several times its file.
void consumeStages(JsonReader& r, Json& json, std::vector<StageRecord>& out) {
  if (r.array("stages") == nullptr) return;
  Json& stages = json["stages"];
  out.reserve(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    auto stage = stageRecordFromJson(stages[i], fmt::format("record.stages[{}]", i));
    if (!stage.ok()) return r.fail(stage.error());
    out.push_back(std::move(*stage));
    stages[i] = nullptr;
  }
}

Result<Record> consume(Json& json) {
  Record record;
  int schema = 0;
  JsonReader r(json, "record");
  r.read("schema", schema);
  MUSTER_CHECK_OK(r.status());
  MUSTER_CHECK_OK(checkSchema(schema));
  MUSTER_CHECK_OK(checkUnfolded(json));
  r.read("acceptance", record.acceptance);
  readCount(r, "exit_code", record.exitCode);
  r.read("reasons", record.reasons);
  r.read("simulated", record.simulated);
  readName(r, "scenario", record.scenario);
  readPart(r, "accounting", record,
           [](const Json& part, Record& out) { return readAccounting(part, out.accounting); });
  readPart(r, "tool", record, readTool);
  readPart(r, "run", record, readRun);
  readSource(r, "plan", record.plan);
  readSource(r, "profile", record.profile);
  readPart(r, "profile", record, [](const Json& part, Record& out) {
    JsonReader profile(part, "record.profile");
    profile.read("how", out.skuHow);
    return profile.status();
  });
  readMaps(r, record);
  if (r.has("imported")) readList(r, "imported", record.imported, importedFromJson);
  if (r.has("rejudged")) readList(r, "rejudged", record.rejudged, rejudgementFromJson);
  if (r.has("redacted")) readPart(r, "redacted", record, readRedacted);
  if (r.has("waivers")) readPart(r, "waivers", record, readWaiversJson);
  r.read("peaks_from", record.peaksFrom);
  readFreeObject(r, "inventory", record.inventory);
  readFreeObject(r, "launcher", record.launcher);
  consumeStages(r, json, record.stages);
  if (r.has("mac")) readDigest(r, "mac", record.mac);
  MUSTER_CHECK_OK(r.status());
  return record;
}

Result<Record> checked(Result<Record> record) {
  if (!record.ok()) return record;
  MUSTER_CHECK_OK(checkRecord(*record));
  return record;
}

}  // namespace

Result<Record> recordFromJson(const Json& json) {
  Json own = json;
  return checked(consume(own));
}

Result<Record> uncheckedRecord(const std::string& text) {
  MUSTER_TRY(Json json, parseJson(text));
  MUSTER_TRY(Record record, consume(json));
  record.fileSha256 = sha256Hex(text);
  return record;
}

Result<Record> readRecord(const std::filesystem::path& path, const std::filesystem::path& directory) {
  MUSTER_TRY(const std::string text,
             directory.empty()
                 ? readFile(path, kMaxRecordBytes)
                 : readFileBelow(directory, path.lexically_relative(directory).string(), kMaxRecordBytes));
  return checked(uncheckedRecord(text)).context("reading record " + path.string());
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Record -> JSON. The order of keys is the order in which a person reads a run: outcome first, bulk last.
#include <fmt/format.h>

#include <map>

#include "runner/core/clock.h"
#include "runner/record/fold/measurement_fold.h"
#include "runner/record/record.h"
#include "runner/record/telemetry_fold.h"
#include "runner/record/verdict_fold.h"
#include "runner/record/waiver_json.h"

namespace muster {
namespace {

/// Free-form parts are objects in the file, also when nobody filled them.
Json objectOrEmpty(const Json& value) {
  return value.is_null() ? Json::object() : value;
}

Json textsOf(const std::map<std::string, std::string>& items) {
  Json object = Json::object();
  for (const auto& [key, value] : items) object[key] = value;
  return object;
}

Json numbersOf(const std::map<std::string, double>& items) {
  Json object = Json::object();
  for (const auto& [key, value] : items) object[key] = numberToJson(value);
  return object;
}

Json toJson(const ArtifactRecord& artifact) {
  return {{"name", artifact.name},
          {"path", artifact.path},
          {"media_type", artifact.mediaType},
          {"bytes", artifact.bytes},
          {"sha256", artifact.sha256}};
}

Json toJson(const RankRecord& rank) {
  return {{"rank", rank.rank},
          {"device", rank.device},
          {"attempt", rank.attempt},
          {"state", nameOf(rank.state)},
          {"exit_code", rank.exitCode},
          {"signal", rank.signal},
          {"error", rank.error},
          {"last_progress", rank.lastProgress},
          {"output_tail", rank.outputTail},
          {"rerun", rank.rerun}};
}

Json toJson(const CaseRecord& item) {
  return {{"id", item.id}, {"params", objectOrEmpty(item.params)}};
}

Json toJson(const SourceRecord& source) {
  Json json = {
      {"name", source.name}, {"path", source.path}, {"sha256", source.sha256}, {"text", source.text}};
  if (!source.includes.empty()) json["includes"] = source.includes;
  return json;
}

Json toJson(const Accounting& accounting) {
  Json counts = Json::object();
  for (int i = 0; i < kOutcomeCount; ++i) counts[outcomeName(static_cast<Outcome>(i))] = accounting.counts[i];
  return {
      {"expected", accounting.expected}, {"counts", counts}, {"required_skips", accounting.requiredSkips}};
}

Json toJson(const Rejudgement& again) {
  return {{"from_sha256", again.fromSha256},
          {"at", again.at},
          {"version", again.toolVersion},
          {"build_id", again.buildId},
          {"profile", again.profile},
          {"profile_sha256", again.profileSha256},
          {"waivers_sha256", again.waiversSha256},
          {"strict", again.strict}};
}

Json toJson(const ImportedRecord& item) {
  Json json = {{"stage", item.stage}, {"file", item.file},      {"sha256", item.sha256},
               {"bytes", item.bytes}, {"format", item.format},  {"tool", item.tool},
               {"said", item.said},   {"differs", item.differs}};
  if (!item.deviceNames.empty()) json["device_names"] = item.deviceNames;
  return json;
}

template <typename T>
Json listOf(const std::vector<T>& items) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(toJson(item));
  return list;
}

Json runToJson(const Record& record) {
  Json run = {{"id", record.runId},
              {"node", record.node},
              {"node_rank", record.nodeRank},
              {"node_count", record.nodeCount},
              {"started", record.started},
              {"finished", record.finished},
              {"backend", record.backend},
              {"seed", record.seed},
              {"boot_id", record.bootId},
              {"resumed", record.resumed},
              {"strict", record.strict},
              {"allow_unknown_sku", record.allowUnknownSku},
              {"overrides", record.overrides},
              {"command", record.command}};
  if (record.selection.partial()) run["selection"] = toJson(record.selection);
  if (!record.rerun.empty()) run["rerun"] = record.rerun;
  return run;
}

}  // namespace

std::vector<std::string> importedTexts(const Record& record) {
  std::vector<std::string> lines;
  std::map<std::string_view, Outcome> outcomes;
  for (const StageRecord& stage : record.stages) outcomes.emplace(stage.name, stage.outcome);
  for (const ImportedRecord& item : record.imported) {
    const auto stage = outcomes.find(item.stage);
    const char* here = stage == outcomes.end() ? "nothing" : outcomeName(stage->second);
    lines.push_back(fmt::format("{}: {} by {} (sha256 {}). The tool said: {}. Muster's result: {}{}",
                                item.stage, item.file, item.tool, item.sha256.substr(0, 12),
                                item.said.empty() ? "no verdict" : item.said, here,
                                item.differs.empty() ? "" : "; " + item.differs));
  }
  return lines;
}

std::string rejudgedText(const Record& record) {
  if (record.rejudged.empty()) return "";
  const Rejudgement& last = record.rejudged.back();
  const auto digest = [](const std::string& sha256) { return sha256.substr(0, 12); };
  std::string text = fmt::format("re-judged on {} by Muster {}", formatUtc(last.at), last.buildId);
  if (!last.profileSha256.empty())
    text += fmt::format(" with profile {} (sha256 {})", last.profile, digest(last.profileSha256));
  if (!last.waiversSha256.empty())
    text += fmt::format(" with waivers of sha256 {}", digest(last.waiversSha256));
  text += fmt::format(" from the record of sha256 {}", digest(last.fromSha256));
  if (record.rejudged.size() > 1)
    text += fmt::format("; first re-judged from the record of sha256 {}",
                        digest(record.rejudged.front().fromSha256));
  return text;
}

Json toJson(const StageRecord& stage) {
  Json json = {{"name", stage.name},
               {"plugin", stage.plugin},
               {"plugin_version", stage.pluginVersion},
               {"test", stage.test},
               {"scope", nameOf(stage.scope)},
               {"needs", stage.needs},
               {"required", stage.required},
               {"state", nameOf(stage.state)},
               {"reason", stage.reason},
               {"outcome", outcomeName(stage.outcome)},
               {"started", stage.started},
               {"duration", stage.duration},
               {"timeout", stage.timeout},
               {"repeat", stage.repeat},
               {"attempts", stage.attempts},
               {"cases", listOf(stage.cases)},
               {"verdicts", foldedVerdicts(stage)},
               {"ranks", listOf(stage.ranks)},
               {"log", stage.log},
               {"artifacts", listOf(stage.artifacts)},
               {"measurements", foldedMeasurements(stage.measurements)},
               {"telemetry", foldedTelemetry(stage)},
               {"evidence", objectOrEmpty(stage.evidence)}};
  if (!stage.pluginSha256.empty()) json["plugin_sha256"] = stage.pluginSha256;
  if (stage.group.is_object()) json["group"] = stage.group;
  return json;
}

Json toJson(const Record& record) {
  Json profile = toJson(record.profile);
  profile["how"] = record.skuHow;
  Json tool = {{"name", "muster"}, {"version", record.toolVersion}, {"build_id", record.buildId}};
  if (!record.binaries.empty()) tool["binaries"] = textsOf(record.binaries);
  Json json = {{"schema", kRecordSchema},
               {"acceptance", nameOf(record.acceptance)},
               {"exit_code", record.exitCode},
               {"reasons", record.reasons},
               {"simulated", record.simulated},
               {"scenario", record.scenario},
               {"accounting", toJson(record.accounting)},
               {"tool", tool},
               {"run", runToJson(record)},
               {"plan", toJson(record.plan)},
               {"profile", profile},
               {"peaks", numbersOf(record.peaks)},
               {"peaks_from", record.peaksFrom},
               {"inventory", objectOrEmpty(record.inventory)},
               {"launcher", objectOrEmpty(record.launcher)},
               {"environment", textsOf(record.environment)},
               {"stages", listOf(record.stages)}};
  if (!record.imported.empty()) json["imported"] = listOf(record.imported);
  if (!record.rejudged.empty()) json["rejudged"] = listOf(record.rejudged);
  if (!record.redacted.fromSha256.empty())
    json["redacted"] = {{"from_sha256", record.redacted.fromSha256}, {"rules", record.redacted.rules}};
  if (!record.waiverFile.sha256.empty()) json["waivers"] = waiversToJson(record);
  if (!record.mac.empty()) json["mac"] = record.mac;  // the last line: over all that stands before it
  return json;
}

}  // namespace muster

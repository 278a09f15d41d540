// SPDX-License-Identifier: Apache-2.0
// Converts the evidence of a stage from and to JSON.
#include "runner/record/evidence_json.h"

#include "runner/record/record_check.h"

namespace muster {
namespace {

const char* causeName(CaseEnd::Cause cause) {
  return cause == CaseEnd::Cause::kGroup ? "group" : cause == CaseEnd::Cause::kCancelled ? "cancelled" : "";
}

Result<CaseEnd> caseEndFromJson(const Json& json, const std::string& path) {
  CaseEnd end;
  std::string cause;
  JsonReader reader(json, path);
  reader.read("case", end.caseId);
  reader.read("rank", end.rank);
  reader.optional("device", end.device);
  reader.read("attempt", end.attempt);
  reader.read("state", end.state);
  reader.optional("message", end.message);
  reader.optional("remedy", end.remedy);
  reader.optional("cause", cause);
  MUSTER_CHECK_OK(reader.status());
  for (auto candidate : {CaseEnd::Cause::kGroup, CaseEnd::Cause::kCancelled})
    if (cause == causeName(candidate)) end.cause = candidate;
  return end;
}

Result<ExternalLoad> externalLoadFromJson(const Json& json, const std::string& path) {
  ExternalLoad load;
  JsonReader reader(json, path);
  reader.read("case", load.caseId);
  reader.read("attempt", load.attempt);
  reader.read("median", load.median);
  reader.read("mean", load.mean);
  reader.read("peak", load.peak);
  reader.read("by", load.by);
  MUSTER_CHECK_OK(reader.status());
  return load;
}

}  // namespace

Json evidenceToJson(const StageEvidence& evidence) {
  Json json = {{"state", nameOf(evidence.state)},
               {"reason", evidence.reason},
               {"required", evidence.required},
               {"allow_flaky", evidence.allowFlaky}};
  if (evidence.peersMissing) json["peers_missing"] = true;
  Json ends = Json::array();
  for (const CaseEnd& end : evidence.ends) {
    Json entry = {
        {"case", end.caseId}, {"rank", end.rank}, {"attempt", end.attempt}, {"state", nameOf(end.state)}};
    if (!end.device.empty()) entry["device"] = end.device;
    if (!end.message.empty()) entry["message"] = end.message;
    if (!end.remedy.empty()) entry["remedy"] = end.remedy;
    if (end.cause != CaseEnd::Cause::kOwn) entry["cause"] = causeName(end.cause);
    ends.push_back(std::move(entry));
  }
  json["ends"] = std::move(ends);
  Json expectations = Json::array();
  for (const Expectation& expectation : evidence.expectations) expectations.push_back(toJson(expectation));
  json["expectations"] = std::move(expectations);
  json["case_metrics"] = evidence.caseMetrics;
  if (!evidence.leaderMetrics.empty()) json["leader_metrics"] = evidence.leaderMetrics;
  if (!evidence.findingLabels.empty()) json["finding_labels"] = evidence.findingLabels;
  json["case_labels"] = evidence.caseLabels;
  if (evidence.sweep) json["group_ranks"] = evidence.groupRanks;
  for (const ExternalLoad& load : evidence.externalLoad)
    json["external_load"].push_back({{"case", load.caseId},
                                     {"attempt", load.attempt},
                                     {"median", load.median},
                                     {"mean", load.mean},
                                     {"peak", load.peak},
                                     {"by", load.by}});
  return json;
}

Result<StageEvidence> evidenceFromRecord(const StageRecord& stage) {
  StageEvidence evidence;
  evidence.stage = stage.name;
  evidence.measurements = stage.measurements;
  evidence.faulty = faultyComponent(stage);
  const std::string path = "stage " + stage.name + ".evidence";
  JsonReader reader(stage.evidence, path);
  reader.read("state", evidence.state);
  reader.optional("reason", evidence.reason);
  reader.read("required", evidence.required);
  reader.read("allow_flaky", evidence.allowFlaky);
  reader.optional("peers_missing", evidence.peersMissing);
  reader.each("ends", [&](const Json& item, const std::string& at) -> Status {
    MUSTER_TRY(CaseEnd end, caseEndFromJson(item, at));
    evidence.ends.push_back(std::move(end));
    return {};
  });
  reader.each("expectations", [&](const Json& item, const std::string& at) -> Status {
    MUSTER_TRY(Expectation expectation, expectationFromJson(item, at));
    evidence.expectations.push_back(std::move(expectation));
    return {};
  });
  std::vector<std::string> leaderMetrics;
  reader.optional("leader_metrics", leaderMetrics);
  evidence.leaderMetrics.insert(leaderMetrics.begin(), leaderMetrics.end());
  evidence.sweep = reader.has("group_ranks");
  std::vector<double> groupRanks;
  reader.optional("group_ranks", groupRanks);
  for (const double ranks : groupRanks) evidence.groupRanks.insert(static_cast<int>(ranks));
  if (reader.has("external_load"))
    reader.each("external_load", [&](const Json& item, const std::string& at) -> Status {
      MUSTER_TRY(ExternalLoad load, externalLoadFromJson(item, at));
      evidence.externalLoad.push_back(std::move(load));
      return {};
    });
  const Json* found = reader.has("finding_labels") ? reader.object("finding_labels") : nullptr;
  const Json* metrics = reader.object("case_metrics");
  const Json* labels = reader.object("case_labels");
  MUSTER_CHECK_OK(reader.status());
  const auto namesIn = [&](const Json& lists, auto& out) -> Status {
    for (const auto& [of, names] : lists.items()) {
      if (!names.is_array()) return Error{ErrorCode::kProtocol, "expected a list of names for " + of, path};
      std::set<std::string> known;
      for (const Json& name : names)
        if (name.is_string()) known.insert(name.get<std::string>());
      if (!known.empty()) out[of] = std::move(known);
    }
    return {};
  };
  MUSTER_CHECK_OK(namesIn(*metrics, evidence.caseMetrics));
  if (found != nullptr) MUSTER_CHECK_OK(namesIn(*found, evidence.findingLabels));
  for (const auto& [id, values] : labels->items()) {
    Labels& known = evidence.caseLabels[id];
    for (const auto& [key, value] : values.items())
      if (value.is_string()) known[key] = value.get<std::string>();
  }
  return evidence;
}

}  // namespace muster

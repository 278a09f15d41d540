// SPDX-License-Identifier: Apache-2.0
// Writes a run as a stream of OCP Test & Validation 2.0: its start with the node's parts, its stages, its
// end.
#include <fmt/format.h>

#include "reports/formats/formats.h"
#include "reports/formats/ocp_stream.h"
#include "runner/core/shell.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/findings/marks.h"
#include "runner/record/findings/parts.h"

namespace muster {
namespace {

constexpr size_t kMostSoftware = 2000;  ///< as in report.html

Json hardwareOf(const Record& record) {
  Json list = Json::array();
  for (const DevicePart& part : devicesOf(record)) {
    Json info = {{"hardwareInfoId", part.id}, {"name", part.name}};
    if (!part.serial.empty()) info["serialNumber"] = part.serial;
    if (!part.address.empty()) info["location"] = part.address;
    list.push_back(info);
  }
  return list;
}

Json softwareOf(const Record& record, TextLimit& limit) {
  Json list = Json::array();
  const Json& software = inventoryPart(record, "software");
  if (!software.is_object()) return list;
  for (const auto& [name, version] : software.items())
    if (list.size() < kMostSoftware)
      list.push_back({{"softwareInfoId", name},
                      {"name", name},
                      {"version", version.is_string() ? version.get<std::string>() : dumpJson(version)}});
  limit.leaveOut(software.size() - list.size());
  return list;
}

Json marksJson(const Record& record) {
  Json list = Json::array();
  for (const Mark& mark : marksOf(record)) list.push_back(mark.word + " " + mark.text);
  return list;
}

Json dutOf(const Record& record, TextLimit& limit) {
  return {{"dutInfoId", "node"},
          {"name", record.node},
          {"platformInfos", Json::array({{{"info", "backend " + record.backend}}})},
          {"softwareInfos", softwareOf(record, limit)},
          {"hardwareInfos", hardwareOf(record)},
          {"metadata", {{"marks", marksJson(record)}}}};
}

Json startOf(const Record& record, TextLimit& limit) {
  return {{"name", markPrefix(record) + record.plan.name},
          {"version", record.toolVersion},
          {"commandLine", shellCommand(record.command)},
          {"parameters",
           {{"run", record.runId},
            {"plan_sha256", record.plan.sha256},
            {"overrides", record.overrides},
            {"profile", record.profile.name},
            {"profile_sha256", record.profile.sha256},
            {"seed", record.seed},
            {"strict", record.strict}}},
          {"dutInfo", dutOf(record, limit)}};
}

/// A result is PASS or FAIL only for a run that has ended.
Json endOf(const Record& record) {
  switch (record.acceptance) {
    case Acceptance::kAccepted:
      return {{"status", "COMPLETE"}, {"result", "PASS"}};
    case Acceptance::kRejected:
      return {{"status", "COMPLETE"}, {"result", "FAIL"}};
    case Acceptance::kPartial:
      return {{"status", "COMPLETE"}, {"result", "NOT_APPLICABLE"}};
    case Acceptance::kNoGpu:
      return {{"status", "SKIP"}, {"result", "NOT_APPLICABLE"}};
    case Acceptance::kIncomplete:
    case Acceptance::kInterrupted:
      break;
  }
  return {{"status", "ERROR"}, {"result", "NOT_APPLICABLE"}};
}

void addLog(OcpStream& stream, double at, const char* severity, const std::string& message) {
  stream.add(Weight::kFinding, at, nullptr, "log", [&] {
    return Json{{"severity", severity}, {"message", message}};
  });
}

}  // namespace

std::string renderOcp(const Record& record, TextLimit& limit) {
  OcpStream stream(limit);
  stream.run(record.started, "testRunStart", startOf(record, limit));
  for (const Mark& mark : marksOf(record))
    addLog(stream, record.started, "WARNING", mark.word + " " + mark.text);
  std::set<std::string> parts;
  for (const DevicePart& part : devicesOf(record)) parts.insert(part.id);
  for (size_t i = 0; i < record.stages.size(); ++i) addOcpStage(stream, record, i, parts);
  for (const std::string& reason : record.reasons) addLog(stream, record.finished, "INFO", reason);
  for (const Concession& concession : concessionsOf(record))
    addLog(stream, record.finished, "WARNING", "concession: " + concession.text());
  stream.run(record.finished, "log", {{"severity", "INFO"}, {"message", verdictText(record)}});
  if (limit.leftOut() > 0)
    stream.run(record.finished, "log", {{"severity", "ERROR"}, {"message", limit.note()}});
  stream.run(record.finished, "testRunEnd", endOf(record));
  return std::move(stream).text();
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Converts waivers from and to JSON.
#include "runner/record/waiver_json.h"

#include <algorithm>
#include <string_view>

namespace muster {
namespace {

/// "2026-12-31".
bool hasShapeOfDate(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00";
  return std::equal(text.begin(), text.end(), kShape.begin(), kShape.end(),
                    [](char c, char shape) { return shape == '0' ? c >= '0' && c <= '9' : c == shape; });
}

Json toJson(const WaiverRecord& waiver) {
  return {{"stage", waiver.stage},   {"metric", waiver.metric},       {"where", Json(waiver.where)},
          {"device", waiver.device}, {"serial", waiver.serial},       {"node", waiver.node},
          {"reason", waiver.reason}, {"approver", waiver.approver},   {"expires", waiver.expires},
          {"at", waiver.at},         {"state", nameOf(waiver.state)}, {"covered", waiver.covered},
          {"detail", waiver.detail}};
}

Status readWaiver(const Json& json, const std::string& path, std::vector<WaiverRecord>& out) {
  WaiverRecord waiver;
  uint64_t covered = 0;
  JsonReader r(json, path);
  r.read("stage", waiver.stage);
  r.read("metric", waiver.metric);
  r.read("where", waiver.where);
  r.read("device", waiver.device);
  r.read("serial", waiver.serial);
  r.read("node", waiver.node);
  r.read("reason", waiver.reason);
  r.read("approver", waiver.approver);
  r.read("expires", waiver.expires);
  r.read("at", waiver.at);
  r.read("state", waiver.state);
  r.read("covered", covered);
  r.read("detail", waiver.detail);
  waiver.covered = covered;
  if (r.ok() && !hasShapeOfDate(waiver.expires)) r.fail("expires", "expected a date like 2026-12-31");
  out.push_back(std::move(waiver));
  return r.status();
}

}  // namespace

Json waiversToJson(const Record& record) {
  Json list = Json::array();
  for (const WaiverRecord& waiver : record.waivers) list.push_back(toJson(waiver));
  return {{"path", record.waiverFile.path},
          {"sha256", record.waiverFile.sha256},
          {"text", record.waiverFile.text},
          {"list", list}};
}

Status readWaiversJson(const Json& json, Record& record) {
  JsonReader r(json, "record.waivers");
  r.read("path", record.waiverFile.path);
  r.read("sha256", record.waiverFile.sha256);
  r.read("text", record.waiverFile.text);
  r.each("list",
         [&](const Json& item, const std::string& path) { return readWaiver(item, path, record.waivers); });
  if (r.ok() && (record.waiverFile.sha256.size() != 64 ||
                 record.waiverFile.sha256.find_first_not_of("0123456789abcdef") != std::string::npos))
    r.fail("sha256", "must be 64 lower-case hexadecimal digits");
  return r.status();
}

}  // namespace muster

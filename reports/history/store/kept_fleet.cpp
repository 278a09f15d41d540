// SPDX-License-Identifier: Apache-2.0
// Reads and checks a stored fleet record.
#include "reports/history/store/kept_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "runner/core/json.h"
#include "runner/core/text.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::history {
namespace fs = std::filesystem;
namespace {

constexpr int kSchema = 1;
constexpr uint64_t kMaxBytes = 512ull << 20;  // 10,000 nodes need about 40 MB
constexpr const char* kName = "fleet.json";

bool isDigest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Status readMember(const Json& json, const std::string& path, KeptFleet& fleet) {
  FleetMember member;
  JsonReader r(json, path);
  r.read("node", member.name);
  r.read("state", member.state);
  r.optional("sku", member.sku);
  if (r.ok() && !isPlainName(member.name))
    r.fail("node", fmt::format("\"{}\" is not a node name", printable(member.name, 80)));
  if (r.has("records"))
    r.each("records", [&](const Json& item, const std::string& at) -> Status {
      FleetEntry entry;
      JsonReader one(item, at);
      one.read("path", entry.path);
      one.read("sha256", entry.sha256);
      if (one.ok() && !isDigest(entry.sha256)) one.fail("sha256", "must be 64 lower-case hexadecimal digits");
      member.records.push_back(std::move(entry));
      return one.status();
    });
  fleet.nodes.push_back(std::move(member));
  return r.status();
}

Status readHead(const Json& json, KeptFleet& fleet) {
  JsonReader r(json, "fleet");
  int schema = 0;
  r.read("fleet_schema", schema);
  if (r.ok() && schema != kSchema)
    r.fail("fleet_schema", fmt::format("is {}, and this Muster reads {}", schema, kSchema));
  r.read("acceptance", fleet.acceptance);
  r.read("simulated", fleet.simulated);
  r.read("started", fleet.started);
  r.read("finished", fleet.finished);
  r.optional("waivers_from", fleet.waiversFrom);
  fleet.clauses = json.contains("clauses");
  r.optional("same_machine", fleet.sameMachine);
  r.optional("reject_outliers", fleet.rejectOutliers);
  r.optional("allow_rejudged", fleet.allowRejudged);
  if (const Json* plan = r.object("plan")) {
    JsonReader p(*plan, "fleet.plan");
    p.read("name", fleet.plan);
    p.read("sha256", fleet.planSha256);
    p.read("overrides", fleet.overrides);
    if (!p.ok()) return p.status();
  }
  if (const Json* coverage = r.object("coverage")) {
    JsonReader c(*coverage, "fleet.coverage");
    c.read("from", fleet.expectedFrom);
    if (!c.ok()) return c.status();
  }
  r.each("nodes", [&](const Json& item, const std::string& path) { return readMember(item, path, fleet); });
  return r.status();
}

/// Longer texts no fleet of Muster's has, and the store takes none of any length.
Status checkTexts(const KeptFleet& fleet) {
  constexpr size_t kMostBytes = 4096, kMostOverrides = 1u << 20;
  size_t overrides = 0;
  for (const std::string& one : fleet.overrides) overrides += one.size();
  std::string_view odd = overrides > kMostOverrides ? "plan.overrides" : "";
  const auto check = [&](std::string_view key, const std::string& text) {
    if (text.size() > kMostBytes) odd = key;
  };
  check("plan.name", fleet.plan);
  check("plan.sha256", fleet.planSha256);
  check("coverage.from", fleet.expectedFrom);
  check("waivers_from", fleet.waiversFrom);
  for (const FleetMember& member : fleet.nodes) {
    check("sku", member.sku);
    for (const FleetEntry& entry : member.records) check("path", entry.path);
  }
  if (odd.empty()) return {};
  return Error{ErrorCode::kProtocol, fmt::format("its {} is too long", odd), ""};
}

/// One that names a node twice, and an acceptance that its own nodes contradict, was edited.
Status checkFleet(const KeptFleet& fleet) {
  std::set<std::string_view> names;
  for (const FleetMember& member : fleet.nodes)
    if (!names.insert(member.name).second)
      return Error{ErrorCode::kProtocol, fmt::format("names node {} twice", printable(member.name, 80)), ""};
  if (fleet.acceptance != Acceptance::kAccepted) return {};
  for (const FleetMember& member : fleet.nodes)
    if (member.state != fleet::NodeState::kAccepted || member.records.empty())
      return Error{ErrorCode::kProtocol,
                   fmt::format("says accepted, and node {} is {} with {} records", member.name,
                               nameOf(member.state), member.records.size()),
                   ""};
  if (!fleet.nodes.empty()) return {};
  return Error{ErrorCode::kProtocol, "says accepted, and names no node", ""};
}

}  // namespace

fs::path fleetFileIn(const fs::path& folder) {
  std::error_code error;
  for (const fs::path& path : {folder / kName, folder / "fleet" / kName})
    if (fs::is_regular_file(path, error)) return path;
  return {};
}

fs::path recordsFolderOf(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "records", error) ? folder / "records" : folder;
}

Result<KeptFleet> readFleetIn(const fs::path& folder) {
  const fs::path file = fleetFileIn(folder);
  if (file.empty())
    return Error{ErrorCode::kNotFound,
                 "no fleet.json; expected the directory of an evaluated fleet (`muster fleet RUN --expect "
                 "FILE` writes it)",
                 folder.string()};
  if (isPlanted(file))
    return Error{ErrorCode::kUsage,
                 "it belongs to another user than root, you and the owner of its directory; remove it",
                 file.string()};
  MUSTER_TRY(const std::string text, readFile(file, kMaxBytes));
  const auto torn = [&](const Error& error) {
    return Error{ErrorCode::kProtocol, "is not a fleet record: " + error.text(), file.string()};
  };
  const auto json = parseJson(text);
  if (!json.ok()) return torn(json.error());
  KeptFleet fleet;
  if (const Status status = readHead(*json, fleet); !status.ok()) return torn(status.error());
  if (const Status status = checkTexts(fleet); !status.ok()) return torn(status.error());
  if (const Status status = checkFleet(fleet); !status.ok()) return torn(status.error());
  fleet.folder = fs::absolute(folder).lexically_normal();
  fleet.sha256 = sha256Hex(text);
  return fleet;
}

}  // namespace muster::history

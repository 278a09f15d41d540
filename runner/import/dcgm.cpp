// SPDX-License-Identifier: Apache-2.0
// dcgmi diag -j: the result of each test on each GPU. It holds no measured value outside of texts, so it can
// reject a node and never accept one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runner/core/text.h"
#include "runner/import/source.h"

namespace muster::imports {
namespace {

constexpr size_t kLongestStatus = 100;

/// DCGM 4 and newer, and versions before.
constexpr const char* kRoots[] = {"DCGM Diagnostic", "DCGM GPU Diagnostic"};

/// One result of a test.
struct Entry {
  std::string group;   ///< "gpu"; empty: of the whole node
  std::string device;  ///< "gpu3", likewise
  std::string status;
  std::string warning;
};

/// What the run was for, by group: "gpu" -> "gpu0", "gpu1".
using Entities = std::map<std::string, std::set<std::string>>;

/// A text, or the texts of a list, or their field "warning".
std::string warningOf(const Json& item) {
  std::vector<std::string> texts;
  for (const char* key : {"warnings", "warning", "info"}) {
    if (!item.contains(key)) continue;
    const Json one = Json::array({item[key]});
    for (const Json& each : item[key].is_array() ? item[key] : one) {
      if (each.is_string()) texts.push_back(each.get<std::string>());
      if (holds(each, "warning") && each["warning"].is_string())
        texts.push_back(each["warning"].get<std::string>());
    }
    break;
  }
  return printable(join(texts, "; "), 300);
}

Result<std::vector<Entry>> entryOf(const Json& item, const std::string& path) {
  JsonReader r(item, path);
  Entry entry;
  r.read("status", entry.status);
  if (entry.status.size() > kLongestStatus) r.fail("status", "is longer than a status");
  entry.warning = warningOf(item);
  std::vector<Entry> entries;
  // One number, or the texts "0" and "0,1" of versions before 4.
  for (const char* key : {"entity_id", "gpu_id", "gpu_ids"}) {
    if (!r.has(key)) continue;
    std::string group = "gpu";
    if (r.has("entity_group")) r.read("entity_group", group);
    const std::string ids = item[key].is_string() ? item[key].get<std::string>() : dumpJson(item[key]);
    for (const std::string& id : split(ids, ',')) {
      const auto number = wholeNumber(trim(id));
      if (!number) r.fail(key, "is no number of a device: " + printable(ids, 40));
      if (entries.size() == kMostDevices)
        r.fail(key, fmt::format("names more than {} devices", kMostDevices));
      if (!r.ok()) break;
      group = lowerCase(group);
      entries.push_back({group, fmt::format("{}{}", group, number.value_or(0)), entry.status, entry.warning});
    }
    break;
  }
  MUSTER_CHECK_OK(r.status());
  if (entries.empty()) entries.push_back(std::move(entry));
  return entries;
}

/// What one test says of one device.
void takeEntry(const Entry& entry, const std::string& caseId, ImportedFile& file, ImportedCase& one) {
  const std::string who = entry.device.empty() ? "the node" : entry.device;
  const auto rank = static_cast<int>(one.devices.size());
  if (!entry.device.empty()) one.devices.push_back(entry.device);
  const bool passed = lowerCase(entry.status) == "pass", failed = lowerCase(entry.status) == "fail";
  if (!passed && !failed) {
    if (one.error.empty())
      one.error = fmt::format("DCGM gives {} the status \"{}\"{}", who, printable(entry.status, 40),
                              entry.warning.empty() ? "" : ": " + entry.warning);
    return;
  }
  if (failed) {
    ++file.failures;
    addNote(file.notes, fmt::format("{} failed on {}: {}", caseId, who, entry.warning));
  }
  Measurement m = valueOf("imported.test_passed", {{"test", caseId}}, passed ? 1 : 0, caseId);
  m.rank = entry.device.empty() ? 0 : rank;
  m.device = entry.device;
  if (!entry.device.empty()) m.labels["device"] = entry.device;
  file.measurements.push_back(std::move(m));
}

/// A test that has a result of one entity of a group has one of each: those of CPUs have none of GPUs. Empty:
/// nothing is missing.
std::string missingOf(const Entities& entities, const std::set<std::string>& groups,
                      const std::set<std::string>& seen) {
  for (const std::string& group : groups)
    if (const auto found = entities.find(group); found != entities.end())
      for (const std::string& device : found->second)
        if (!seen.contains(device)) return device;
  return "";
}

Status readTest(const Json& test, const std::string& path, const Entities& entities, ImportedFile& file) {
  ImportedCase one;
  one.metrics = {"imported.test_passed"};
  JsonReader r(test, path);
  std::string name;
  r.read("name", name);
  one.id = printable(name, 80);
  std::set<std::string> groups, seen;
  r.each("results", [&](const Json& item, const std::string& at) -> Status {
    MUSTER_TRY(const std::vector<Entry> entries, entryOf(item, at));
    for (const Entry& entry : entries) {
      if (!seen.insert(entry.device).second)
        return Error{ErrorCode::kUsage, "gives a second result of " + printable(entry.device, 40), at};
      groups.insert(entry.group);
      takeEntry(entry, one.id, file, one);
    }
    if (seen.size() > kMostDevices)
      return Error{ErrorCode::kUsage, fmt::format("is of more than {} devices", kMostDevices), at};
    return checkCounts(file.measurements.size(), file.cases.size(), at);
  });
  if (const Json* summary = r.has("test_summary") ? r.object("test_summary") : nullptr) {
    std::string status;
    JsonReader(*summary, path + ".test_summary").optional("status", status);
    if (lowerCase(status) == "fail" && file.failures == 0) ++file.failures;
    if (one.error.empty() && lowerCase(status) != "pass" && lowerCase(status) != "fail")
      one.error = fmt::format("DCGM sums it up as \"{}\"", printable(status, 40));
  }
  MUSTER_CHECK_OK(r.status());
  if (seen.empty() && one.error.empty()) one.error = "it has no result";
  if (const std::string missing = missingOf(entities, groups, seen); !missing.empty() && one.error.empty())
    one.error = "it has no result of " + printable(missing, 40);
  constexpr size_t kMostTests = 1'000;
  if (file.cases.size() >= kMostTests) return Error{ErrorCode::kUsage, "is one of too many tests", path};
  for (const ImportedCase& other : file.cases)
    if (other.id == one.id) return Error{ErrorCode::kUsage, "a second test of this name", path + ".name"};
  file.cases.push_back(std::move(one));
  return {};
}

Status readEntities(const Json& json, Entities& entities) {
  if (!json.contains("entity_groups")) return {};
  JsonReader r(json, "");
  r.each("entity_groups", [&](const Json& group, const std::string& path) -> Status {
    JsonReader g(group, path.substr(1));
    std::string name;
    g.read("entity_group", name);
    g.each("entities", [&](const Json& entity, const std::string& at) -> Status {
      int id = 0;
      JsonReader e(entity, at);
      e.read("entity_id", id);
      entities[lowerCase(name)].insert(fmt::format("{}{}", lowerCase(name), id));
      return e.status();
    });
    return g.status();
  });
  return r.status();
}

const char* rootOf(const Json& json) {
  for (const char* root : kRoots)
    if (holds(json, root)) return root;
  return nullptr;
}

Status readDocument(const Json& json, ImportedFile& file) {
  Entities entities;
  MUSTER_CHECK_OK(readEntities(json, entities));
  const char* root = rootOf(json);
  JsonReader r(json[root], root);
  std::string version;
  r.optional("version", version);
  if (holds(json, "metadata")) JsonReader(json["metadata"], "metadata").optional("version", version);
  file.tool = "DCGM" + (version.empty() ? "" : " " + version);
  for (const char* key : {"runtime_error", "Warning"}) {
    std::string error;
    r.optional(key, error);
    if (!error.empty()) file.cases.push_back({key, {}, {}, {}, "DCGM reported: " + printable(error, 300)});
  }
  if (r.has("test_categories"))
    r.each("test_categories", [&](const Json& category, const std::string& path) -> Status {
      JsonReader c(category, path);
      c.each("tests",
             [&](const Json& test, const std::string& at) { return readTest(test, at, entities, file); });
      return c.status();
    });
  MUSTER_CHECK_OK(r.status());
  if (file.cases.empty()) file.cases.push_back({"diag", {}, {}, {}, "the file holds no test"});
  std::set<std::string> tested = entities["gpu"];
  for (const Measurement& m : file.measurements)
    if (m.device.starts_with("gpu")) tested.insert(m.device);
  file.ranks = static_cast<int>(tested.size());
  return {};
}

bool isDcgm(const Source& source) {
  return source.json && rootOf(*source.json) != nullptr;
}

Result<ImportedFile> readDcgm(const Source& source) {
  ImportedFile file;
  if (Status status = readDocument(*source.json, file); !status.ok())
    return source.refuse(status.error().where, status.error().message);
  const bool open = std::any_of(file.cases.begin(), file.cases.end(),
                                [](const ImportedCase& one) { return !one.error.empty(); });
  file.limits = "its own tests, of which it counts skipped ones as no failure";
  file.verdict = file.failures > 0 ? ToolVerdict::kFailed : ToolVerdict::kPassed;
  file.said = file.failures > 0 ? fmt::format("{} results Fail", file.failures)
              : open            ? "no result Fail, but not every one Pass"
                                : "every result Pass";
  return file;
}

}  // namespace

const Format kDcgmDiag = {"dcgm-diag", isDcgm, readDcgm};

}  // namespace muster::imports

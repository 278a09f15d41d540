// SPDX-License-Identifier: Apache-2.0
// Compares the inventory of a record with the samples of its own stage and with the profile.
#include "runner/app/input/derived_inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "runner/app/node/node_inventory.h"
#include "runner/core/text.h"
#include "runner/record/evidence_json.h"

namespace muster {
namespace {

constexpr size_t kLongestValue = 80;

/// Device -> its name or memory, sorted; a device that is there twice is there twice.
using Rows = std::multimap<std::string, std::string>;

class InventoryComparison {
 public:
  InventoryComparison(const StageRecord& stage, const NodeInventory& inventory,
                      std::optional<const Profile*> ofProfile)
      : stage_(stage), devices_(inventory.devices()), ofProfile_(ofProfile) {}

  std::vector<std::string> compare() {
    Rows names, memory;
    for (const DeviceFacts& device : devices_) {
      names.emplace(device.id, device.name);
      memory.emplace(device.id, fmt::format("{}", device.memoryBytes));
    }
    compareNumber("env.device_count", devices_.size(), "lists", "devices");
    compareRows("env.device_name", names);
    compareRows("env.device_memory", memory);
    if (ofProfile_) compareMismatches(*ofProfile_);
    return std::move(out_);
  }

 private:
  void differ(const std::string& what) { out_.push_back(fmt::format("stage {}: {}", stage_.name, what)); }

  /// Its one sample must be `number`.
  void compareNumber(const std::string& metric, size_t number, const std::string& verb,
                     const std::string& what) {
    std::vector<double> samples;
    for (const Measurement& m : stage_.measurements)
      if (m.metric == metric) samples.insert(samples.end(), m.samples.begin(), m.samples.end());
    if (samples.size() == 1 && samples.front() == static_cast<double>(number)) return;
    const std::string stored = samples.empty() ? "missing" : fmt::format("{}", fmt::join(samples, ", "));
    differ(fmt::format("{} is {}, and the record's inventory {} {} {}", metric, stored, verb, number, what));
  }

  void compareRows(const std::string& metric, const Rows& expected) {
    Rows found;
    for (const Measurement& m : stage_.measurements) {
      if (m.metric != metric) continue;
      const auto device = m.labels.find("device");
      found.emplace(device == m.labels.end() ? "" : device->second,
                    m.isText() ? m.text : fmt::format("{}", fmt::join(m.samples, ", ")));
    }
    const auto lacks = [](const Rows& rows, const Rows::value_type& row) {
      const auto [begin, end] = rows.equal_range(row.first);
      return std::none_of(begin, end, [&](const auto& other) { return other.second == row.second; });
    };
    for (const auto& row : found)
      if (lacks(expected, row))
        differ(fmt::format("{} of {} is \"{}\", and not so in the record's inventory", metric,
                           printable(row.first, kLongestValue), printable(row.second, kLongestValue)));
    for (const auto& row : expected)
      if (lacks(found, row))
        differ(fmt::format("the record's inventory has {} with {} \"{}\", which the stage did not measure",
                           printable(row.first, kLongestValue), metric,
                           printable(row.second, kLongestValue)));
    if (out_.empty() && found.size() != expected.size())
      differ(fmt::format("{} has {} rows, and the record's inventory {} devices", metric, found.size(),
                         expected.size()));
  }

  /// The profile's `match` on these devices, as the run chose it.
  void compareMismatches(const Profile* profile) {
    const std::vector<std::string> problems = skuMismatches(devices_, profile);
    const std::string first = problems.empty() ? "" : " (" + problems.front() + ")";
    compareNumber("env.sku_mismatches", problems.size(), "and profile give", "mismatches" + first);
  }

  const StageRecord& stage_;
  const std::vector<DeviceFacts> devices_;
  const std::optional<const Profile*> ofProfile_;
  std::vector<std::string> out_;
};

bool listsDevices(const Json& facts) {
  const auto devices = facts.is_object() ? facts.find("devices") : facts.end();
  return devices != facts.end() && devices->is_array() &&
         std::all_of(devices->begin(), devices->end(), [](const Json& device) { return device.is_object(); });
}

}  // namespace

std::vector<std::string> skuMismatches(const std::vector<DeviceFacts>& devices, const Profile* profile) {
  std::map<std::string, Profile> only;
  if (profile != nullptr) only.emplace(profile->name, *profile);
  auto choice = chooseSku(only, profile == nullptr ? "auto" : profile->name, devices);
  return choice.ok() ? std::move(choice->problems) : std::vector<std::string>{choice.error().text()};
}

std::vector<std::string> inventoryDifferences(const Record& record, std::optional<const Profile*> ofProfile) {
  const auto stage = std::find_if(record.stages.begin(), record.stages.end(),
                                  [](const StageRecord& s) { return s.name == kInventoryStage; });
  NodeInventory inventory;
  if (listsDevices(record.inventory)) inventory.facts = record.inventory;
  if (stage == record.stages.end()) return {};  // checkStages finds it
  const auto evidence = evidenceFromRecord(*stage);
  if (!evidence.ok()) return {evidence.error().text()};
  const bool taken = stage->state == StageState::kRan &&
                     std::all_of(evidence->ends.begin(), evidence->ends.end(),
                                 [](const CaseEnd& end) { return end.state == CaseEnd::State::kOk; });
  if (taken) return InventoryComparison(*stage, inventory, ofProfile).compare();
  if (inventory.facts.is_null()) return {};
  return {fmt::format("stage {} failed, and the record's inventory lists devices", stage->name)};
}

std::string factsDifference(const Json& inRecord, const Json& other) {
  const Json a = inRecord.is_object() ? inRecord : Json::object();
  const Json b = other.is_object() ? other : Json::object();
  if (dumpJson(a) == dumpJson(b)) return "";
  const Json patch = Json::diff(b, a);
  if (patch.empty()) return "its fields are in another order";
  const auto shown = [](const Json& json, const auto& key) {
    return json.contains(key) ? printable(dumpJson(json.at(key)), kLongestValue) : "missing";
  };
  const std::string path = patch.front().value("path", "");
  return fmt::format("{} is {}, in the record {}", path, shown(b, Json::json_pointer(path)),
                     shown(patch.front(), std::string("value")));
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Runs the env plugin's inventory and judges it like a stage.
#include "runner/app/node/node_inventory.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr double kInventoryTimeout = 60;  // seconds; a hanging driver costs this much and is named
constexpr const char* kCountMetric = "env.device_count";
constexpr const char* kMismatchMetric = "env.sku_mismatches";

Expectation deviceExpectation(const std::string& metric, CheckKind kind, double limit,
                              const std::string& from) {
  Expectation expectation;
  expectation.metric = metric;
  expectation.kind = kind;
  expectation.limit = limit;
  expectation.unit = "count";
  expectation.source = from;
  expectation.origin = from;
  return expectation;
}

std::string originOf(const Profile* profile) {
  return profile == nullptr ? "standing" : "profile " + profile->name;
}

void expectMatches(const NodeInventory& inventory, const Profile* profile, StageEvidence& evidence) {
  Expectation match = deviceExpectation(kMismatchMetric, CheckKind::kMax, 0, originOf(profile));
  match.origin = "standing";
  match.remedy = join(inventory.skuProblems, "; ");
  evidence.expectations.push_back(match);
  Measurement mismatches;
  mismatches.metric = kMismatchMetric;
  mismatches.unit = "count";
  mismatches.direction = Direction::kLower;
  mismatches.samples = {static_cast<double>(inventory.skuProblems.size())};
  mismatches.caseId = kInventoryStage;
  evidence.measurements.push_back(std::move(mismatches));
  evidence.caseMetrics[kInventoryStage].insert(kMismatchMetric);
}

/// Facts are used only where this holds; those of a record may hold anything.
bool listsDevices(const Json& facts) {
  if (!facts.is_object()) return false;
  const auto devices = facts.find("devices");
  return devices != facts.end() && devices->is_array() &&
         std::all_of(devices->begin(), devices->end(), [](const Json& device) { return device.is_object(); });
}

}  // namespace

std::vector<DeviceFacts> NodeInventory::devices() const {
  std::vector<DeviceFacts> devices;
  if (!listsDevices(facts)) return devices;
  std::string vendor, product;
  if (facts.contains("host")) {
    JsonReader host(facts["host"], "host");
    host.optional("vendor", vendor);
    host.optional("product", product);
  }
  for (const Json& device : facts["devices"]) {
    DeviceFacts entry;
    entry.vendor = vendor;
    entry.product = product;
    JsonReader reader(device, "device");
    reader.optional("id", entry.id);
    reader.optional("kind", entry.kind);
    reader.optional("name", entry.name);
    reader.optional("pci_id", entry.pciId);
    reader.optional("memory_bytes", entry.memoryBytes);
    devices.push_back(std::move(entry));
  }
  return devices;
}

Json toJson(const NodeInventory& inventory) {
  return {{"facts", inventory.facts},
          {"problem", inventory.problem},
          {"no_gpu", inventory.noGpu},
          {"sku_how", inventory.skuHow},
          {"sku_problems", inventory.skuProblems}};
}

Result<NodeInventory> inventoryFromJson(const Json& json) {
  NodeInventory inventory;
  JsonReader reader(json, "inventory");
  reader.read("problem", inventory.problem);
  reader.read("no_gpu", inventory.noGpu);
  reader.read("sku_how", inventory.skuHow);
  reader.read("sku_problems", inventory.skuProblems);
  MUSTER_CHECK_OK(reader.status());
  if (reader.has("facts")) inventory.facts = json["facts"];
  if (!inventory.facts.is_null() && !listsDevices(inventory.facts))
    return Error{ErrorCode::kProtocol, "lists no devices", "inventory.facts"};
  return inventory;
}

Result<Stage> inventoryStage(const Catalog& catalog) {
  const PluginSpec* env = catalog.plugin("env");
  const TestSpec* test = env == nullptr ? nullptr : env->test("inventory");
  if (test == nullptr) {
    const auto refused = catalog.refused.find("env.so");
    const std::string why = refused == catalog.refused.end() ? "it is not installed" : refused->second.text();
    return Error{ErrorCode::kInternal, "the env plugin cannot be used: " + why, ""};
  }
  Stage stage;
  stage.name = kInventoryStage;
  stage.plugin = "env";
  stage.test = "inventory";
  stage.scope = Scope::kNode;
  stage.ranks = 1;
  stage.timeout = kInventoryTimeout;
  Case only{kInventoryStage, Json::object(), {}, {}};
  for (const ParamSpec& param : test->params) only.params[param.name] = param.defaultValue;
  stage.cases.push_back(std::move(only));
  return stage;
}

NodeInventory readInventory(const StageRecord& stage, const StageEvidence& evidence,
                            const std::filesystem::path& folder) {
  NodeInventory inventory;
  for (const CaseEnd& end : evidence.ends) {
    if (end.state == CaseEnd::State::kOk) continue;
    inventory.problem = end.message;
    inventory.noGpu = end.state == CaseEnd::State::kUnsupported;
    return inventory;
  }
  const std::string source = "inventory.json of the env plugin";
  for (const ArtifactRecord& artifact : stage.artifacts) {
    if (artifact.name != kInventoryFile) continue;
    auto text = readFile(folder / artifact.path);
    auto json = text.ok() ? parseJson(*text) : Result<Json>(text.error());
    if (!json.ok())
      inventory.problem = source + ": " + json.error().text();
    else if (!listsDevices(*json))
      inventory.problem = source + " lists no devices";
    else
      inventory.facts = std::move(json).value();
    return inventory;
  }
  inventory.problem = "the env plugin left no inventory.json";
  return inventory;
}

void useInventory(const NodeInventory& inventory, bool simulated, NodeProgress& node) {
  if (!listsDevices(inventory.facts)) return;
  for (const Json& device : inventory.facts["devices"]) {
    std::string id;
    JsonReader(device, "device").optional("id", id);
    node.devices.push_back({static_cast<int>(node.devices.size()), id, device});
  }
  if (const auto host = inventory.facts.find("host"); simulated && host != inventory.facts.end()) {
    std::vector<double> counts;
    JsonReader(*host, "host").optional("devices_of_nodes", counts);
    node.devicesOfNodes.assign(counts.begin(), counts.end());
  }
  if (node.profile != nullptr) {
    node.judge.peaks = node.profile->peaks;
    node.judge.peaksFrom = "profile " + node.profile->name;
  }
  // A device's own properties are the yardstick only for peaks that no profile fixes, as on a host of unknown
  // make.
  const bool fixed = !node.judge.peaks.empty();
  if (fixed || node.devices.empty()) return;
  const Json peaks = node.devices.front().deviceJson.value("peaks", Json::object());
  for (const auto& [name, value] : peaks.items())
    if (value.is_number()) node.judge.peaks[name] = value.get<double>();
  node.judge.peaksFrom = node.profile == nullptr ? "device properties (unknown SKU)" : "device properties";
}

void expectDeviceCount(const Profile* profile, StageEvidence& evidence) {
  const std::string from = originOf(profile);
  Expectation count = profile != nullptr && profile->deviceCount > 0
                          ? deviceExpectation(kCountMetric, CheckKind::kEquals, profile->deviceCount, from)
                          : deviceExpectation(kCountMetric, CheckKind::kMin, 1, from);
  count.remedy =
      "Check for a device that fell off the bus (nvidia-smi -L, lspci, dmesg) or is hidden by a setting; a "
      "virtual machine with one GPU of a board needs a profile for it, chosen by --sku (`muster skus`)";
  evidence.expectations.push_back(count);
}

void expectDevices(const NodeInventory& inventory, const Profile* profile, StageEvidence& evidence) {
  if (!inventory.problem.empty() && !inventory.noGpu)
    for (CaseEnd& end : evidence.ends) {
      end.state = CaseEnd::State::kError;
      end.message = inventory.problem;
    }
  if (!inventory.problem.empty()) return;
  expectDeviceCount(profile, evidence);
  expectMatches(inventory, profile, evidence);
}

}  // namespace muster

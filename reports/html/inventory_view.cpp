// SPDX-License-Identifier: Apache-2.0
// Inventory: free-form JSON as tables; properties that all devices share are told once.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/html/sections.h"
#include "runner/core/json.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/record_check.h"

namespace muster {
namespace {

constexpr int kMaxDepth = 6;     ///< deeper parts are shown as JSON
constexpr size_t kMaxList = 16;  ///< longer lists are shown by their length and head
/// An inventory is free-form: neither long names nor rows of one property each must multiply.
constexpr size_t kMostKeyBytes = 200;
constexpr size_t kMostPairs = 2'000;  ///< of one list
constexpr size_t kMostCells = 200'000;
constexpr size_t kMostColumns = 1'000;
using Pairs = std::vector<std::pair<std::string, std::string>>;

bool endsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// A scalar for people: bytes by the name of their key get a unit.
std::string scalarText(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() && (endsWith(key, "bytes") || endsWith(key, "_b")))
    return formatQuantity(value.get<double>(), "B");
  // "peaks.flops.bf16": theoretical rates.
  const std::string unit = peakUnit(key.rfind("peaks.", 0) == 0 ? key.substr(6) : key);
  if (value.is_number() && !unit.empty()) return formatQuantity(value.get<double>(), unit);
  if (value.is_number_float()) return formatQuantity(value.get<double>(), "number", 6);
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "";
  return dumpJson(value);
}

std::string listText(const std::string& key, const Json& list) {
  std::vector<std::string> parts;
  for (const auto& item : list) {
    if (parts.size() == kMaxList) return fmt::format("{} … ({} in all)", join(parts, ", "), list.size());
    parts.push_back(item.is_structured() ? dumpJson(item) : scalarText(key, item));
  }
  return join(parts, ", ");
}

/// Key and value of every leaf; nested keys are joined by a dot.
void flatten(const Json& value, const std::string& key, int depth, Pairs& out) {
  if (value.is_object() && depth < kMaxDepth) {
    for (const auto& [name, item] : value.items()) {
      const std::string whole = key.empty() ? name : key + "." + name;
      flatten(item, whole.size() > kMostKeyBytes ? printable(whole, kMostKeyBytes) : whole, depth + 1, out);
    }
    return;
  }
  const std::string text = value.is_array()    ? listText(key, value)
                           : value.is_object() ? dumpJson(value)
                                               : scalarText(key, value);
  if (!text.empty()) out.emplace_back(key, text);
}

/// "memory_bytes" -> "memory", "facts.vbios" -> "vbios": the value tells the unit, and facts are facts.
std::string plainKey(std::string key) {
  if (key.rfind("facts.", 0) == 0) key.erase(0, 6);
  if (endsWith(key, "_bytes")) key.erase(key.size() - 6);
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

View factView(const std::string& key, const std::string& value) {
  View view;
  view.text("name", plainKey(key)).text("value", value);
  return view;
}

/// The first kMostPairs of `items`, and how many there are.
template <typename Items, typename F>
std::vector<View> firstViews(const Items& items, F make) {
  std::vector<View> views;
  for (size_t i = 0; i < std::min(items.size(), kMostPairs); ++i) views.push_back(make(items[i]));
  if (items.size() > kMostPairs)
    views.push_back(factView(
        "list cut", fmt::format("to the first {} of {}; record.json has all", kMostPairs, items.size())));
  return views;
}

std::vector<View> pairViews(const Pairs& pairs) {
  return firstViews(pairs, [](const auto& pair) { return factView(pair.first, pair.second); });
}

const Json& part(const Json& inventory, const char* key) {
  static const Json kNothing;
  if (!inventory.is_object()) return kNothing;
  const auto found = inventory.find(key);
  return found == inventory.end() ? kNothing : *found;
}

/// The first devices as properties: key -> value by number of the device, in the order of first appearance.
struct DeviceTable {
  size_t count = 0;  ///< of all devices
  std::vector<std::string> ids;
  std::vector<std::string> keys;
  std::map<std::string, std::map<size_t, std::string>> values;
};

DeviceTable deviceTable(const Json& devices) {
  DeviceTable table;
  if (!devices.is_array()) return table;
  table.count = devices.size();
  for (size_t i = 0; i < std::min(devices.size(), kMostInventoryDevices); ++i) {
    Pairs pairs;
    flatten(devices[i], "", 0, pairs);
    std::string id = fmt::format("device {}", i);
    for (const auto& [key, value] : pairs) {
      if (key == "id") id = value;
      if (key == "id" || key == "index") continue;
      auto& row = table.values[key];
      if (row.empty()) table.keys.push_back(key);
      row[i] = value;
    }
    table.ids.push_back(id);
  }
  return table;
}

bool allEqual(const std::map<size_t, std::string>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](const auto& value) { return value.second == values.begin()->second; });
}

void addDevices(View& page, const DeviceTable& table) {
  Pairs shared;
  std::vector<View> rows;
  std::vector<std::string> differing;
  for (const auto& key : table.keys) {
    const auto& values = table.values.at(key);
    if (values.size() == table.ids.size() && allEqual(values))
      shared.emplace_back(key, values.begin()->second);
    else
      differing.push_back(key);
  }
  const size_t all = differing.size();
  differing.resize(std::min({all, kMostColumns, kMostCells / std::max<size_t>(table.ids.size(), 1)}));
  if (table.ids.size() < table.count || differing.size() < all)
    shared.emplace(shared.begin(), "table cut",
                   fmt::format("to the first {} of {} devices and {} of {} properties; record.json has all",
                               table.ids.size(), table.count, differing.size(), all));
  for (size_t i = 0; i < table.ids.size(); ++i) {
    View row;
    row.text("id", table.ids[i]);
    row.list("cells", viewsOf(differing, [&](const auto& key) {
               View cell;
               const auto& values = table.values.at(key);
               const auto found = values.find(i);
               cell.text("value", found == values.end() ? "" : found->second);
               return cell;
             }));
    rows.push_back(std::move(row));
  }
  page.list("device_shared", pairViews(shared));
  page.list("device_keys", viewsOf(differing, [](const auto& key) { return factView(key, ""); }));
  page.list("device_rows", std::move(rows));
  page.text("device_count", std::to_string(table.count));
}

View nicView(const Json& nic) {
  Pairs pairs;
  flatten(nic, "", 0, pairs);
  std::vector<std::string> texts;
  std::string name = "interface";
  for (const auto& [key, value] : pairs) {
    if (key == "name")
      name = value;
    else
      texts.push_back(plainKey(key) + " " + value);
  }
  return factView(name, join(texts, " · "));
}

}  // namespace

void addInventory(View& page, const Record& record) {
  addDevices(page, deviceTable(part(record.inventory, "devices")));
  for (const char* name : {"host", "software"}) {
    Pairs pairs;
    flatten(part(record.inventory, name), "", 0, pairs);
    page.list(name, pairViews(pairs));
  }
  const Json& nics = part(record.inventory, "nics");
  page.list("nics", nics.is_array() ? firstViews(nics, nicView) : std::vector<View>{});
  Pairs other;
  if (record.inventory.is_object())
    for (const auto& [key, value] : record.inventory.items())
      if (key != "devices" && key != "host" && key != "software" && key != "nics")
        flatten(value, key, 1, other);
  page.list("other_inventory", pairViews(other));
}

}  // namespace muster

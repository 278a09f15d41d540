// SPDX-License-Identifier: Apache-2.0
// The bill of materials, the concessions, and the checks nearest to their limits.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/html/page_one/categories.h"
#include "reports/html/page_one/page_one.h"
#include "runner/core/text.h"
#include "runner/record/findings/concessions.h"
#include "runner/record/findings/incidents.h"
#include "runner/record/findings/parts.h"

namespace muster {
namespace {

constexpr size_t kMostParts = 8;
constexpr size_t kMostConcessions = 2;
constexpr size_t kMostNearest = 6;

/// One line of the bill of materials: pieces, or a version.
struct Part {
  std::string name;
  std::string ordered;
  std::string found;
  std::string accepted;
};

/// Which devices are accepted. Nothing is while a finding concerns the whole node or the run gave no verdict.
class AcceptedDevices {
 public:
  explicit AcceptedDevices(const Record& record)
      : decided_(record.acceptance == Acceptance::kAccepted || record.acceptance == Acceptance::kRejected) {
    for (const Deviation& deviation : deviations(record)) {
      if (!deviation.blocks) continue;
      const auto devices = deviation.devices();
      if (devices.empty()) decided_ = false;
      rejected_.insert(devices.begin(), devices.end());
    }
  }
  [[nodiscard]] bool decided() const { return decided_; }
  [[nodiscard]] bool accepts(const std::string& device) const { return rejected_.count(device) == 0; }

 private:
  bool decided_;
  std::set<std::string> rejected_;
};

const OrderedPart* orderOf(const AcceptanceDocument& document, const std::string& name) {
  const auto found = std::find_if(document.ordered.begin(), document.ordered.end(),
                                  [&](const OrderedPart& part) { return part.part == name; });
  return found == document.ordered.end() ? nullptr : &*found;
}

std::string orderedText(const OrderedPart* order) {
  if (order == nullptr) return "";
  return order->count > 0 ? std::to_string(order->count) : order->version;
}

/// Devices by model; network interfaces by their rate.
std::vector<Part> countedParts(const Record& record, const AcceptanceDocument& document) {
  const AcceptedDevices accepted(record);
  std::map<std::string, std::pair<size_t, size_t>> counts;  // name -> found, accepted
  const auto count = [&](const std::string& name, const std::string& id) {
    auto& [found, good] = counts[name];
    ++found;
    good += accepted.accepts(id) ? 1 : 0;
  };
  for (const DevicePart& device : devicesOf(record))
    count(device.name.empty() ? "unnamed device" : device.name, device.id);
  if (const Json& nics = inventoryPart(record, "nics"); nics.is_array())
    for (const Json& nic : nics)
      if (const std::string rate = textAt(nic, "rate"); !rate.empty())
        count("network interface " + rate, textAt(nic, "name"));
  std::vector<Part> parts;
  for (const auto& [name, numbers] : counts)
    parts.push_back({name, orderedText(orderOf(document, name)), std::to_string(numbers.first),
                     accepted.decided() ? std::to_string(numbers.second) : "undecided"});
  return parts;
}

/// The version of `name`: the node's, or the one that all devices have.
std::string versionOf(const Record& record, const std::string& name) {
  const std::string version = textAt(inventoryPart(record, "software"), name.c_str());
  if (!version.empty()) return version;
  std::set<std::string> versions;
  if (const Json& devices = inventoryPart(record, "devices"); devices.is_array())
    for (const Json& device : devices)
      if (device.is_object() && device.contains("facts"))
        versions.insert(textAt(device["facts"], name.c_str()));
  versions.erase("");
  return join({versions.begin(), versions.end()}, ", ");
}

Part versionPart(const Record& record, const std::string& name, const OrderedPart* order) {
  const std::string found = versionOf(record, name);
  const std::string accepted = order == nullptr ? "" : found == order->version ? "yes" : "no";
  return {name, orderedText(order), found.empty() ? "none" : found, accepted};
}

/// What was found, then what was ordered and is not there.
std::vector<Part> partsOf(const Record& record, const AcceptanceDocument& document) {
  std::vector<Part> parts = countedParts(record, document);
  const auto isListed = [&](const std::string& name) {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name; });
  };
  for (const char* name : {"driver", "vbios"})
    if (orderOf(document, name) == nullptr && !versionOf(record, name).empty())
      parts.push_back(versionPart(record, name, nullptr));
  for (const OrderedPart& order : document.ordered) {
    if (isListed(order.part)) continue;
    if (order.count > 0)
      parts.push_back({order.part, orderedText(&order), "0", "0"});
    else
      parts.push_back(versionPart(record, order.part, &order));
  }
  return parts;
}

View partView(const Part& part) {
  View view;
  for (const auto& [name, value] : {std::pair{"name", &part.name},
                                    {"ordered", &part.ordered},
                                    {"found", &part.found},
                                    {"accepted", &part.accepted}})
    view.text(name, printable(*value, kLongestCell));
  return view;
}

View concessionView(const Concession& concession) {
  View view;
  constexpr size_t kLongestName = 44;
  view.text("part", printable(concession.part, kLongestCell))
      .text("what", printable(concession.what, kLongestCell));
  view.text("approver", printable(concession.approver, kLongestName));
  view.text("expires", printable(concession.expires, kLongestName));
  return view;
}

View nearestView(const NearestCheck& check) {
  const Verdict& verdict = *check.verdict;
  View view;
  view.text("metric", printable(metricWords(verdict.metric), kLongestCell));
  view.text("device", printable(verdict.device.empty() ? "node" : verdict.device, kLongestCell));
  view.text("margin", marginText(verdict));
  return view;
}

/// At most `most` items of a list under `name`, and how many are left.
template <typename Items, typename F>
void addFirst(View& page, const std::string& name, Items items, size_t most, F make) {
  const size_t left = items.size() > most ? items.size() - most : 0;
  items.resize(items.size() - left);
  page.list(name, viewsOf(items, make)).text(name + "_left", left > 0 ? std::to_string(left) : "");
}

}  // namespace

void addParts(View& page, const Record& record, const AcceptanceDocument& document) {
  addFirst(page, "parts", partsOf(record, document), kMostParts, partView);
  addFirst(page, "concessions", concessionsOf(record), kMostConcessions, concessionView);
  addFirst(page, "nearest", nearestChecks(record), kMostNearest, nearestView);
}

}  // namespace muster

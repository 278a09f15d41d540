// SPDX-License-Identifier: Apache-2.0
// Matches the devices of a node to a SKU profile: PCI id, name and memory class together; the count is never
// a key.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/sku/profile.h"

namespace muster {
namespace {

std::string describe(const DeviceFacts& device) {
  std::string pci = device.pciId.empty() ? "" : ", PCI id " + device.pciId;
  return fmt::format("{} ({}{}, {:.1f} GB)", device.id, printable(device.name), pci,
                     device.memoryBytes / 1e9);
}

bool holds(const std::vector<std::string>& list, const std::string& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

/// What of `device` does not fit; empty when it matches.
std::vector<std::string> differences(const SkuMatch& match, const DeviceFacts& device) {
  std::vector<std::string> found;
  if (!match.kind.empty() && match.kind != device.kind)
    found.push_back(fmt::format("kind {} in place of {}", device.kind, match.kind));
  if (!holds(match.pciIds, device.pciId))
    found.push_back(fmt::format("PCI id {} in place of {}", device.pciId.empty() ? "unknown" : device.pciId,
                                join(match.pciIds, " or ")));
  if (!holds(match.names, device.name))
    found.push_back(
        fmt::format("name \"{}\" in place of \"{}\"", printable(device.name), join(match.names, "\" or \"")));
  for (const auto& [what, wanted, own] : {std::tuple("vendor", &match.vendors, &device.vendor),
                                          std::tuple("product", &match.products, &device.product)})
    if (!holds(*wanted, *own))
      found.push_back(fmt::format("{} of the machine {} in place of \"{}\"", what,
                                  own->empty() ? "unknown" : "\"" + printable(*own) + "\"",
                                  join(*wanted, "\" or \"")));
  if (device.memoryBytes < match.memoryMin || (match.memoryMax > 0 && device.memoryBytes > match.memoryMax))
    found.push_back(fmt::format("memory {:.1f} GB outside {:.1f} to {:.1f} GB", device.memoryBytes / 1e9,
                                match.memoryMin / 1e9, match.memoryMax / 1e9));
  return found;
}

/// How a match came about, in words: "matched by PCI id 10de:2330, name and memory".
std::string matchedBy(const Profile& profile, const DeviceFacts& device) {
  std::vector<std::string> keys;
  if (!profile.match.pciIds.empty()) keys.push_back("PCI id " + device.pciId);
  if (!profile.match.names.empty()) keys.emplace_back("name");
  if (profile.match.memoryMax > 0) keys.emplace_back("memory");
  if (!profile.match.vendors.empty()) keys.push_back("vendor " + printable(device.vendor));
  if (!profile.match.products.empty()) keys.push_back("product " + printable(device.product));
  if (keys.empty()) return "matched by kind " + device.kind;
  std::string last = keys.back();
  keys.pop_back();
  return "matched by " + (keys.empty() ? last : join(keys, ", ") + " and " + last);
}

/// The profile that matches with most conditions, or nullptr; a tie is told in `ambiguous`.
const Profile* profileOf(const std::map<std::string, Profile>& profiles, const DeviceFacts& device,
                         std::string& ambiguous) {
  std::vector<std::string> names;
  const Profile* found = nullptr;
  for (const auto& [name, profile] : profiles) {
    if (profile.match.onlyByName || !differences(profile.match, device).empty()) continue;
    const int conditions = profile.match.conditions(),
              most = found == nullptr ? -1 : found->match.conditions();
    if (conditions < most) continue;
    if (conditions > most) names.clear();
    names.push_back(name);
    found = &profile;
  }
  if (names.size() < 2) return found;
  ambiguous =
      fmt::format("{} matches several profiles equally well ({}); name one with `sku` of the plan or --sku",
                  describe(device), join(names, ", "));
  return nullptr;
}

/// The profile that differs least from `device`, with its differences, for the text about an unknown SKU.
std::string nearestProfile(const std::map<std::string, Profile>& profiles, const DeviceFacts& device) {
  size_t fewest = 3;
  std::string text;
  for (const auto& [name, profile] : profiles) {
    if (profile.match.onlyByName || profile.match.kind != device.kind) continue;
    std::vector<std::string> found = differences(profile.match, device);
    if (found.size() >= fewest) continue;
    fewest = found.size();
    text = fmt::format("; nearest is {}, but: {}", name, join(found, ", "));
  }
  return text;
}

void noteStrangers(SkuChoice& choice, const std::vector<DeviceFacts>& devices) {
  for (const DeviceFacts& device : devices) {
    std::vector<std::string> found = differences(choice.profile->match, device);
    if (!found.empty())
      choice.problems.push_back(
          fmt::format("{} is not a {}: {}", describe(device), choice.profile->name, join(found, ", ")));
  }
}

/// The limits, the driver's counters and the kernels are those of NVIDIA's GPUs: no limit that a plan or a
/// profile states makes another vendor's GPU a tested one.
void noteOtherVendors(SkuChoice& choice, const std::vector<DeviceFacts>& devices) {
  constexpr const char* kNvidia = "10de:";
  for (const DeviceFacts& device : devices)
    if (device.kind == "gpu" && !device.pciId.empty() && !device.pciId.starts_with(kNvidia))
      choice.problems.push_back(describe(device) + " is of an unknown vendor: Muster tests NVIDIA GPUs");
}

Result<SkuChoice> namedSku(const std::map<std::string, Profile>& profiles, const std::string& sku,
                           const std::vector<DeviceFacts>& devices) {
  auto found = profiles.find(sku);
  if (found == profiles.end()) {
    std::vector<std::string> names;
    for (const auto& [name, profile] : profiles) names.push_back(name);
    return Error{ErrorCode::kUsage,
                 fmt::format("there is no SKU profile \"{}\"{}; known: auto, {}", printable(sku),
                             didYouMean(sku, names), join(names, ", ")),
                 ""};
  }
  SkuChoice choice;
  choice.profile = &found->second;
  choice.how = "named by the plan";
  noteOtherVendors(choice, devices);
  if (devices.empty()) choice.problems.push_back("no device was found, a " + sku + " was expected");
  noteStrangers(choice, devices);
  return choice;
}

/// The profile that most devices match; of equals, the one that comes first in device order.
const Profile* majority(const std::vector<const Profile*>& matches) {
  const Profile* best = nullptr;
  long most = 0;
  for (const Profile* candidate : matches) {
    long votes = std::count(matches.begin(), matches.end(), candidate);
    if (candidate == nullptr || votes <= most) continue;
    best = candidate;
    most = votes;
  }
  return best;
}

}  // namespace

int SkuMatch::conditions() const {
  const bool all[] = {!pciIds.empty(), !names.empty(),   memoryMin > 0,    memoryMax > 0,
                      !kind.empty(),   !vendors.empty(), !products.empty()};
  return static_cast<int>(std::count(std::begin(all), std::end(all), true));
}

Result<SkuChoice> chooseSku(const std::map<std::string, Profile>& profiles, const std::string& sku,
                            const std::vector<DeviceFacts>& devices) {
  if (sku != "auto") return namedSku(profiles, sku, devices);
  SkuChoice choice;
  if (devices.empty()) {
    choice.how = "unknown: no device was found";
    return choice;
  }
  noteOtherVendors(choice, devices);
  std::vector<const Profile*> matches;
  std::string ambiguous;
  for (const DeviceFacts& device : devices) matches.push_back(profileOf(profiles, device, ambiguous));
  choice.profile = majority(matches);
  if (choice.profile == nullptr && !ambiguous.empty()) return Error{ErrorCode::kUsage, ambiguous, ""};
  if (choice.profile == nullptr) {
    const DeviceFacts& first = devices.front();
    choice.how = "unknown: no profile matches " + describe(first) + nearestProfile(profiles, first);
    return choice;
  }
  size_t example = std::find(matches.begin(), matches.end(), choice.profile) - matches.begin();
  choice.how = matchedBy(*choice.profile, devices[example]);
  noteStrangers(choice, devices);
  return choice;
}

Status checkOrigin(const Profile& profile, bool simulated) {
  const bool ofScenario = profile.facts.count(kSimulatedFact) > 0;
  const bool learned = profile.facts.count(kLearnedFact) > 0;
  if (ofScenario && !simulated)
    return Error{ErrorCode::kUsage,
                 fmt::format("profile {} was learned from simulated records ({}): its limits come from a "
                             "scenario and do not apply to real hardware; learn one from real "
                             "records (`muster baseline learn RUN -o FILE`), or take a shipped profile "
                             "(`muster skus`)",
                             profile.name, printable(profile.facts.at(kSimulatedFact), 120)),
                 profile.path.string()};
  if (learned && !ofScenario && simulated)
    return Error{ErrorCode::kUsage,
                 fmt::format("profile {} was learned from real records ({}), and this run is simulated: its "
                             "devices come from a scenario; use a shipped profile (`muster skus`), or "
                             "learn one from simulated records (`muster baseline learn RUN "
                             "--allow-simulated -o FILE`)",
                             profile.name, printable(profile.facts.at(kLearnedFact), 120)),
                 profile.path.string()};
  return {};
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Assigns devices, CPUs and rails to the ranks of a stage.
#include "runner/app/stage/rank_slots.h"

#include <map>
#include <utility>

#include "runner/core/text.h"

namespace muster {
namespace {

/// Divides a device's processors among the ranks that share it: each would else work with all of them. Every
/// n-th goes to the same rank, which keeps hardware threads together (Linux numbers the second ones after all
/// first ones).
void shareProcessors(std::vector<RankSlot>& slots) {
  std::map<std::string, std::vector<RankSlot*>> sharers;
  for (RankSlot& slot : slots) sharers[slot.device].push_back(&slot);
  for (const auto& [device, ranks] : sharers) {
    const Json cpus = ranks[0]->deviceJson.value("cpus", Json::array());
    if (ranks.size() < 2 || !cpus.is_array() || cpus.size() < ranks.size()) continue;
    for (size_t i = 0; i < ranks.size(); ++i) {
      Json share = Json::array();
      for (size_t at = i; at < cpus.size(); at += ranks.size()) share.push_back(cpus[at]);
      ranks[i]->deviceJson["cpus"] = std::move(share);
    }
  }
}

}  // namespace

std::vector<RankSlot> slotsFor(const std::vector<RankSlot>& devices, const Stage& stage) {
  // One rank of a node-scope stage looks at the node as a whole and is bound to no device.
  if (stage.scope == Scope::kNode && stage.ranks == 1) return {RankSlot{0, "", Json()}};
  const size_t count = stage.ranks > 0 ? static_cast<size_t>(stage.ranks) : devices.size();
  std::vector<RankSlot> slots;
  for (size_t i = 0; i < count && !devices.empty(); ++i) {
    RankSlot slot = devices[i % devices.size()];
    slot.rank = static_cast<int>(i);
    slots.push_back(std::move(slot));
  }
  shareProcessors(slots);
  return slots;
}

void keepOnly(const std::vector<std::string>& devices, std::vector<RankSlot>& slots) {
  if (devices.empty()) return;
  std::erase_if(slots, [&](const RankSlot& slot) { return !contains(devices, slot.device); });
  for (size_t i = 0; i < slots.size(); ++i) slots[i].rank = static_cast<int>(i);
}

}  // namespace muster

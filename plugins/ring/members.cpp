// SPDX-License-Identifier: Apache-2.0
// The members, told to all ranks through the communicator: names travel as numbers, so no store is needed.
#include "plugins/ring/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "kernels/checks/largest.h"
#include "runner/core/majority.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster::ring {
namespace {

constexpr size_t kBytesPerNumber = 4;  ///< maxOverRanks() keeps whole numbers below 2^33
constexpr size_t kNumbersPerName = 16;

void encode(const std::string& name, double* out) {
  for (size_t i = 0; i < kNumbersPerName; ++i) {
    uint64_t number = 0;
    for (size_t j = 0; j < kBytesPerNumber; ++j) {
      const size_t at = i * kBytesPerNumber + j;
      number = number << 8 | (at < name.size() ? static_cast<unsigned char>(name[at]) : 0u);
    }
    out[i] = static_cast<double>(number);
  }
}

std::string decode(const double* in) {
  std::string name;
  for (size_t i = 0; i < kNumbersPerName; ++i) {
    const auto number = static_cast<uint64_t>(in[i]);
    for (size_t j = kBytesPerNumber; j-- > 0;)
      if (const auto c = static_cast<char>(number >> (8 * j) & 0xff); c != 0) name += c;
  }
  return name;
}

/// Simulated ranks do not talk. Their names are those that the runner tells, or its own for simulated nodes:
/// node 3 of "sim-node-0005"'s group is "sim-node-0003". Else no node has a name, not even the own one: all
/// ranks must call a node the same, or one finding looks like several.
std::string simulatedName(const Place& place, int node) {
  constexpr std::string_view kPrefix = "sim-node-";
  if (static_cast<size_t>(node) < place.nodeNames.size()) return place.nodeNames[static_cast<size_t>(node)];
  if (place.nodeName != fmt::format("{}{:04}", kPrefix, place.node)) return fmt::format("node-rank-{}", node);
  return fmt::format("{}{:04}", kPrefix, node);
}

struct Seat {
  int node = 0;
  int local = 0;
  int localSize = 0;
  std::string name;
  std::pair<double, double> machine;  ///< equal for ranks on the same one
};

/// Of this boot of this machine, in two numbers that maxOverRanks() keeps; zeros: unknown.
std::pair<double, double> machineNumber() {
  const auto id = readFile("/proc/sys/kernel/random/boot_id");
  if (!id.ok()) return {};
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : *id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return {static_cast<double>(hash >> 32), static_cast<double>(hash & 0xffffffffu)};
}

/// Ranks stand node by node, as the runner numbers them, and those of a node say alike how many they are: no
/// rank is one of another's node.
Status checkSeats(const Place& place, const std::vector<Seat>& seats) {
  int nodes = 0, local = 0, size = 0, last = -1;
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    const Seat& seat = seats[rank];
    const bool isFirst = local == size;
    if (isFirst) {
      ++nodes;
      local = 0;
      size = seat.localSize;
    }
    if ((isFirst ? seat.node <= last : seat.node != last) || seat.local != local || seat.localSize != size)
      return Error{ErrorCode::kPeer,
                   fmt::format("ranks contradict each other in where they are, at rank {} of the group: a "
                               "wrong place came from a rank that cannot be told",
                               rank),
                   "ring"};
    last = seat.node;
    ++local;
  }
  if (local == size && nodes == place.nodes) return {};
  return Error{
      ErrorCode::kPeer,
      fmt::format("ranks are on {} nodes by their own words, and the group has {}: a wrong place came "
                  "from a rank that cannot be told",
                  nodes, place.nodes),
      "ring"};
}

Result<std::vector<Seat>> gatherSeats(const Place& place, Communicator& communicator) {
  const auto size = static_cast<size_t>(communicator.size());
  std::vector<Seat> seats(size);
  if (!communicator.ranksTalk()) {
    int node = place.nodes > 1 ? 0 : place.node, local = 0;
    std::string name = simulatedName(place, node);
    for (Seat& seat : seats) {
      const auto at = static_cast<size_t>(node);
      if (local >= (at < place.nodeRanks.size() ? place.nodeRanks[at] : place.localSize)) {
        name = simulatedName(place, ++node);
        local = 0;
      }
      seat = {node, local++, 0, name, {node + 1.0, 0}};
    }
    return seats;
  }
  constexpr size_t kWidth = 5 + kNumbersPerName;
  std::vector<double> told(size * kWidth);
  double* own = &told[static_cast<size_t>(communicator.rank()) * kWidth];
  own[0] = place.node;
  own[1] = place.localRank;
  own[2] = place.localSize;
  std::tie(own[3], own[4]) = machineNumber();
  encode(place.nodeName, own + 5);
  std::vector<bool> mine(told.size());
  std::fill_n(mine.begin() + (own - told.data()), kWidth, true);
  MUSTER_TRY(const std::vector<double> all, gatherOverRanks(communicator, told, mine));
  for (size_t i = 0; i < size; ++i)
    seats[i] = {static_cast<int>(all[i * kWidth]),
                static_cast<int>(all[i * kWidth + 1]),
                static_cast<int>(all[i * kWidth + 2]),
                decode(&all[i * kWidth + 5]),
                {all[i * kWidth + 3], all[i * kWidth + 4]}};
  MUSTER_CHECK_OK(checkSeats(place, seats));
  return seats;
}

/// kPeer to those who have what most nodes have, where another has fewer: that one is at fault.
Status checkRails(const Members& members) {
  std::map<size_t, size_t> nodesWith;  // by number of ranks
  for (const auto& ranks : members.ranks) ++nodesWith[ranks.size()];
  const auto& [rails, nodes] =
      *std::max_element(nodesWith.begin(), nodesWith.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second, a.first) < std::pair(b.second, b.first);
      });
  const bool isInMajority = members.ranks[static_cast<size_t>(members.own)].size() == rails &&
                            isMajority(nodes, members.ranks.size()) && nodesWith.rbegin()->first == rails;
  for (size_t i = 0; i < members.ranks.size(); ++i)
    if (members.ranks[i].size() != rails)
      return Error{isInMajority ? ErrorCode::kPeer : ErrorCode::kUsage,
                   fmt::format("{} has {} ranks where others have {}; the ring pairs rail with rail, so all "
                               "nodes need the same number: set `ranks` for the stage, or repair the node",
                               printable(members.names[i]), members.ranks[i].size(), rails),
                   "ring"};
  return {};
}

}  // namespace

Result<Place> placeOf(const Json& context) {
  Place place;
  JsonReader reader(context, "context");
  reader.read("scope", place.scope);
  reader.read("rank", place.rank);
  reader.read("world_size", place.worldSize);
  reader.optional("local_rank", place.localRank);
  place.localSize = place.worldSize;
  reader.optional("local_size", place.localSize);
  if (const Json* node = reader.object("node"); node != nullptr) {
    JsonReader inner(*node, "context.node");
    inner.read("rank", place.node);
    inner.read("count", place.nodes);
    inner.read("name", place.nodeName);
    inner.optional("names", place.nodeNames);
    inner.optional("ranks", place.nodeRanks);
    MUSTER_CHECK_OK(inner.status());
  }
  if (const Json* device = reader.object("device"); device != nullptr) {
    JsonReader inner(*device, "context.device");
    inner.read("id", place.device);
    MUSTER_CHECK_OK(inner.status());
  }
  MUSTER_CHECK_OK(reader.status());
  if (place.scope != "cluster") place.nodes = 1;
  return place;
}

Result<Members> gatherMembers(const Place& place, Communicator& communicator) {
  MUSTER_TRY(const std::vector<Seat> seats, gatherSeats(place, communicator));
  std::map<int, std::map<int, int>> byNode;  // node -> local rank -> rank
  for (size_t i = 0; i < seats.size(); ++i) byNode[seats[i].node][seats[i].local] = static_cast<int>(i);
  std::vector<std::string> names;  // of nodes, in their order
  for (const auto& [node, locals] : byNode)
    names.push_back(seats[static_cast<size_t>(locals.begin()->second)].name);
  if (communicator.ranksTalk()) keepOwnNames(names);
  Members members;
  members.areNodes = byNode.size() > 1;
  std::map<std::pair<double, double>, int> machines;
  for (const auto& [node, locals] : byNode) {
    for (const auto& [local, rank] : locals) {
      if (byNode.size() == 1 || members.ranks.empty() || local == locals.begin()->first) {
        members.ranks.emplace_back();
        const auto machine = seats[static_cast<size_t>(rank)].machine;
        members.machines.push_back(
            machines.try_emplace(machine, static_cast<int>(machines.size())).first->second);
        members.names.push_back(byNode.size() == 1 ? fmt::format("rank{}", rank)
                                                   : names[members.names.size()]);
      }
      if (rank == communicator.rank()) {
        members.own = members.count() - 1;
        members.ownRail = static_cast<int>(members.ranks.back().size());
      }
      members.ranks.back().push_back(rank);
    }
  }
  MUSTER_CHECK_OK(checkRails(members));
  return members;
}

}  // namespace muster::ring

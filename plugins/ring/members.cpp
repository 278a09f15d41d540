// SPDX-License-Identifier: Apache-2.0
// The members, told to all ranks through the communicator: names travel as numbers, so no store is needed.
#include "plugins/ring/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runner/core/text.h"

namespace muster::ring {
namespace {

constexpr size_t kBytesPerNumber = 6;  ///< a double holds whole numbers below 2^53
constexpr size_t kNumbersPerName = 11;

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

/// Simulated ranks do not talk: node 3 of "sim-node-0005"'s group is "sim-node-0003". Where names do not end
/// with the node's rank, only the own one is known; the others must not look like names of nodes that exist.
std::string simulatedName(const Place& place, int node) {
  const std::string digits = fmt::format("{}", place.node);
  size_t start = place.nodeName.find_last_not_of("0123456789");
  start = start == std::string::npos ? 0 : start + 1;
  const std::string tail = place.nodeName.substr(start);
  if (tail.size() < digits.size() || tail != fmt::format("{:0{}}", place.node, tail.size()))
    return node == place.node ? place.nodeName : fmt::format("node-rank-{}", node);
  return fmt::format("{}{:0{}}", place.nodeName.substr(0, start), node, tail.size());
}

struct Seat {
  int node = 0;
  int local = 0;
  std::string name;
};

Result<std::vector<Seat>> gatherSeats(const Place& place, Communicator& communicator) {
  const auto size = static_cast<size_t>(communicator.size());
  std::vector<Seat> seats(size);
  if (!communicator.ranksTalk()) {
    for (size_t i = 0; i < size; ++i) {
      const int node = place.nodes > 1 ? static_cast<int>(i) / place.localSize : place.node;
      seats[i] = {node, static_cast<int>(i) % place.localSize, simulatedName(place, node)};
    }
    return seats;
  }
  constexpr size_t kWidth = 2 + kNumbersPerName;
  std::vector<double> told(size * kWidth);
  double* own = &told[static_cast<size_t>(communicator.rank()) * kWidth];
  own[0] = place.node;
  own[1] = place.localRank;
  encode(place.nodeName, own + 2);
  MUSTER_TRY(const std::vector<double> all, communicator.maxOverRanks(told));
  for (size_t i = 0; i < size; ++i)
    seats[i] = {static_cast<int>(all[i * kWidth]), static_cast<int>(all[i * kWidth + 1]),
                decode(&all[i * kWidth + 2])};
  return seats;
}

Status checkRails(const Members& members) {
  const size_t rails = members.ranks.front().size();
  for (size_t i = 0; i < members.ranks.size(); ++i)
    if (members.ranks[i].size() != rails)
      return Error{ErrorCode::kUsage,
                   fmt::format("{} has {} ranks and {} has {}; the ring pairs rail with rail, so every node "
                               "must have as many: give the stage `ranks`, or repair the node",
                               printable(members.names[i]), members.ranks[i].size(),
                               printable(members.names.front()), rails),
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
  Members members;
  for (const auto& [node, locals] : byNode) {
    for (const auto& [local, rank] : locals) {
      if (byNode.size() == 1 || members.ranks.empty() || local == locals.begin()->first) {
        members.ranks.emplace_back();
        members.names.push_back(byNode.size() == 1 ? fmt::format("rank{}", rank)
                                                   : seats[static_cast<size_t>(rank)].name);
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

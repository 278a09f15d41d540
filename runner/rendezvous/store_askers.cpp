// SPDX-License-Identifier: Apache-2.0
// Numbers of open requests, and the connections that they belong to.
#include "runner/rendezvous/store_askers.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

StoreAskers::Taken StoreAskers::take(StorePeerId connection, StoreRequest request, double now,
                                     std::vector<Answer>& out) {
  auto& open = open_[connection];
  const auto known = open.find(request.id);
  if (request.op == StoreOp::kWithdraw) {
    if (known == open.end()) return Taken::kAsked;  // its answer is on the way
    if (request.count == 1) {
      desk_.leaveRank(known->second, request.number);
      return Taken::kAsked;
    }
    desk_.leave(known->second);
    askers_.erase(known->second);
    open.erase(known);
    return Taken::kWithdrawn;
  }
  if (known != open.end()) return Taken::kMalformed;
  const StorePeerId asker = next_++;
  request.connection = connection;
  open.emplace(request.id, asker);
  askers_[asker] = {connection, request.id};
  std::vector<StoreReply> replies;
  if (request.key.size() > kStoreMaxKey)
    replies.push_back(
        {asker, StoreAnswer::kRefused, nullptr,
         fmt::format("it has {} bytes with its prefix, more than {}", request.key.size(), kStoreMaxKey)});
  else
    desk_.handle(asker, std::move(request), now, replies);
  collect(std::move(replies), out);
  return Taken::kAsked;
}

void StoreAskers::proceed(double now, std::vector<Answer>& out) {
  std::vector<StoreReply> replies;
  desk_.proceed(now, replies);
  collect(std::move(replies), out);
}

void StoreAskers::collect(std::vector<StoreReply> replies, std::vector<Answer>& out) {
  for (StoreReply& reply : replies) {
    const auto asker = askers_.find(reply.peer);
    if (asker == askers_.end()) continue;
    const auto [connection, id] = asker->second;
    askers_.erase(asker);
    open_.at(connection).erase(id);
    out.push_back({connection, id, std::move(reply)});
  }
}

void StoreAskers::close(StorePeerId connection) {
  desk_.closed(connection);
  const auto open = open_.find(connection);
  if (open == open_.end()) return;
  for (const auto& [request, asker] : open->second) {
    desk_.leave(asker);
    askers_.erase(asker);
  }
  open_.erase(open);
}

}  // namespace muster

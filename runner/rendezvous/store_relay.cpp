// SPDX-License-Identifier: Apache-2.0
// See store_relay.h.
#include "runner/rendezvous/store_relay.h"

#include <fmt/format.h>

#include <limits>

namespace muster {
void StoreRelay::handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) {
  request.key.insert(0, options_.prefix);
  if (request.key.size() > kStoreMaxKey)
    return out.push_back(
        {peer, StoreAnswer::kRefused, nullptr,
         fmt::format("it has {} bytes with its prefix, more than {}", request.key.size(), kStoreMaxKey)});
  if (const Status connected = uplink_->connect(now); !connected.ok())
    return out.push_back({peer, StoreAnswer::kUnavailable, nullptr, connected.error().text()});
  do request.id = ++last_;
  while (open_.count(request.id) > 0);
  open_.emplace(request.id, peer);
  ids_.emplace(peer, request.id);
  uplink_->put(request);
}

void StoreRelay::leave(StorePeerId peer) {
  const auto asked = ids_.find(peer);
  if (asked == ids_.end()) return;
  StoreRequest request;
  request.op = StoreOp::kWithdraw;
  request.id = asked->second;
  open_.erase(asked->second);
  ids_.erase(asked);
  if (uplink_->connected()) uplink_->put(request);
}

void StoreRelay::proceed(double /*now*/, std::vector<StoreReply>& out) {
  std::vector<StoreResponse> answers;
  const Status status = uplink_->proceed(answers);
  for (StoreResponse& answer : answers) {
    const auto asked = open_.find(answer.id);
    if (asked == open_.end()) continue;  // withdrawn
    ids_.erase(asked->second);
    out.push_back({asked->second, answer.answer,
                   std::make_shared<const StoredValue>(std::move(answer.text), memory_), ""});
    open_.erase(asked);
  }
  if (!status.ok()) lose(status.error(), out);
}

void StoreRelay::lose(const Error& why, std::vector<StoreReply>& out) {
  const std::string text =
      fmt::format("{} lost the store at {}: {}", options_.who, options_.address.text(), why.text());
  for (const auto& [id, peer] : open_) out.push_back({peer, StoreAnswer::kUnavailable, nullptr, text});
  open_.clear();
  ids_.clear();
}

double StoreRelay::nextDeadline() const {
  return std::numeric_limits<double>::infinity();
}

}  // namespace muster

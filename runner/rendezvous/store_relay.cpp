// SPDX-License-Identifier: Apache-2.0
// Forwards the requests of ranks to node 0 and merges barriers.
#include "runner/rendezvous/store_relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster {
namespace {

/// Seconds that ranks at a barrier wait for the others of their node, so that node 0 gets one request.
constexpr double kTogether = 0.01;

}  // namespace

void StoreRelay::handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) {
  request.key.insert(0, options_.prefix);
  if (request.op == StoreOp::kTouch) request.value.insert(0, options_.prefix);
  if (request.key.size() > kStoreMaxKey)
    return out.push_back(
        {peer, StoreAnswer::kRefused, nullptr,
         fmt::format("it has {} bytes with its prefix, more than {}", request.key.size(), kStoreMaxKey)});
  if (const Status connected = uplink_->connect(now); !connected.ok())
    return out.push_back({peer, StoreAnswer::kUnavailable, nullptr, connected.error().text()});
  if (request.op == StoreOp::kBarrier && request.value.empty())
    return gather({peer, request.number}, request, now, out);
  send(std::move(request), {{peer, 0}});
}

void StoreRelay::send(StoreRequest request, std::vector<Asker> askers) {
  do request.id = ++last_;
  while (open_.count(request.id) > 0);
  for (const Asker& asker : askers) ids_.emplace(asker.peer, request.id);
  uplink_->put(request);
  open_[request.id] = {request.op == StoreOp::kBarrier ? std::move(request.key) : "", std::move(askers)};
}

void StoreRelay::gather(const Asker& asker, const StoreRequest& request, double now,
                        std::vector<StoreReply>& out) {
  const Barrier barrier{request.key, request.count};
  Gathering& ranks = gatherings_[barrier];
  const double deadline = now + static_cast<double>(request.timeoutMs) / 1000;
  if (ranks.here.empty()) ranks = {{}, now + kTogether, deadline};
  const bool twice = std::any_of(ranks.here.begin(), ranks.here.end(),
                                 [&](const Asker& other) { return other.rank == asker.rank; });
  if (twice)
    return out.push_back(
        {asker.peer, StoreAnswer::kRefused, nullptr, fmt::format("rank {} is there already", asker.rank)});
  ranks.here.push_back(asker);
  ranks.deadline = std::min(ranks.deadline, deadline);
  if (!complete(barrier, ranks.here.size())) return;
  passOn(barrier, ranks, now);
  gatherings_.erase(barrier);
}

/// Whether all processes that may come to the barrier are there or were passed on before.
bool StoreRelay::complete(const Barrier& barrier, size_t here) const {
  if (here == kStoreMaxTogether) return true;
  for (const auto& [id, open] : open_)
    if (open.barrier == barrier.first) here += open.askers.size();
  for (const auto& [prefix, processes] : attached_)
    if (barrier.first.starts_with(prefix) && here >= processes) return true;
  return false;
}

void StoreRelay::passOn(const Barrier& barrier, const Gathering& ranks, double now) {
  StoreRequest request;
  request.op = StoreOp::kBarrier;
  request.key = barrier.first;
  request.count = barrier.second;
  request.timeoutMs = static_cast<int64_t>(std::ceil(std::max(0.0, ranks.deadline - now) * 1000));
  request.number = ranks.here.front().rank;
  std::vector<int64_t> others;
  for (size_t i = 1; i < ranks.here.size(); ++i) others.push_back(ranks.here[i].rank);
  request.value = encodeStoreRanks(others);
  send(std::move(request), ranks.here);
}

void StoreRelay::leave(StorePeerId peer) {
  const auto isPeer = [&](const Asker& asker) { return asker.peer == peer; };
  const auto asked = ids_.find(peer);
  if (asked == ids_.end()) {
    for (auto it = gatherings_.begin(); it != gatherings_.end();) {
      std::erase_if(it->second.here, isPeer);
      it = it->second.here.empty() ? gatherings_.erase(it) : std::next(it);
    }
    return;
  }
  StoreRequest request;
  request.op = StoreOp::kWithdraw;
  request.id = asked->second;
  ids_.erase(asked);
  std::vector<Asker>& askers = open_.at(request.id).askers;
  const auto gone = std::find_if(askers.begin(), askers.end(), isPeer);
  if (askers.size() > 1) {
    request.number = gone->rank;
    request.count = 1;
    askers.erase(gone);
  } else {
    open_.erase(request.id);
  }
  if (uplink_->connected()) uplink_->put(request);
}

void StoreRelay::detach(const std::string& prefix) {
  const auto found = attached_.find(options_.prefix + prefix);
  if (found != attached_.end() && --found->second == 0) attached_.erase(found);
}

void StoreRelay::proceed(double now, std::vector<StoreReply>& out) {
  for (auto it = gatherings_.begin(); it != gatherings_.end();) {
    const bool ready = it->second.due <= now || complete(it->first, it->second.here.size());
    if (ready && uplink_->connected()) passOn(it->first, it->second, now);
    it = ready && uplink_->connected() ? gatherings_.erase(it) : std::next(it);
  }
  std::vector<StoreResponse> answers;
  const Status status = uplink_->proceed(answers);
  for (StoreResponse& answer : answers) {
    const auto asked = open_.find(answer.id);
    if (asked == open_.end()) continue;  // withdrawn
    const auto value = std::make_shared<const StoredValue>(std::move(answer.text), memory_);
    for (const Asker& asker : asked->second.askers) {
      ids_.erase(asker.peer);
      out.push_back({asker.peer, answer.answer, value, ""});
    }
    open_.erase(asked);
  }
  if (!status.ok()) lose(status.error(), out);
}

void StoreRelay::lose(const Error& why, std::vector<StoreReply>& out) {
  const std::string text =
      fmt::format("{} lost the store at {}: {}", options_.who, options_.address.text(), why.text());
  const auto fail = [&](const std::vector<Asker>& askers) {
    for (const Asker& asker : askers) out.push_back({asker.peer, StoreAnswer::kUnavailable, nullptr, text});
  };
  for (const auto& [id, open] : open_) fail(open.askers);
  for (const auto& [barrier, ranks] : gatherings_) fail(ranks.here);
  open_.clear();
  ids_.clear();
  gatherings_.clear();
}

double StoreRelay::nextDeadline() const {
  double next = std::numeric_limits<double>::infinity();
  for (const auto& [barrier, ranks] : gatherings_) next = std::min(next, ranks.due);
  return next;
}

}  // namespace muster

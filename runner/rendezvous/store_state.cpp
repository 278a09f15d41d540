// SPDX-License-Identifier: Apache-2.0
// Executes requests on the keys, counters and barriers of a store.
#include "runner/rendezvous/store_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kEntryCost = 128;           // a map's node and its pointers
constexpr size_t kMissingNamed = 16;         // ranks named in one message
constexpr size_t kShareOfRunners = 4;        // one part in so many is not for ranks
constexpr size_t kMostInChanges = 1u << 20;  // bytes of one answer, about; larger values are left out

Error refused(const std::string& what) {
  return {ErrorCode::kUsage, what, ""};
}

Error ofAnother(const std::string& what) {
  return {ErrorCode::kPeer, what, ""};
}

}  // namespace

StoreReply StoreState::refusal(StorePeerId peer, const Error& why) {
  const bool isTaken = why.code == ErrorCode::kPeer;
  if (isTaken) ++taken_;
  return {peer, isTaken ? StoreAnswer::kTaken : StoreAnswer::kRefused, nullptr, why.message};
}

bool StoreState::isOfRanks(const std::string& key) {
  return key.starts_with(kRankKeys);
}

size_t StoreState::Wait::cost() const {
  return name.size() + kEntryCost * std::max<size_t>(1, ranks.size());
}

void StoreState::handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) {
  switch (request.op) {
    case StoreOp::kSet:
      return set(peer, request, out);
    case StoreOp::kGet:
      return get(peer, request, now, out);
    case StoreOp::kAdd:
      return add(peer, request, out);
    case StoreOp::kBarrier:
      return barrier(peer, request, now, out);
    case StoreOp::kClear:
      return clear(peer, request.key, out);
    case StoreOp::kChanges:
      return changes(peer, request, out);
    case StoreOp::kTouch:
      return touch(peer, request, now, out);
    case StoreOp::kWithdraw:
      return;  // the server's loop calls leave()
  }
}

StoreState::Share& StoreState::shareOf(const std::string& key) {
  return isOfRanks(key) ? ranks_ : others_;
}

/// Whether there is room for so many bytes in the place of others, and for the key where it is a fresh one.
Status StoreState::room(const std::string& key, bool fresh, size_t more, size_t less) {
  Share& share = shareOf(key);
  const bool rank = &share == &ranks_;
  const Share& other = rank ? others_ : ranks_;
  const auto left = [&](size_t limit, size_t taken) {
    return limit - std::min(limit, rank ? std::max(taken, limit / kShareOfRunners) : taken);
  };
  const size_t keys = left(limits_.keys, other.keys), memory = left(limits_.memory, other.memory);
  const char* whose = rank ? " of ranks" : "";
  if (fresh && share.keys >= keys) {
    ++share.refused;
    return refused(fmt::format("the store holds {} keys{} already, it may hold {}", share.keys, whose, keys));
  }
  if (share.memory - less + more <= memory) return {};
  ++share.refused;
  return refused(fmt::format("the store would hold more than {} bytes{}", memory, whose));
}

/// A key of ranks belongs to the connection that sets it first: what a rank says nobody changes.
Status StoreState::keep(const std::string& key, std::string value, uint64_t connection,
                        std::vector<StoreReply>& out) {
  const auto old = values_.find(key);
  const bool fresh = old == values_.end();
  if (!fresh && isOfRanks(key) && old->second.connection != connection)
    return ofAnother("another rank has set it already");
  const size_t more = value.size() + (fresh ? key.size() + kEntryCost : 0);
  const size_t less = fresh ? 0 : old->second.value->text().size();
  MUSTER_CHECK_OK(room(key, fresh, more, less));
  Share& share = shareOf(key);
  if (fresh) {
    ++share.keys;
    share.memory += key.size() + kEntryCost;
  }
  const auto kept = std::make_shared<const StoredValue>(std::move(value), share.memory);
  values_[key] = {kept, ++version_, connection};
  const auto waiting = keyWaiters_.find(key);
  if (waiting == keyWaiters_.end()) return {};
  const std::set<StorePeerId> peers = waiting->second;
  std::shared_ptr<const StoredValue> told;  // one for all who are told the version
  for (const StorePeerId peer : peers) {
    const bool touch = waits_.at(peer).touch;
    if (touch && !told)
      told = std::make_shared<const StoredValue>(encodeStoreChanges({version_, false, {{"", kept->text()}}}),
                                                 share.memory);
    endWait(peer);
    out.push_back({peer, StoreAnswer::kOk, touch ? told : kept, ""});
  }
  return {};
}

void StoreState::set(StorePeerId peer, StoreRequest& request, std::vector<StoreReply>& out) {
  const Status status = keep(request.key, std::move(request.value), request.connection, out);
  out.push_back(status.ok() ? StoreReply{peer, StoreAnswer::kOk, nullptr, ""}
                            : refusal(peer, status.error()));
}

void StoreState::get(StorePeerId peer, const StoreRequest& request, double now,
                     std::vector<StoreReply>& out) {
  const auto found = values_.find(request.key);
  if (found != values_.end()) {
    out.push_back({peer, StoreAnswer::kOk, found->second.value, ""});
  } else if (request.timeoutMs == 0) {
    out.push_back({peer, StoreAnswer::kTimeout, nullptr, ""});
  } else {
    wait(peer, {now + static_cast<double>(request.timeoutMs) / 1000, false, request.key, {}, false}, out);
  }
}

/// A heartbeat: it says that its sender lives, and the answer, as soon as there is any, what is new.
void StoreState::touch(StorePeerId peer, const StoreRequest& request, double now,
                       std::vector<StoreReply>& out) {
  if (const Status kept = keep(request.key, std::to_string(version_ + 1), request.connection, out);
      !kept.ok())
    return out.push_back(refusal(peer, kept.error()));
  const auto found = values_.find(request.value);
  if (found != values_.end() && found->second.version > static_cast<uint64_t>(request.number))
    return out.push_back(
        {peer, StoreAnswer::kOk, nullptr,
         encodeStoreChanges({found->second.version, false, {{"", found->second.value->text()}}})});
  wait(peer, {now + static_cast<double>(request.timeoutMs) / 1000, false, request.value, {}, true}, out);
}

void StoreState::add(StorePeerId peer, const StoreRequest& request, std::vector<StoreReply>& out) {
  int64_t number = 0;
  if (const auto found = values_.find(request.key); found != values_.end()) {
    const std::string& text = found->second.value->text();
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc() || end != text.data() + text.size()) {
      out.push_back(refusal(
          peer, refused("the key holds \"" + printable(text, 40) + "\", which is not a whole number")));
      return;
    }
  }
  if (__builtin_add_overflow(number, request.number, &number)) {
    out.push_back(refusal(peer, refused("the counter would not fit 64 bits")));
    return;
  }
  const Status status = keep(request.key, std::to_string(number), request.connection, out);
  out.push_back(status.ok() ? StoreReply{peer, StoreAnswer::kOk, nullptr, std::to_string(number)}
                            : refusal(peer, status.error()));
}

/// A place at the barriers of ranks belongs to the connection that comes to it first, while that is open.
Status StoreState::seat(const StoreRequest& request, const std::vector<int64_t>& ranks) {
  if (!isOfRanks(request.key)) return {};
  const std::string group = request.key.substr(0, request.key.rfind('/') + 1);
  const auto known = seats_.find(group);
  const size_t before = known == seats_.end() ? 0 : known->second.size();
  const size_t size = std::max(before, static_cast<size_t>(request.count));
  const size_t more = (size - before) * sizeof(uint64_t) + (before == 0 ? group.size() + kEntryCost : 0);
  if (size > before) MUSTER_CHECK_OK(room(group, before == 0, more));
  std::vector<uint64_t>& seats = seats_[group];
  if (before == 0) ++ranks_.keys;
  ranks_.memory += more;
  seats.resize(size);
  for (const int64_t rank : ranks)
    if (const uint64_t other = seats.at(static_cast<size_t>(rank));
        other != request.connection && seated_.contains(other))
      return ofAnother(fmt::format("the place of rank {} is another connection's", rank));
  for (const int64_t rank : ranks) seats.at(static_cast<size_t>(rank)) = request.connection;
  seated_.insert(request.connection);
  return {};
}

void StoreState::barrier(StorePeerId peer, const StoreRequest& request, double now,
                         std::vector<StoreReply>& out) {
  std::vector<int64_t> ranks = decodeStoreRanks(request.value);
  ranks.push_back(request.number);
  if (const Status seated = seat(request, ranks); !seated.ok())
    return out.push_back(refusal(peer, seated.error()));
  auto found = barriers_.find(request.key);
  if (found == barriers_.end()) {
    if (const Status fits = room(request.key, true, 0); !fits.ok())
      return out.push_back(refusal(peer, fits.error()));
    found = barriers_.emplace(request.key, Barrier{request.count, {}, ""}).first;
    ++shareOf(request.key).keys;
  }
  Barrier& barrier = found->second;
  if (!barrier.broken.empty()) {
    out.push_back({peer, StoreAnswer::kTimeout, nullptr, barrier.broken});
    return;
  }
  if (barrier.count != request.count) {
    out.push_back(refusal(peer, ofAnother(fmt::format("rank {} expects {} ranks, the others there expect {}",
                                                      request.number, request.count, barrier.count))));
    return;
  }
  std::sort(ranks.begin(), ranks.end());
  for (size_t i = 0; i < ranks.size(); ++i)
    if (barrier.here.count(ranks[i]) > 0 || (i > 0 && ranks[i] == ranks[i - 1])) {
      out.push_back(refusal(peer, refused(fmt::format("rank {} is there already", ranks[i]))));
      if (barrier.here.empty()) drop(found);
      return;
    }
  wait(peer,
       {now + static_cast<double>(request.timeoutMs) / 1000, true, request.key, std::move(ranks), false,
        request.timeoutMs},
       out);
  if (barrier.here.empty()) return (void)drop(found);  // there was no room
  if (static_cast<int64_t>(barrier.here.size()) < barrier.count) return;
  std::set<StorePeerId> all;
  for (const auto& [rank, waiting] : barrier.here) all.insert(waiting);
  for (const StorePeerId waiting : all) {
    endWait(waiting);
    out.push_back({waiting, StoreAnswer::kOk, nullptr, ""});
  }
}

/// The oldest first, so that one who asks again with the answer's version misses nothing.
void StoreState::changes(StorePeerId peer, const StoreRequest& request, std::vector<StoreReply>& out) const {
  const std::string& start = request.key;
  const auto since = static_cast<uint64_t>(request.number);
  std::vector<std::pair<uint64_t, const std::string*>> newer;
  for (auto it = values_.lower_bound(start); it != values_.end() && it->first.starts_with(start); ++it)
    if (it->second.version > since) newer.emplace_back(it->second.version, &it->first);
  std::sort(newer.begin(), newer.end());
  StoreChanges found;
  found.version = version_;
  size_t size = 0;
  for (const auto& [version, key] : newer) {
    if (found.more) break;
    const std::string& value = values_.at(*key).value->text();
    found.entries.emplace_back(key->substr(start.size()), value.size() > kMostInChanges ? "" : value);
    size += found.entries.back().second.size() + key->size();
    found.more = size > kMostInChanges && version != newer.back().first;
    if (found.more) found.version = version;
  }
  out.push_back({peer, StoreAnswer::kOk, nullptr, encodeStoreChanges(found)});
}

void StoreState::clear(StorePeerId peer, const std::string& start, std::vector<StoreReply>& out) {
  int64_t removed = 0;
  for (auto it = values_.lower_bound(start); it != values_.end() && it->first.starts_with(start);) {
    Share& share = shareOf(it->first);
    share.memory -= it->first.size() + kEntryCost;
    --share.keys;
    it = values_.erase(it);
    ++removed;
  }
  for (auto it = seats_.lower_bound(start); it != seats_.end() && it->first.starts_with(start);) {
    ranks_.memory -= it->second.size() * sizeof(uint64_t) + it->first.size() + kEntryCost;
    --ranks_.keys;
    it = seats_.erase(it);
  }
  for (auto it = barriers_.lower_bound(start); it != barriers_.end() && it->first.starts_with(start);)
    it = it->second.broken.empty() ? std::next(it) : drop(it);
  out.push_back({peer, StoreAnswer::kOk, nullptr, std::to_string(removed)});
}

std::map<std::string, StoreState::Barrier>::iterator StoreState::drop(
    std::map<std::string, Barrier>::iterator barrier) {
  --shareOf(barrier->first).keys;
  return barriers_.erase(barrier);
}

/// Those who wait count in the memory, too: a connection may have many requests open.
void StoreState::wait(StorePeerId peer, Wait wait, std::vector<StoreReply>& out) {
  if (const Status fits = room(wait.name, false, wait.cost()); !fits.ok())
    return out.push_back(refusal(peer, fits.error()));
  shareOf(wait.name).memory += wait.cost();
  if (wait.barrier) {
    Barrier& barrier = barriers_.at(wait.name);
    for (const int64_t rank : wait.ranks) barrier.here.emplace(rank, peer);
  } else {
    keyWaiters_[wait.name].insert(peer);
  }
  deadlines_.emplace(wait.deadline, peer);
  waits_.emplace(peer, std::move(wait));
}

void StoreState::endWait(StorePeerId peer) {
  const auto found = waits_.find(peer);
  if (found == waits_.end()) return;
  const Wait wait = std::move(found->second);
  waits_.erase(found);
  deadlines_.erase({wait.deadline, peer});
  shareOf(wait.name).memory -= wait.cost();
  if (wait.barrier) {
    const auto barrier = barriers_.find(wait.name);
    for (const int64_t rank : wait.ranks) barrier->second.here.erase(rank);
    if (barrier->second.here.empty() && barrier->second.broken.empty()) drop(barrier);
  } else {
    const auto waiters = keyWaiters_.find(wait.name);
    waiters->second.erase(peer);
    if (waiters->second.empty()) keyWaiters_.erase(waiters);
  }
}

std::string StoreState::missingAt(const std::string& name) const {
  const Barrier& barrier = barriers_.at(name);
  std::vector<std::string> missing;
  for (int64_t rank = 0; rank < barrier.count && missing.size() < kMissingNamed; ++rank)
    if (barrier.here.count(rank) == 0) missing.push_back(std::to_string(rank));
  const int64_t count = barrier.count - static_cast<int64_t>(barrier.here.size());
  const int64_t unnamed = count - static_cast<int64_t>(missing.size());
  return fmt::format("{} of {} ranks came, missing: {}{}", barrier.here.size(), barrier.count,
                     join(missing, ", "), unnamed > 0 ? fmt::format(" and {} more", unnamed) : "");
}

void StoreState::giveUp(const Wait& wait, std::vector<StoreReply>& out) {
  Barrier& barrier = barriers_.at(wait.name);
  barrier.broken = fmt::format("{}; rank {} gave up after {} s", missingAt(wait.name), wait.ranks.front(),
                               static_cast<double>(wait.patienceMs) / 1000);
  std::set<StorePeerId> all;
  for (const auto& [rank, peer] : barrier.here) all.insert(peer);
  for (const StorePeerId peer : all) {
    endWait(peer);
    out.push_back({peer, StoreAnswer::kTimeout, nullptr, barrier.broken});
  }
}

void StoreState::proceed(double now, std::vector<StoreReply>& out) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const StorePeerId peer = deadlines_.begin()->second;
    if (const Wait wait = waits_.at(peer); wait.barrier) {
      giveUp(wait, out);
    } else {
      endWait(peer);
      out.push_back({peer, StoreAnswer::kTimeout, nullptr, ""});
    }
  }
}

void StoreState::leave(StorePeerId peer) {
  endWait(peer);
}

void StoreState::leaveRank(StorePeerId peer, int64_t rank) {
  const auto found = waits_.find(peer);
  if (found == waits_.end() || !found->second.barrier) return;
  Wait& wait = found->second;
  const auto gone = std::find(wait.ranks.begin(), wait.ranks.end(), rank);
  if (gone == wait.ranks.end()) return;
  if (wait.ranks.size() == 1) return endWait(peer);
  shareOf(wait.name).memory -= kEntryCost;
  wait.ranks.erase(gone);
  barriers_.at(wait.name).here.erase(rank);
}

double StoreState::nextDeadline() const {
  return deadlines_.empty() ? std::numeric_limits<double>::infinity() : deadlines_.begin()->first;
}

}  // namespace muster

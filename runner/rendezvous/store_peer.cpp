// SPDX-License-Identifier: Apache-2.0
// Reads and writes one connection of the store's server.
#include "runner/rendezvous/store_peer.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

constexpr size_t kReadFromPeer = size_t{64} * 1024;
constexpr size_t kGatherAtOnce = size_t{16} * 1024;  // one record of TLS

/// Whether it may change a key that begins with `start`.
bool changes(const StoreRequest& request, std::string_view start) {
  if (request.op == StoreOp::kGet || request.op == StoreOp::kChanges) return false;
  return request.key.starts_with(start) || (request.op == StoreOp::kClear && start.starts_with(request.key));
}

}  // namespace

StorePeer::End StorePeer::endOf(StoreStream::Step step) const {
  if (step != StoreStream::Step::kFailed) return End::kNone;
  switch (stream_.fault()) {
    case TlsFault::kNotTls:
      return End::kNotTls;
    case TlsFault::kNoToken:
      return End::kNoToken;
    case TlsFault::kAltered:
      return End::kAltered;
    default:
      return End::kGone;
  }
}

/// Reads until `in_` holds `size` bytes or nothing more is there.
StorePeer::End StorePeer::fill(size_t size) {
  char buffer[kReadFromPeer];
  while (in_.size() < size) {
    size_t got = 0;
    const StoreStream::Step step = stream_.read(buffer, std::min(sizeof buffer, size - in_.size()), got);
    if (step != StoreStream::Step::kDone) return endOf(step);
    in_.append(buffer, got);
  }
  return End::kNone;
}

StorePeer::End StorePeer::prove() {
  const StoreStream::Step step = stream_.handshake();
  if (step == StoreStream::Step::kDone) phase_ = Phase::kIdle;
  // A fresh socket has room for a handshake; one that has not is not worth waiting for.
  return step == StoreStream::Step::kWantsWrite ? End::kGone : endOf(step);
}

uint64_t StorePeer::receiving() const {
  if (phase_ == Phase::kReceiving) return 2 * received_ + 2;
  return phase_ == Phase::kIdle && !in_.empty() ? 2 * received_ + 1 : 0;
}

StorePeer::End StorePeer::read() {
  if (phase_ == Phase::kProving) return prove();
  const size_t size = phase_ == Phase::kIdle ? kStoreLength : wanted_;
  const End end = fill(size);
  if (end != End::kNone || in_.size() < size) return end;
  if (phase_ == Phase::kReceiving) {
    complete_ = true;
    return End::kNone;
  }
  wanted_ = readStoreLength(in_);
  in_.clear();
  if (wanted_ < kStoreRequestHead || wanted_ > kStoreMaxRequest) return End::kMalformed;
  phase_ = Phase::kQueueing;
  return End::kNone;
}

void StorePeer::admit() {
  phase_ = Phase::kReceiving;
}

bool StorePeer::takeRequest(StoreRequest& request, std::string& problem) {
  if (!complete_) return false;
  complete_ = false;
  Result<StoreRequest> decoded = decodeStoreRequest(in_);
  in_ = std::string();
  phase_ = Phase::kIdle;
  ++received_;
  if (!decoded.ok()) {
    problem = decoded.error().message;
    return true;
  }
  request = std::move(*decoded);
  if (request.op == StoreOp::kWithdraw) return true;
  ++open_;
  const bool two = request.op == StoreOp::kTouch;
  if (local_) {
    request.key.insert(0, stream_.prefix());
    if (two) request.value.insert(0, stream_.prefix());
  } else if (!request.key.starts_with(stream_.prefix()) ||
             (two && !request.value.starts_with(stream_.prefix()))) {
    problem = "a key outside of what its own key is for";
  } else if (changes(request, kLeaderKeys)) {
    problem = "a key that only node 0 may change";
  }
  if (request.op == StoreOp::kClear && changes(request, kRankKeys) &&
      !(local_ && stream_.prefix() == kRankKeys))
    problem = "keys of ranks, which only node 0's runner clears";
  // Its cost grows with all keys there are.
  if (request.op == StoreOp::kChanges && (!local_ || stream_.prefix().starts_with(kRankKeys)))
    problem = "changes, which only node 0's runner asks for";
  return true;
}

void StorePeer::answer(const StoreReply& reply, uint32_t id) {
  const size_t size = reply.value ? reply.value->text().size() : reply.text.size();
  answers_.push_back({encodeStoreReplyHead(reply.answer, id, size) + reply.text, reply.value});
}

void StorePeer::greet(const StoreReply& reply) {
  ++open_;
  answer(reply, kStoreGreeting);
}

/// Short answers go out together; a large value is sent from where it is kept.
void StorePeer::gather() {
  while (!answers_.empty() && out_.size() < kGatherAtOnce && !value_) {
    Answer& next = answers_.front();
    out_ += next.head;
    if (next.value && next.value->text().size() <= kGatherAtOnce)
      out_ += next.value->text();
    else
      value_ = std::move(next.value);
    answers_.pop_front();
    ++gathered_;
  }
}

StorePeer::End StorePeer::write() {
  while (wantsToWrite()) {
    if (out_.empty()) gather();
    size_t before = 0;  // what stands before this part
    for (const std::string* part : {&std::as_const(out_), value_ ? &value_->text() : nullptr}) {
      if (part == nullptr) break;
      size_t gone = offset_ - before;
      if (gone < part->size()) {
        const StoreStream::Step step = stream_.write(*part, gone);
        offset_ = before + gone;
        if (step != StoreStream::Step::kDone) return endOf(step);
      }
      before += part->size();
    }
    out_.clear();
    value_.reset();
    offset_ = 0;
    open_ -= gathered_;
    gathered_ = 0;
    ++sent_;
  }
  return End::kNone;
}

}  // namespace muster

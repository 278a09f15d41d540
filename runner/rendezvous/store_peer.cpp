// SPDX-License-Identifier: Apache-2.0
// See store_peer.h.
#include "runner/rendezvous/store_peer.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

constexpr size_t kReadAtOnce = size_t{64} * 1024;

}  // namespace

StorePeer::End StorePeer::endOf(TlsStream::Step step) const {
  if (step != TlsStream::Step::kFailed) return End::kNone;
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
  char buffer[kReadAtOnce];
  while (in_.size() < size) {
    size_t got = 0;
    const TlsStream::Step step = stream_.read(buffer, std::min(sizeof buffer, size - in_.size()), got);
    if (step != TlsStream::Step::kDone) return endOf(step);
    in_.append(buffer, got);
  }
  return End::kNone;
}

StorePeer::End StorePeer::prove() {
  const TlsStream::Step step = stream_.handshake();
  if (step == TlsStream::Step::kDone) phase_ = Phase::kIdle;
  // A fresh socket has room for a handshake; one that has not is not worth waiting for.
  return step == TlsStream::Step::kWantsWrite ? End::kGone : endOf(step);
}

StorePeer::End StorePeer::read() {
  if (phase_ == Phase::kProving) return prove();
  if (phase_ == Phase::kAwaiting) {
    char byte = 0;
    size_t got = 0;
    const TlsStream::Step step = stream_.read(&byte, 1, got);
    return step == TlsStream::Step::kDone ? End::kMalformed : endOf(step);
  }
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
  phase_ = Phase::kAwaiting;
  if (!decoded.ok()) {
    problem = decoded.error().message;
  } else if (!decoded->key.starts_with(stream_.prefix())) {
    problem = "a key outside of what its own key is for";
  } else {
    request = std::move(*decoded);
  }
  return true;
}

StorePeer::End StorePeer::answer(const StoreReply& reply) {
  const size_t size = reply.value ? reply.value->text().size() : reply.text.size();
  head_ = encodeStoreReplyHead(reply.answer, size) + reply.text;
  value_ = reply.value;
  sent_ = 0;
  phase_ = Phase::kAnswering;
  return write();
}

StorePeer::End StorePeer::write() {
  size_t before = 0;  // what stands before this part in the answer
  for (const std::string* part : {&std::as_const(head_), value_ ? &value_->text() : nullptr}) {
    if (part == nullptr) break;
    size_t sent = sent_ - before;
    if (sent < part->size()) {
      const TlsStream::Step step = stream_.write(*part, sent);
      sent_ = before + sent;
      if (step != TlsStream::Step::kDone) return endOf(step);
    }
    before += part->size();
  }
  value_.reset();
  phase_ = Phase::kIdle;
  return End::kNone;
}

}  // namespace muster

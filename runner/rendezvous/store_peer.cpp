// SPDX-License-Identifier: Apache-2.0
// See store_peer.h.
#include "runner/rendezvous/store_peer.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace muster {
namespace {

constexpr size_t kReadAtOnce = size_t{64} * 1024;

bool wouldBlock() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

std::string_view viewOf(const StoreNonce& nonce) {
  return {reinterpret_cast<const char*>(nonce.data()), nonce.size()};
}

}  // namespace

StorePeer::StorePeer(Fd socket, const StoreNonce& nonce) : socket_(std::move(socket)), nonce_(nonce) {}

StorePeer::End StorePeer::send(std::string_view bytes, size_t& sent) {
  while (sent < bytes.size()) {
    const ssize_t n = ::send(fd(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0) return n < 0 && wouldBlock() ? End::kNone : End::kGone;
    sent += static_cast<size_t>(n);
  }
  return End::kNone;
}

StorePeer::End StorePeer::greet() {
  const std::string greeting = std::string(kStoreMagic) + std::string(viewOf(nonce_));
  size_t sent = 0;
  const End end = send(greeting, sent);
  // A fresh socket has room for forty bytes; one that has not is not worth waiting for.
  return end == End::kNone && sent < greeting.size() ? End::kGone : end;
}

/// Reads until `in_` holds `size` bytes or nothing more is there.
StorePeer::End StorePeer::fill(size_t size) {
  char buffer[kReadAtOnce];
  while (in_.size() < size) {
    const ssize_t n = recv(fd(), buffer, std::min(sizeof buffer, size - in_.size()), MSG_DONTWAIT);
    if (n < 0 && wouldBlock()) return End::kNone;
    if (n <= 0) return End::kGone;
    in_.append(buffer, static_cast<size_t>(n));
  }
  return End::kNone;
}

StorePeer::End StorePeer::prove(const std::string& token) {
  const std::string_view hello = in_;
  const std::string_view clientNonce = hello.substr(0, kStoreNonce);
  size_t sent = 0;
  if (!sameProof(hello.substr(kStoreNonce), storeProof(token, "client", viewOf(nonce_), clientNonce))) {
    send({&kStoreRefusal, 1}, sent);
    return End::kWrongToken;
  }
  const std::string welcome = kStoreWelcome + storeProof(token, "server", viewOf(nonce_), clientNonce);
  const End end = send(welcome, sent);
  if (end != End::kNone || sent < welcome.size()) return End::kGone;
  in_.clear();
  phase_ = Phase::kIdle;
  return End::kNone;
}

StorePeer::End StorePeer::read(const std::string& token) {
  if (phase_ == Phase::kAwaiting) {
    char byte = 0;
    const ssize_t n = recv(fd(), &byte, 1, MSG_DONTWAIT);
    if (n < 0 && wouldBlock()) return End::kNone;
    return n > 0 ? End::kMalformed : End::kGone;
  }
  const size_t size = phase_ == Phase::kProving ? kStoreHello
                      : phase_ == Phase::kIdle  ? kStoreLength
                                                : wanted_;
  const End end = fill(size);
  if (end != End::kNone || in_.size() < size) return end;
  if (phase_ == Phase::kProving) return prove(token);
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
  if (decoded.ok()) {
    request = std::move(*decoded);
  } else {
    problem = decoded.error().message;
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
  if (sent_ < head_.size()) {
    const End end = send(head_, sent_);
    if (end != End::kNone || sent_ < head_.size()) return end;
  }
  if (value_) {
    size_t sent = sent_ - head_.size();
    const End end = send(value_->text(), sent);
    sent_ = head_.size() + sent;
    if (end != End::kNone || sent < value_->text().size()) return end;
  }
  value_.reset();
  phase_ = Phase::kIdle;
  return End::kNone;
}

}  // namespace muster

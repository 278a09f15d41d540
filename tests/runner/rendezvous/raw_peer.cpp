// SPDX-License-Identifier: Apache-2.0
// See raw_peer.h.
#include "tests/runner/rendezvous/raw_peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "runner/core/clock.h"
#include "runner/rendezvous/wire/store_key.h"
#include "runner/rendezvous/wire/store_protocol.h"

namespace muster::testing {
namespace {

constexpr double kPatience = 20;  // seconds for what must happen

}  // namespace

RawPeer::RawPeer(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket_.get(), raw, sizeof address), 0) << errnoText(errno);
}

bool RawPeer::await(short events, double deadline) const {
  const double left = deadline - systemClock().now();
  pollfd fd{descriptor(), events, 0};
  return left > 0 && poll(&fd, 1, static_cast<int>(left * 1000) + 1) > 0;
}

bool RawPeer::send(std::string_view bytes) {
  const double deadline = systemClock().now() + kPatience;
  for (size_t sent = 0; sent < bytes.size();) {
    if (!await(POLLOUT, deadline)) return false;
    if (tls_) {
      if (tls_->write(bytes, sent) == StoreStream::Step::kFailed) return false;
      continue;
    }
    const ssize_t n = ::send(descriptor(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

std::string RawPeer::some(size_t size, double seconds) {
  const double deadline = systemClock().now() + seconds;
  std::string bytes(std::min(size, size_t{65536}), '\0');
  while (!ended_) {
    if (!(tls_ && tls_->buffered()) && !await(POLLIN, deadline)) return "";
    size_t got = 0;
    auto step = StoreStream::Step::kDone;
    if (tls_) {
      step = tls_->read(bytes.data(), bytes.size(), got);
    } else {
      got = static_cast<size_t>(std::max(recv(descriptor(), bytes.data(), bytes.size(), 0), ssize_t{0}));
      ended_ = got == 0;
    }
    ended_ = ended_ || step == StoreStream::Step::kFailed;
    if (got > 0) return bytes.substr(0, got);
  }
  return "";
}

std::string RawPeer::receive(size_t size, double seconds) {
  const double deadline = systemClock().now() + seconds;
  std::string got;
  while (got.size() < size) {
    const std::string more = some(size - got.size(), deadline - systemClock().now());
    if (more.empty()) break;
    got += more;
  }
  return got;
}

bool RawPeer::closedWithin(double seconds) {
  const double deadline = systemClock().now() + seconds;
  while (!some(65536, deadline - systemClock().now()).empty()) {
  }
  return ended_;
}

void RawPeer::halfClose() {
  shutdown(descriptor(), SHUT_WR);
}

void RawPeer::prove(const std::string& token, const std::string& prefix) {
  auto stream = StoreStream::client(std::move(socket_), prefix, storeKey(token, prefix));
  ASSERT_TRUE(stream.ok()) << stream.error().text();
  tls_ = std::move(*stream);
  const double deadline = systemClock().now() + kPatience;
  auto step = tls_->handshake();
  while (step == StoreStream::Step::kWantsRead && await(POLLIN, deadline)) step = tls_->handshake();
  ASSERT_EQ(step, StoreStream::Step::kDone) << tls_->faultText();
  ASSERT_EQ(receive(kStoreLength + kStoreReplyHead, kPatience).size(), kStoreLength + kStoreReplyHead);
}

TlsFault RawPeer::tryKey(const std::string& key) {
  tls_ = StoreStream::client(std::move(socket_), "", key).value();
  const double deadline = systemClock().now() + kPatience;
  while (tls_->handshake() == StoreStream::Step::kWantsRead && await(POLLIN, deadline)) {
  }
  return tls_->fault();
}

}  // namespace muster::testing

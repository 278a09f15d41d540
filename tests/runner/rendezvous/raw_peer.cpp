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
#include "runner/rendezvous/store_protocol.h"

namespace muster::testing {

RawPeer::RawPeer(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
      << errnoText(errno);
}

bool RawPeer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string RawPeer::receive(size_t size, double seconds) {
  const double deadline = systemClock().now() + seconds;
  std::string got;
  while (got.size() < size) {
    const double left = deadline - systemClock().now();
    pollfd fd{socket_.get(), POLLIN, 0};
    if (left <= 0 || poll(&fd, 1, static_cast<int>(left * 1000) + 1) <= 0) break;
    char buffer[65536];
    const ssize_t n = recv(socket_.get(), buffer, std::min(sizeof buffer, size - got.size()), 0);
    if (n <= 0) break;
    got.append(buffer, static_cast<size_t>(n));
  }
  return got;
}

bool RawPeer::closedWithin(double seconds) {
  const double deadline = systemClock().now() + seconds;
  while (true) {
    const double left = deadline - systemClock().now();
    pollfd fd{socket_.get(), POLLIN, 0};
    if (left <= 0 || poll(&fd, 1, static_cast<int>(left * 1000) + 1) <= 0) return false;
    char buffer[65536];
    if (recv(socket_.get(), buffer, sizeof buffer, 0) <= 0) return true;
  }
}

void RawPeer::halfClose() {
  shutdown(socket_.get(), SHUT_WR);
}

void RawPeer::prove(const std::string& token) {
  const std::string greeting = receive(kStoreGreeting);
  ASSERT_EQ(greeting.size(), kStoreGreeting);
  const std::string nonce(kStoreNonce, 'n');
  ASSERT_TRUE(send(nonce + storeProof(token, "client", greeting.substr(kStoreMagic.size()), nonce)));
  const std::string welcome = receive(1 + kStoreProof);
  ASSERT_EQ(welcome.size(), 1 + kStoreProof);
  ASSERT_EQ(welcome[0], kStoreWelcome);
}

}  // namespace muster::testing

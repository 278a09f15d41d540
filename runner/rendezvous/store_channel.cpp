// SPDX-License-Identifier: Apache-2.0
// See store_channel.h.
#include "runner/rendezvous/store_channel.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <memory>

#include "runner/core/clock.h"
#include "runner/rendezvous/listener.h"

namespace muster {
namespace {

constexpr double kLook = 0.05;  // how often cancellation is looked at

Error lost(const std::string& what) {
  return {ErrorCode::kIo, what, ""};
}

/// Waits for `events` on the socket.
Status await(int socket, short events, double deadline, const StoreChannel::Cancelled& cancelled) {
  while (true) {
    if (cancelled()) return Error{ErrorCode::kTimeout, "cancelled", ""};
    const double left = deadline - systemClock().now();
    pollfd fd{socket, events, 0};
    const int ready = poll(&fd, 1, static_cast<int>(std::ceil(std::clamp(left, 0.0, kLook) * 1000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return lost("cannot wait for the store: " + errnoText(errno));
    if (left <= 0) return Error{ErrorCode::kTimeout, "no answer in time", ""};
  }
}

Result<Fd> connectTo(const addrinfo& address, double deadline, const StoreChannel::Cancelled& cancelled) {
  Fd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return lost("cannot make a socket: " + errnoText(errno));
  tuneStoreSocket(socket.get());
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return lost(errnoText(errno));
    MUSTER_CHECK_OK(await(socket.get(), POLLOUT, deadline, cancelled));
    int failure = 0;
    socklen_t size = sizeof failure;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) return lost(errnoText(failure));
  }
  return socket;
}

/// Connects to the first of the name's addresses that answers.
Result<Fd> connectTo(const StoreAddress& address, double deadline, const StoreChannel::Cancelled& cancelled) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0) return lost(fmt::format("cannot look up {}: {}", address.host, gai_strerror(failed)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  Result<Fd> socket = lost("it has no address");
  for (const addrinfo* next = found; next != nullptr && !socket.ok(); next = next->ai_next)
    socket = connectTo(*next, deadline, cancelled);
  return socket;
}

}  // namespace

Result<StoreChannel> StoreChannel::open(const StoreAddress& address, std::string_view token, double deadline,
                                        const Cancelled& cancelled) {
  MUSTER_TRY(Fd socket, connectTo(address, deadline, cancelled));
  StoreChannel channel(std::move(socket));
  MUSTER_CHECK_OK(channel.shakeHands(token, deadline, cancelled));
  return channel;
}

Status StoreChannel::shakeHands(std::string_view token, double deadline, const Cancelled& cancelled) {
  MUSTER_TRY(const std::string greeting, receive(kStoreGreeting, deadline, cancelled));
  if (!greeting.starts_with(kStoreMagic))
    return Error{ErrorCode::kProtocol, "something listens there that is no Muster store of this version", ""};
  const std::string_view serverNonce = std::string_view(greeting).substr(kStoreMagic.size());
  MUSTER_TRY(const StoreNonce own, storeNonce());
  const std::string nonce(own.begin(), own.end());
  MUSTER_CHECK_OK(send(nonce + storeProof(token, "client", serverNonce, nonce), deadline, cancelled));
  MUSTER_TRY(const std::string verdict, receive(1, deadline, cancelled));
  if (verdict[0] != kStoreWelcome)
    return Error{ErrorCode::kProtocol,
                 "it refused the token; MUSTER_TOKEN must be the same on every node of a run", ""};
  MUSTER_TRY(const std::string proof, receive(kStoreProof, deadline, cancelled));
  if (!sameProof(proof, storeProof(token, "server", serverNonce, nonce)))
    return Error{ErrorCode::kProtocol, "what listens there does not know the token itself", ""};
  return {};
}

Status StoreChannel::send(std::string_view bytes, double deadline, const Cancelled& cancelled) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      MUSTER_CHECK_OK(await(socket_.get(), POLLOUT, deadline, cancelled));
    } else {
      return lost("lost the connection: " + errnoText(errno));
    }
  }
  return {};
}

Result<std::string> StoreChannel::receive(size_t size, double deadline, const Cancelled& cancelled) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    const ssize_t n = recv(socket_.get(), bytes.data() + have, size - have, MSG_DONTWAIT);
    if (n > 0) {
      have += static_cast<size_t>(n);
    } else if (n == 0) {
      return lost("it closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      MUSTER_CHECK_OK(await(socket_.get(), POLLIN, deadline, cancelled));
    } else {
      return lost("lost the connection: " + errnoText(errno));
    }
  }
  return bytes;
}

Result<StoreResponse> StoreChannel::ask(const StoreRequest& request, double deadline,
                                        const Cancelled& cancelled) {
  MUSTER_CHECK_OK(send(encodeStoreRequest(request), deadline, cancelled));
  MUSTER_TRY(const std::string length, receive(kStoreLength, deadline, cancelled));
  const uint32_t size = readStoreLength(length);
  if (size < 1 || size > kStoreMaxReply)
    return Error{ErrorCode::kProtocol, fmt::format("it answered with {} bytes", size), ""};
  MUSTER_TRY(const std::string body, receive(size, deadline, cancelled));
  if (body[0] < 0 || body[0] > static_cast<char>(StoreAnswer::kRefused))
    return Error{ErrorCode::kProtocol, fmt::format("it answered with the unknown status {}", int{body[0]}),
                 ""};
  return StoreResponse{static_cast<StoreAnswer>(body[0]), body.substr(1)};
}

bool StoreChannel::stale() const {
  pollfd fd{socket_.get(), POLLIN, 0};
  // Between requests a server has nothing to say: whatever is there to read is the end.
  return poll(&fd, 1, 0) != 0;
}

}  // namespace muster

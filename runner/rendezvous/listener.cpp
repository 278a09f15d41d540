// SPDX-License-Identifier: Apache-2.0
// See listener.h.
#include "runner/rendezvous/listener.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "runner/core/text.h"

namespace muster {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

void setOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

/// The addresses to bind to, in the order to try.
Result<Addresses> resolveNumeric(const std::string& address, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host = address.empty() ? "::" : address;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    return Error{ErrorCode::kUsage,
                 fmt::format("cannot listen on \"{}\": {}; wanted a numeric IPv4 or IPv6 address",
                             printable(address, 100), gai_strerror(failed)),
                 ""};
  return Addresses(found, freeaddrinfo);
}

uint16_t portOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  return ntohs(address.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
}

/// A listening socket, or none with errno set.
Fd tryListen(int family, const sockaddr* address, socklen_t size) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return socket;
  setOption(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) setOption(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(socket.get(), address, size) == 0 && listen(socket.get(), SOMAXCONN) == 0) return socket;
  const int reason = errno;
  socket.reset();
  errno = reason;
  return socket;
}

/// Where the kernel has no IPv6, "all addresses" are those of IPv4.
Fd tryListenAllV4(uint16_t port) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  return tryListen(AF_INET, reinterpret_cast<const sockaddr*>(&any), sizeof any);
}

}  // namespace

Result<Listener> listenOn(const std::string& address, const std::vector<uint16_t>& ports) {
  std::vector<std::string> reasons;
  for (const uint16_t port : ports) {
    MUSTER_TRY(const Addresses found, resolveNumeric(address, port));
    Fd socket = tryListen(found->ai_family, found->ai_addr, found->ai_addrlen);
    if (!socket.valid() && address.empty() && errno != EADDRINUSE) socket = tryListenAllV4(port);
    if (socket.valid()) {
      const uint16_t bound = portOf(socket.get());
      return Listener{std::move(socket), bound};
    }
    reasons.push_back(fmt::format("port {}: {}", port, errnoText(errno)));
  }
  return Error{ErrorCode::kIo,
               fmt::format("cannot listen on {}: {}; name another port with --rendezvous",
                           address.empty() ? "this machine" : address, join(reasons, ", ")),
               ""};
}

void tuneStoreSocket(int socket) {
  setOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  setOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, 3);
  setOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPCNT, 5);
  setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
}

}  // namespace muster

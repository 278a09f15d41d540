// SPDX-License-Identifier: Apache-2.0
// Opens listening sockets and sets socket options.
#include "runner/rendezvous/wire/listener.h"

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

/// The addresses that `address` means here.
Result<Addresses> resolve(const std::string& address, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host = address.empty() ? "::" : address;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot listen on \"{}\": {}; required: an address or a name of this machine",
                             printable(address, 100), gai_strerror(failed)),
                 ""};
  return Addresses(found, freeaddrinfo);
}

bool isLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

/// Whether `address` itself says loopback, and not just this machine's list of names.
bool meansLoopback(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return address == "localhost";
  const Addresses numeric(found, freeaddrinfo);
  return isLoopback(numeric->ai_addr);
}

/// Where this machine reaches what is bound to `socket`.
std::string hostOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = "";
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (getsockname(socket, any, &size) != 0 ||
      getnameinfo(any, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return "127.0.0.1";
  const std::string host = text;
  return host == "::" || host == "0.0.0.0" ? "127.0.0.1" : host;
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

/// All addresses of the machine; where the kernel has no IPv6, those of IPv4.
Result<Fd> listenEverywhere(uint16_t port) {
  MUSTER_TRY(const Addresses all, resolve("", port));
  Fd socket = tryListen(all->ai_family, all->ai_addr, all->ai_addrlen);
  if (socket.valid() || errno == EADDRINUSE) return socket;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  return tryListen(AF_INET, reinterpret_cast<const sockaddr*>(&any), sizeof any);
}

/// The first of the addresses that is this machine's, or all of the machine's: see listener.h. A socket that
/// is not valid has left why in errno.
Result<Fd> listenAt(const std::string& address, uint16_t port) {
  if (address.empty()) return listenEverywhere(port);
  MUSTER_TRY(const Addresses found, resolve(address, port));
  const bool loopback = meansLoopback(address);
  for (const addrinfo* next = found.get(); next != nullptr; next = next->ai_next) {
    if (!loopback && isLoopback(next->ai_addr)) continue;
    Fd socket = tryListen(next->ai_family, next->ai_addr, next->ai_addrlen);
    if (socket.valid() || (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)) return socket;
  }
  return listenEverywhere(port);
}

}  // namespace

Result<Listener> listenOn(const std::string& address, uint16_t port) {
  MUSTER_TRY(Fd socket, listenAt(address, port));
  if (!socket.valid()) {
    const bool taken = errno == EADDRINUSE;
    return Error{
        taken || errno == EACCES ? ErrorCode::kUsage : ErrorCode::kIo,
        fmt::format("cannot listen on {}, port {}: {}; {}name another port with --rendezvous",
                    address.empty() ? "this machine" : address, port, errnoText(errno),
                    taken ? "if another node of this run has rank 0, too, correct --node-rank, else " : ""),
        ""};
  }
  const uint16_t bound = portOf(socket.get());
  std::string host = hostOf(socket.get());
  return Listener{std::move(socket), std::move(host), bound};
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

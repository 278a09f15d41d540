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
#include <vector>

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

}  // namespace

Result<StoreChannel> StoreChannel::open(const StoreAddress& address, const std::string& prefix,
                                        const std::string& key, double deadline, const Cancelled& cancelled) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0) return lost(fmt::format("cannot look up {}: {}", address.host, gai_strerror(failed)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  int left = 0;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) ++left;
  std::vector<Error> errors;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next, --left) {
    // Somebody who just listens on one of them must not use up the time for the others.
    const double now = systemClock().now();
    Result<StoreChannel> channel = open(*next, prefix, key, now + (deadline - now) / left, cancelled);
    if (channel.ok()) return channel;
    errors.push_back(std::move(channel).error());
  }
  Error all = errors.front();
  for (size_t i = 1; i < errors.size(); ++i) {
    if (errors[i].message != errors[0].message) all.message += "; " + errors[i].message;
    if (errors[i].code != ErrorCode::kProtocol) all.code = errors[i].code;
  }
  return all;
}

Result<StoreChannel> StoreChannel::open(const addrinfo& address, const std::string& prefix,
                                        const std::string& key, double deadline, const Cancelled& cancelled) {
  MUSTER_TRY(Fd socket, connectTo(address, deadline, cancelled));
  MUSTER_TRY(TlsStream stream, TlsStream::client(std::move(socket), prefix, key));
  StoreChannel channel(std::move(stream));
  for (auto step = TlsStream::Step::kWantsRead; step != TlsStream::Step::kDone;) {
    step = channel.stream_.handshake();
    MUSTER_CHECK_OK(channel.proceed(step, deadline, cancelled));
  }
  return channel;
}

/// Waits for what a step of the stream wants.
Status StoreChannel::proceed(TlsStream::Step step, double deadline, const Cancelled& cancelled) {
  if (step == TlsStream::Step::kDone) return {};
  if (step != TlsStream::Step::kFailed)
    return await(stream_.fd(), step == TlsStream::Step::kWantsRead ? POLLIN : POLLOUT, deadline, cancelled);
  const bool stranger = stream_.fault() == TlsFault::kNotTls || stream_.fault() == TlsFault::kNoToken;
  return Error{stranger ? ErrorCode::kProtocol : ErrorCode::kIo, stream_.faultText(), ""};
}

Status StoreChannel::send(std::string_view bytes, double deadline, const Cancelled& cancelled) {
  for (size_t sent = 0; sent < bytes.size();)
    MUSTER_CHECK_OK(proceed(stream_.write(bytes, sent), deadline, cancelled));
  return {};
}

Result<std::string> StoreChannel::receive(size_t size, double deadline, const Cancelled& cancelled) {
  std::string bytes(size, '\0');
  for (size_t have = 0; have < size;) {
    size_t got = 0;
    MUSTER_CHECK_OK(proceed(stream_.read(bytes.data() + have, size - have, got), deadline, cancelled));
    have += got;
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
  if (body[0] < 0 || body[0] > static_cast<char>(StoreAnswer::kUnavailable))
    return Error{ErrorCode::kProtocol, fmt::format("it answered with the unknown status {}", int{body[0]}),
                 ""};
  return StoreResponse{static_cast<StoreAnswer>(body[0]), body.substr(1)};
}

bool StoreChannel::stale() const {
  pollfd fd{stream_.fd(), POLLIN, 0};
  // Between requests a server has nothing to say: whatever is there to read is the end.
  return poll(&fd, 1, 0) != 0;
}

}  // namespace muster

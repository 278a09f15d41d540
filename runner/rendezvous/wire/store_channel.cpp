// SPDX-License-Identifier: Apache-2.0
// Connects to a store and exchanges messages.
#include "runner/rendezvous/wire/store_channel.h"

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
#include "runner/core/text.h"
#include "runner/rendezvous/wire/listener.h"

namespace muster {
namespace {

constexpr double kCancelLook = 0.05;  // how often cancellation is looked at
constexpr double kAgain = 0.2;        // after a connection that was cut before it was agreed on
constexpr size_t kReadFromStore = size_t{16} * 1024;

Error lost(const std::string& what) {
  return {ErrorCode::kIo, what, ""};
}

/// Waits for `events` on the socket.
Status await(int socket, short events, double deadline, const StoreChannel::Cancelled& cancelled) {
  while (true) {
    if (cancelled()) return Error{ErrorCode::kTimeout, "cancelled", ""};
    const double left = deadline - systemClock().now();
    pollfd fd{socket, events, 0};
    const int ready = poll(&fd, 1, static_cast<int>(std::ceil(std::clamp(left, 0.0, kCancelLook) * 1000)));
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
  while (true) {
    MUSTER_TRY(Fd socket, connectTo(address, deadline, cancelled));
    MUSTER_TRY(StoreStream stream, StoreStream::client(std::move(socket), prefix, key));
    auto step = stream.handshake();
    while (step == StoreStream::Step::kWantsRead || step == StoreStream::Step::kWantsWrite) {
      MUSTER_CHECK_OK(
          await(stream.fd(), step == StoreStream::Step::kWantsRead ? POLLIN : POLLOUT, deadline, cancelled));
      step = stream.handshake();
    }
    StoreChannel channel(std::move(stream));
    const Status greeted =
        step == StoreStream::Step::kDone ? channel.awaitGreeting(deadline, cancelled) : channel.failure(step);
    if (greeted.ok()) return channel;
    // A store that is flooded closes strangers, and nobody is known before the greeting.
    const TlsFault fault = channel.stream_.fault();
    const bool cut = fault == TlsFault::kCut || fault == TlsFault::kEnded;
    const bool told = greeted.error().code == ErrorCode::kUnsupported;
    if (!cut || told || systemClock().now() + kAgain >= deadline) return greeted.error();
    for (const double end = systemClock().now() + kAgain; systemClock().now() < end && !cancelled();)
      poll(nullptr, 0, static_cast<int>(kCancelLook * 1000));
    if (cancelled()) return Error{ErrorCode::kTimeout, "cancelled", ""};
  }
}

Status StoreChannel::awaitGreeting(double deadline, const Cancelled& cancelled) {
  std::vector<StoreResponse> answers;
  while (answers.empty()) {
    MUSTER_CHECK_OK(await(stream_.fd(), POLLIN, deadline, cancelled));
    const Status read = this->read(answers);
    if (answers.empty()) MUSTER_CHECK_OK(read);
  }
  if (answers.front().answer == StoreAnswer::kOk) return {};
  return Error{ErrorCode::kUnsupported, printable(answers.front().text, 400), ""};
}

StoreChannel StoreChannel::over(Fd socket) {
  return StoreChannel(StoreStream::local(std::move(socket), ""));
}

Status StoreChannel::failure(StoreStream::Step step) const {
  if (step != StoreStream::Step::kFailed) return {};
  const bool stranger = stream_.fault() == TlsFault::kNotTls || stream_.fault() == TlsFault::kNoToken;
  return Error{stranger ? ErrorCode::kProtocol : ErrorCode::kIo, stream_.faultText(), ""};
}

Status StoreChannel::write() {
  if (backlog() == 0) return {};
  MUSTER_CHECK_OK(failure(stream_.write(out_, sent_)));
  if (backlog() == 0) {
    out_.clear();
    sent_ = 0;
  }
  return {};
}

Status StoreChannel::read(std::vector<StoreResponse>& out) {
  char buffer[kReadFromStore];
  while (true) {
    size_t got = 0;
    const StoreStream::Step step = stream_.read(buffer, sizeof buffer, got);
    if (step != StoreStream::Step::kDone) return failure(step);
    in_.append(buffer, got);
    MUSTER_CHECK_OK(takeAnswers(out));
  }
}

Status StoreChannel::takeAnswers(std::vector<StoreResponse>& out) {
  size_t at = 0;
  while (in_.size() - at >= kStoreLength) {
    const uint32_t size = readStoreLength(std::string_view(in_).substr(at));
    if (size < kStoreReplyHead || size > kStoreMaxReply)
      return Error{ErrorCode::kProtocol, fmt::format("it answered with {} bytes", size), ""};
    if (in_.size() - at - kStoreLength < size) break;
    MUSTER_TRY(StoreResponse response,
               decodeStoreReply(std::string_view(in_).substr(at + kStoreLength, size)));
    out.push_back(std::move(response));
    at += kStoreLength + size;
  }
  in_.erase(0, at);
  return {};
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Runs TLS over one connection of the store.
#include "runner/rendezvous/wire/store_stream.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

#include "runner/rendezvous/wire/store_key.h"

namespace muster {
namespace {

constexpr const char* kModule = "muster-tls.so";  // found by the RPATH, as all libraries of the distribution

Result<StoreStream::Connection*> connect(bool server, TlsKeyOf keyOf) {
  static void* const module = dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
  static auto* const make =
      module == nullptr ? nullptr : reinterpret_cast<TlsConnect*>(dlsym(module, "musterTlsConnect"));
  StoreStream::Connection* made = make == nullptr ? nullptr : make(server, std::move(keyOf));
  if (made != nullptr) return made;
  return Error{ErrorCode::kInternal,
               make == nullptr ? fmt::format("cannot load {}; is the distribution complete?", kModule)
                               : "OpenSSL cannot be used: it lacks TLS 1.3, AES-128-GCM or X25519",
               ""};
}

class LocalConnection : public StoreStream::Connection {
 public:
  StoreStream::Step handshake() override { return StoreStream::Step::kDone; }
  StoreStream::Step read(char* data, size_t size, size_t& got) override {
    const ssize_t n = recv(socket.get(), data, size, MSG_DONTWAIT);
    if (n < 0) return failedOr(StoreStream::Step::kWantsRead);
    got = static_cast<size_t>(n);
    if (n > 0) return StoreStream::Step::kDone;
    fault = TlsFault::kEnded;
    return StoreStream::Step::kFailed;
  }
  StoreStream::Step write(std::string_view bytes, size_t& sent) override {
    while (sent < bytes.size()) {
      const ssize_t n =
          send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0) return failedOr(StoreStream::Step::kWantsWrite);
      sent += static_cast<size_t>(n);
    }
    return StoreStream::Step::kDone;
  }
  [[nodiscard]] bool buffered() const override { return false; }

 private:
  StoreStream::Step failedOr(StoreStream::Step wait) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return wait;
    fault = TlsFault::kCut;
    reason = errno;
    return StoreStream::Step::kFailed;
  }
};

}  // namespace

StoreStream StoreStream::local(Fd socket, const std::string& prefix) {
  auto made = std::make_unique<LocalConnection>();
  made->socket = std::move(socket);
  made->prefix = prefix;
  made->ready = true;
  return StoreStream(std::move(made));
}

Result<StoreStream> StoreStream::client(Fd socket, const std::string& prefix, const std::string& key) {
  if (prefix.size() > kMaxTlsPrefix)
    return Error{
        ErrorCode::kUsage,
        fmt::format("a store prefix of {} bytes; required: at most {}", prefix.size(), kMaxTlsPrefix), ""};
  MUSTER_TRY(Connection * made, muster::connect(false, [key](const std::string&) { return key; }));
  made->socket = std::move(socket);
  made->prefix = prefix;
  return StoreStream(std::unique_ptr<Connection>(made));
}

Result<StoreStream> StoreStream::server(Fd socket, const std::string& token) {
  MUSTER_TRY(Connection * made,
             muster::connect(true, [token](const std::string& prefix) { return storeKey(token, prefix); }));
  made->socket = std::move(socket);
  return StoreStream(std::unique_ptr<Connection>(made));
}

std::string StoreStream::faultText() const {
  switch (fault()) {
    case TlsFault::kNone:
      return "";
    case TlsFault::kEnded:
      return "it closed the connection";
    case TlsFault::kCut:
      return fmt::format("the connection was interrupted{}{}",
                         connection_->ready ? "" : " before the keys were agreed on",
                         connection_->reason == 0 ? "" : ": " + errnoText(connection_->reason));
    case TlsFault::kNotTls:
      return "the service there does not speak TLS: it is not a Muster rendezvous";
    case TlsFault::kNoToken:
      return "what listens there has another token or none: it is not the rendezvous of this run, or "
             "MUSTER_TOKEN is not the same on every node";
    case TlsFault::kAltered:
      return "bytes were altered or replayed on their way, or what listens there only claims to have the "
             "token";
  }
  return "";
}

}  // namespace muster

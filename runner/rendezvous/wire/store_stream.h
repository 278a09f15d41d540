// SPDX-License-Identifier: Apache-2.0
// One end of a connection of the store. Internal to this folder.
//
// Between machines it is TLS 1.3 with a pre-shared key. Both ends must hold the key: there are no
// certificates, no session tickets and no early data, and each connection has its own ephemeral key (X25519).
// The client names the prefix of the store keys that it may use; the key follows from the token and that
// prefix, so a peer that has it can use nothing else. Within a machine it is one end of a socket pair:
// whoever was given the other end is the peer, and nobody else can be.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runner/core/result.h"
#include "runner/system/files.h"

namespace muster {

/// Why a connection cannot go on, as far as its bytes tell.
enum class TlsFault {
  kNone,
  kEnded,    ///< the peer closed it as TLS says
  kCut,      ///< it broke off: the peer or something between died, or cut it
  kNotTls,   ///< the peer speaks something else
  kNoToken,  ///< the peer has no token, or another one
  kAltered,  ///< bytes were altered or replayed, or come from one who only claims to have the token
};

class StoreStream {
 public:
  enum class Step { kDone, kWantsRead, kWantsWrite, kFailed };

  /// What tls_module.cpp implements, and local() for a socket pair.
  class Connection {
   public:
    virtual ~Connection() = default;
    virtual Step handshake() = 0;
    virtual Step read(char* data, size_t size, size_t& got) = 0;
    virtual Step write(std::string_view bytes, size_t& sent) = 0;
    [[nodiscard]] virtual bool buffered() const = 0;

    Fd socket;
    std::string prefix;
    TlsFault fault = TlsFault::kNone;
    int reason = 0;      ///< errno of what failed on the socket
    bool ready = false;  ///< the handshake is done
  };

  /// `prefix` of at most kMaxTlsPrefix bytes; `key`: storeKey() of it.
  static Result<StoreStream> client(Fd socket, const std::string& prefix, const std::string& key);
  static Result<StoreStream> server(Fd socket, const std::string& token);
  /// One end of a socket pair; of the server's end `prefix` is what the peer may use.
  static StoreStream local(Fd socket, const std::string& prefix);

  // Each of these goes as far as it can without waiting. After kFailed only fault() is of use. When the
  // object goes, the peer is told that nothing more comes, if that can be sent at once.

  Step handshake() { return connection_->handshake(); }
  /// At least one byte, at most `size`.
  Step read(char* data, size_t size, size_t& got) { return connection_->read(data, size, got); }
  /// Of `bytes` those from `sent` on; what was begun must be gone on with.
  Step write(std::string_view bytes, size_t& sent) { return connection_->write(bytes, sent); }
  /// Whether bytes are here that the socket does not show.
  [[nodiscard]] bool buffered() const { return connection_->buffered(); }

  [[nodiscard]] int fd() const { return connection_->socket.get(); }
  /// What the peer of a server may use, once the handshake is done.
  [[nodiscard]] const std::string& prefix() const { return connection_->prefix; }
  [[nodiscard]] TlsFault fault() const { return connection_->fault; }
  /// The fault in words, about the peer.
  [[nodiscard]] std::string faultText() const;

 private:
  explicit StoreStream(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

  std::unique_ptr<Connection> connection_;
};

constexpr size_t kMaxTlsPrefix = 240;

/// The key of a prefix, as a server finds it; a client has just the one.
using TlsKeyOf = std::function<std::string(const std::string& prefix)>;
/// The symbol musterTlsConnect of muster-tls.so; null where OpenSSL cannot be used.
using TlsConnect = StoreStream::Connection*(bool server, TlsKeyOf keyOf);

}  // namespace muster

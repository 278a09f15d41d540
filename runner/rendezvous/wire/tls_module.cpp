// SPDX-License-Identifier: Apache-2.0
// muster-tls.so: see store_stream.h. A module of its own, with OpenSSL in it, as most processes of a run have
// no connection and would only pay for its tables.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "runner/rendezvous/wire/store_stream.h"

namespace muster {
namespace {

// TLS refuses an empty identity, which an empty prefix would be.
constexpr std::string_view kIdentity = "muster:";
static_assert(kIdentity.size() + kMaxTlsPrefix < PSK_MAX_IDENTITY_LEN);

class Connection : public StoreStream::Connection {
 public:
  using Step = StoreStream::Step;

  Connection(SSL_CTX* context, bool server, TlsKeyOf given)
      : keyOf(std::move(given)), ssl_(SSL_new(context)) {
    if (ssl_ == nullptr) return;
    SSL_set_app_data(ssl_, this);
    if (server) {
      SSL_set_accept_state(ssl_);
    } else {
      SSL_set_connect_state(ssl_);
      // No authority is known: who answers with a certificate instead of the key is refused.
      SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);
    }
  }
  ~Connection() override {
    if (ready && fault == TlsFault::kNone) SSL_shutdown(ssl_);
    SSL_free(ssl_);
    ERR_clear_error();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Whether it can be used.
  bool attach(BIO_METHOD* method) {
    BIO* bio = ssl_ == nullptr ? nullptr : BIO_new(method);
    if (bio == nullptr) return false;
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
    return true;
  }

  Step handshake() override {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_);
    starved_ = result != 1;
    if (result != 1) return stepOf(result);
    ready = SSL_session_reused(ssl_) == 1;
    if (!ready) fault = TlsFault::kNoToken;  // not by the key, however else
    return ready ? Step::kDone : Step::kFailed;
  }
  Step read(char* data, size_t size, size_t& got) override {
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_, data, size, &got);
    starved_ = result != 1;
    return result == 1 ? Step::kDone : stepOf(result);
  }
  Step write(std::string_view bytes, size_t& sent) override {
    while (sent < bytes.size()) {
      ERR_clear_error();
      size_t written = 0;
      const int result = SSL_write_ex(ssl_, bytes.data() + sent, bytes.size() - sent, &written);
      if (result != 1) return stepOf(result);
      sent += written;
    }
    return Step::kDone;
  }
  [[nodiscard]] bool buffered() const override { return !starved_ && SSL_has_pending(ssl_) == 1; }

  TlsKeyOf keyOf;
  std::string start;   ///< the first two bytes that came
  bool ended = false;  ///< the socket is at its end

 private:
  Step stepOf(int result) {
    if (fault != TlsFault::kNone) return Step::kFailed;
    const int why = SSL_get_error(ssl_, result);
    if (why == SSL_ERROR_WANT_READ) return Step::kWantsRead;
    if (why == SSL_ERROR_WANT_WRITE) return Step::kWantsWrite;
    const unsigned long error = ERR_peek_error();
    ERR_clear_error();
    const bool end =
        ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    fault = why == SSL_ERROR_ZERO_RETURN ? TlsFault::kEnded
                                         : faultOf(why == SSL_ERROR_SSL && !end && reason == 0);
    return Step::kFailed;
  }

  [[nodiscard]] TlsFault faultOf(bool tlsError) const {
    const bool tls =
        start.empty() || (start[0] >= 20 && start[0] <= 23 && (start.size() == 1 || start[1] == 3));
    if (!tls) return TlsFault::kNotTls;
    if (!tlsError) return TlsFault::kCut;
    // Once the key has been agreed on, every record is authenticated.
    return SSL_session_reused(ssl_) == 1 ? TlsFault::kAltered : TlsFault::kNoToken;
  }

  SSL* ssl_;
  bool starved_ = false;  ///< what is here is no whole record: nothing to read until the socket has more
};

Connection& connectionOf(SSL* ssl) {
  return *static_cast<Connection*>(SSL_get_app_data(ssl));
}

unsigned copyKey(const Connection& connection, unsigned char* out, unsigned capacity) {
  const std::string key = connection.keyOf(connection.prefix);
  if (key.size() > capacity) return 0;
  std::memcpy(out, key.data(), key.size());
  return static_cast<unsigned>(key.size());
}

unsigned clientKey(SSL* ssl, const char* /*hint*/, char* identity, unsigned capacity, unsigned char* key,
                   unsigned keyCapacity) {
  const Connection& connection = connectionOf(ssl);
  const std::string name = std::string(kIdentity) + connection.prefix;
  if (name.size() >= capacity) return 0;
  std::memcpy(identity, name.c_str(), name.size() + 1);
  return copyKey(connection, key, keyCapacity);
}

unsigned serverKey(SSL* ssl, const char* identity, unsigned char* key, unsigned keyCapacity) {
  const std::string_view name = identity;
  if (!name.starts_with(kIdentity)) return 0;
  Connection& connection = connectionOf(ssl);
  connection.prefix = name.substr(kIdentity.size());
  return copyKey(connection, key, keyCapacity);
}

// The socket as OpenSSL sees it. Its own kind raises SIGPIPE where a peer is gone.

int socketRead(BIO* bio, char* data, int size) {
  auto& state = *static_cast<Connection*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t got = recv(state.socket.get(), data, static_cast<size_t>(size), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_read(bio);
  } else if (got < 0) {
    state.reason = errno;
  } else if (got == 0) {
    state.ended = true;
  } else if (state.start.size() < 2) {
    state.start.append(data, std::min(static_cast<size_t>(got), 2 - state.start.size()));
  }
  return static_cast<int>(got);
}

int socketWrite(BIO* bio, const char* data, int size) {
  auto& state = *static_cast<Connection*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t sent = send(state.socket.get(), data, static_cast<size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_write(bio);
  } else if (sent < 0) {
    state.reason = errno;
  }
  return static_cast<int>(sent);
}

long socketControl(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_EOF) return static_cast<Connection*>(BIO_get_data(bio))->ended ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* socketMethod() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
  BIO_meth_set_read(method, socketRead);
  BIO_meth_set_write(method, socketWrite);
  BIO_meth_set_ctrl(method, socketControl);
  return method;
}

SSL_CTX* makeContext() {
  // The system's openssl.cnf is for certificates and providers, and could allow less or more than this. The
  // rest is time that each process would spend on texts and names that are not used here.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
                          OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_ADD_ALL_DIGESTS,
                      nullptr);
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_SSL_STRINGS, nullptr);
  SSL_CTX* context = SSL_CTX_new(TLS_method());
  const bool made = context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
                    // A pre-shared key given by the callbacks below is bound to SHA-256.
                    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
                    SSL_CTX_set1_groups_list(context, "X25519") == 1 &&
                    SSL_CTX_set_num_tickets(context, 0) == 1;
  if (!made) return nullptr;
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_read_ahead(context, 1);  // a record's head and body with one recv()
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_psk_client_callback(context, clientKey);
  SSL_CTX_set_psk_server_callback(context, serverKey);
  return context;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) StoreStream::Connection* musterTlsConnect(bool server,
                                                                                            TlsKeyOf keyOf) {
  static SSL_CTX* const context = makeContext();  // for as long as the process lives, as OpenSSL's own
  static BIO_METHOD* const method = socketMethod();
  if (context == nullptr || method == nullptr) return nullptr;
  auto made = std::make_unique<Connection>(context, server, std::move(keyOf));
  return made->attach(method) ? made.release() : nullptr;
}

}  // namespace muster

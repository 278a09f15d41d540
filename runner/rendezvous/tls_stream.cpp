// SPDX-License-Identifier: Apache-2.0
// See tls_stream.h.
#include "runner/rendezvous/tls_stream.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runner/rendezvous/store_key.h"

namespace muster {
namespace {

constexpr const char* kModule = "muster-tls.so";  // found by the RPATH, as all libraries of the distribution

Result<TlsStream::Connection*> connect(bool server, TlsKeyOf keyOf) {
  static void* const module = dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
  static auto* const make =
      module == nullptr ? nullptr : reinterpret_cast<TlsConnect*>(dlsym(module, "musterTlsConnect"));
  TlsStream::Connection* made = make == nullptr ? nullptr : make(server, std::move(keyOf));
  if (made != nullptr) return made;
  return Error{ErrorCode::kInternal,
               make == nullptr ? fmt::format("cannot load {}; is the distribution complete?", kModule)
                               : "OpenSSL cannot be used: it lacks TLS 1.3, AES-128-GCM or X25519",
               ""};
}

}  // namespace

Result<TlsStream> TlsStream::client(Fd socket, const std::string& prefix, const std::string& key) {
  if (prefix.size() > kMaxTlsPrefix)
    return Error{
        ErrorCode::kUsage,
        fmt::format("a store prefix of {} bytes; required: at most {}", prefix.size(), kMaxTlsPrefix), ""};
  MUSTER_TRY(Connection * made, muster::connect(false, [key](const std::string&) { return key; }));
  made->socket = std::move(socket);
  made->prefix = prefix;
  return TlsStream(std::unique_ptr<Connection>(made));
}

Result<TlsStream> TlsStream::server(Fd socket, const std::string& token) {
  MUSTER_TRY(Connection * made,
             muster::connect(true, [token](const std::string& prefix) { return storeKey(token, prefix); }));
  made->socket = std::move(socket);
  return TlsStream(std::unique_ptr<Connection>(made));
}

std::string TlsStream::faultText() const {
  switch (fault()) {
    case TlsFault::kNone:
      return "";
    case TlsFault::kEnded:
      return "it closed the connection";
    case TlsFault::kCut:
      return fmt::format("the connection was cut{}{}",
                         connection_->ready ? "" : " before the keys were agreed on",
                         connection_->reason == 0 ? "" : ": " + errnoText(connection_->reason));
    case TlsFault::kNotTls:
      return "what listens there does not speak TLS: it is no Muster rendezvous";
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

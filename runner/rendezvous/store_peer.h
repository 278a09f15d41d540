// SPDX-License-Identifier: Apache-2.0
// One connection of the store's server: its handshake, its bytes in and out. Internal to this folder.
#pragma once

#include <memory>
#include <string>

#include "runner/rendezvous/store_protocol.h"
#include "runner/rendezvous/store_state.h"
#include "runner/rendezvous/tls_stream.h"

namespace muster {

/// Reads and writes without ever blocking. It never buffers more than the part of the protocol that it is in
/// allows, and reads no request before `admit` let it.
class StorePeer {
 public:
  enum class Phase {
    kProving,    ///< a stranger
    kIdle,       ///< between requests, or within the length of one
    kQueueing,   ///< told its request's length, waits for room in the server's buffers
    kReceiving,  ///< within a request
    kAwaiting,   ///< has asked; anything it sends now is a breach of the protocol
    kAnswering,  ///< takes its answer
  };
  /// Why it has to go.
  enum class End { kNone, kGone, kNotTls, kNoToken, kAltered, kMalformed };

  explicit StorePeer(TlsStream stream) : stream_(std::move(stream)) {}

  [[nodiscard]] int fd() const { return stream_.fd(); }
  /// Whether it has sent what the socket does not show any more.
  [[nodiscard]] bool buffered() const { return stream_.buffered(); }
  [[nodiscard]] Phase phase() const { return phase_; }
  /// Bytes that its announced request takes.
  [[nodiscard]] size_t requestSize() const { return wanted_; }
  /// Whether some but not all bytes of a request's length have come.
  [[nodiscard]] bool inLength() const { return phase_ == Phase::kIdle && !in_.empty(); }
  /// Whether it is to be watched for bytes to read, and for room to write.
  [[nodiscard]] bool wantsToRead() const { return phase_ != Phase::kQueueing && phase_ != Phase::kAnswering; }
  [[nodiscard]] bool wantsToWrite() const { return phase_ == Phase::kAnswering; }

  /// Takes what has arrived, as far as the phase allows.
  End read();
  /// Lets a queueing peer send its request.
  void admit();
  /// The request, once it is complete: phase() is then kAwaiting, and its bytes are no longer buffered.
  bool takeRequest(StoreRequest& request, std::string& problem);
  /// Begins to send an answer, or goes on with it.
  End answer(const StoreReply& reply);
  End write();

 private:
  End fill(size_t size);
  End prove();
  [[nodiscard]] End endOf(TlsStream::Step step) const;

  TlsStream stream_;
  Phase phase_ = Phase::kProving;
  std::string in_;
  size_t wanted_ = 0;
  std::string head_;  ///< of the answer: length, status and short texts
  std::shared_ptr<const StoredValue> value_;
  size_t sent_ = 0;
  bool complete_ = false;
};

}  // namespace muster

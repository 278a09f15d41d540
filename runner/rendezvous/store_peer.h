// SPDX-License-Identifier: Apache-2.0
// One connection of the store's server: its handshake, its bytes in and out. Internal to this folder.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "runner/rendezvous/store_desk.h"
#include "runner/rendezvous/wire/store_protocol.h"
#include "runner/rendezvous/wire/store_stream.h"

namespace muster {

/// Reads and writes without ever blocking. It never buffers more than the part of the protocol that it is in
/// allows, reads no request before `admit` let it, and none while too many wait for their answers.
class StorePeer {
 public:
  enum class Phase {
    kProving,    ///< a stranger
    kIdle,       ///< between requests, or within the length of one
    kQueueing,   ///< told its request's length, waits for room in the server's buffers
    kReceiving,  ///< within a request
  };
  /// Why it has to go.
  enum class End { kNone, kGone, kNotTls, kNoToken, kAltered, kMalformed };

  /// `local`: one end of a socket pair, whose keys get its prefix here; others send whole keys.
  explicit StorePeer(StoreStream stream, bool local = false)
      : stream_(std::move(stream)), local_(local), phase_(local ? Phase::kIdle : Phase::kProving) {}

  [[nodiscard]] int fd() const { return stream_.fd(); }
  [[nodiscard]] bool local() const { return local_; }
  [[nodiscard]] const std::string& prefix() const { return stream_.prefix(); }
  /// Whether it has sent what the socket does not show any more.
  [[nodiscard]] bool buffered() const { return stream_.buffered(); }
  [[nodiscard]] Phase phase() const { return phase_; }
  /// Bytes that its announced request takes.
  [[nodiscard]] size_t requestSize() const { return wanted_; }
  /// Whether it is to be watched for bytes to read, and for room to write.
  [[nodiscard]] bool wantsToRead() const { return phase_ != Phase::kQueueing && open_ < kMostOpen; }
  [[nodiscard]] bool wantsToWrite() const { return !out_.empty() || !answers_.empty(); }
  /// Which transfer it is in the middle of, each way; 0: in none. Another number is another transfer.
  [[nodiscard]] uint64_t receiving() const;
  [[nodiscard]] uint64_t sending() const { return wantsToWrite() ? 1 + sent_ : 0; }

  /// Takes what has arrived, as far as the phase allows: at most one length or one request.
  End read();
  /// Lets a queueing peer send its request.
  void admit();
  /// The request, once it is complete; its bytes are then no longer buffered. `problem`: it breaks the
  /// protocol.
  bool takeRequest(StoreRequest& request, std::string& problem);
  /// Keeps an answer for write().
  void answer(const StoreReply& reply, uint32_t id);
  /// The same for the first answer of a connection, which nobody asked for: whether it is served.
  void greet(const StoreReply& reply);
  /// An open request that gets no answer.
  void forget() { --open_; }
  /// Sends answers, as far as the peer takes them.
  End write();

 private:
  static constexpr size_t kMostOpen = 4096;  ///< requests without answer: of all ranks of a node
  struct Answer {
    std::string head;  ///< length, status, number and short texts
    std::shared_ptr<const StoredValue> value;
  };

  End fill(size_t size);
  End prove();
  void gather();
  [[nodiscard]] End endOf(StoreStream::Step step) const;

  StoreStream stream_;
  bool local_;
  Phase phase_;
  std::string in_;
  size_t wanted_ = 0;
  uint64_t received_ = 0;  ///< requests
  bool complete_ = false;
  size_t open_ = 0;
  std::deque<Answer> answers_;
  std::string out_;                           ///< of answers that go out together
  std::shared_ptr<const StoredValue> value_;  ///< a large one that follows `out_`
  size_t gathered_ = 0;                       ///< answers in both
  size_t offset_ = 0;                         ///< of both, what is gone
  uint64_t sent_ = 0;
};

}  // namespace muster

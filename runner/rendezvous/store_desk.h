// SPDX-License-Identifier: Apache-2.0
// What answers the requests that reach a server: the store itself, or a relay to another one. Internal to
// this folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/rendezvous/wire/store_protocol.h"

namespace muster {

/// A value that counts itself in the store's memory for as long as anyone refers to it.
class StoredValue {
 public:
  StoredValue(std::string text, std::atomic<size_t>& memory) : text_(std::move(text)), memory_(memory) {
    memory_ += text_.size();
  }
  ~StoredValue() { memory_ -= text_.size(); }
  StoredValue(const StoredValue&) = delete;
  StoredValue& operator=(const StoredValue&) = delete;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::atomic<size_t>& memory_;
};

/// One open request, or one connection.
using StorePeerId = uint64_t;

/// The answer to an open request.
struct StoreReply {
  StorePeerId peer = 0;
  StoreAnswer answer = StoreAnswer::kOk;
  std::shared_ptr<const StoredValue> value;  ///< what a get returns; else `text` holds
  std::string text;
};

/// Belongs to one thread, but for stop(). Times are seconds of any one clock.
class StoreDesk {
 public:
  virtual ~StoreDesk() = default;
  /// Takes the request `peer`. What is answered now, to this one and to others, is added to `out`.
  virtual void handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) = 0;
  /// Forgets a request whose asker is gone, with its place at a barrier.
  virtual void leave(StorePeerId peer) = 0;
  /// Of a request for several ranks at a barrier: one of them is gone.
  virtual void leaveRank(StorePeerId /*peer*/, int64_t /*rank*/) {}
  /// A connection is gone, with all that it asked.
  virtual void closed(uint64_t /*connection*/) {}
  /// A process of this machine may use the keys that begin with `prefix` from now on, or no longer.
  virtual void attach(const std::string& /*prefix*/) {}
  virtual void detach(const std::string& /*prefix*/) {}
  /// Goes on with what waits for the time or for descriptor(); called after each turn of the server's loop.
  virtual void proceed(double now, std::vector<StoreReply>& out) = 0;
  /// When proceed() has something to do; infinity: never.
  [[nodiscard]] virtual double nextDeadline() const = 0;
  /// Becomes readable when proceed() has something to do; -1: there is none.
  [[nodiscard]] virtual int descriptor() const { return -1; }
  /// Bytes of requests that wait here to be passed on.
  [[nodiscard]] virtual size_t backlog() const { return 0; }
  /// Requests that were refused because keys or memory were used up.
  [[nodiscard]] virtual uint64_t noRoom() const { return 0; }
  [[nodiscard]] virtual uint64_t noRoomForRanks() const { return 0; }
  /// Requests that were answered with kTaken.
  [[nodiscard]] virtual uint64_t taken() const { return 0; }
  /// Ends whatever waits inside of a call. From any thread.
  virtual void stop() {}
};

}  // namespace muster

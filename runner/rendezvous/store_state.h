// SPDX-License-Identifier: Apache-2.0
// What a store holds: keys, counters, barriers and who waits for them. No sockets, no clock of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runner/rendezvous/store_protocol.h"
#include "runner/rendezvous/store_server.h"

namespace muster {

/// A value that counts itself in the store's memory for as long as anyone refers to it.
class StoredValue {
 public:
  StoredValue(std::string text, size_t& memory) : text_(std::move(text)), memory_(memory) {
    memory_ += text_.size();
  }
  ~StoredValue() { memory_ -= text_.size(); }
  StoredValue(const StoredValue&) = delete;
  StoredValue& operator=(const StoredValue&) = delete;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t& memory_;
};

using StorePeerId = uint64_t;

/// The answer to a peer's one open request.
struct StoreReply {
  StorePeerId peer = 0;
  StoreAnswer answer = StoreAnswer::kOk;
  std::shared_ptr<const StoredValue> value;  ///< what a get returns; else `text` holds
  std::string text;
};

/// Times are seconds of any one clock. A peer has at most one request open.
class StoreState {
 public:
  explicit StoreState(const StoreLimits& limits) : limits_(limits) {}

  /// Answers at once or remembers who waits. What is answered, to this peer and to others, is added to `out`.
  void handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out);
  /// Ends the waits whose deadline has passed.
  void expire(double now, std::vector<StoreReply>& out);
  /// Forgets a peer that is gone, with its place at a barrier.
  void leave(StorePeerId peer);
  /// When expire() has something to do; infinity: never.
  [[nodiscard]] double nextDeadline() const;
  [[nodiscard]] size_t memory() const { return memory_; }
  /// Requests that were refused because keys or memory were used up.
  [[nodiscard]] uint64_t noRoom() const { return noRoom_; }

 private:
  struct Wait {
    double deadline = 0;
    bool barrier = false;
    std::string name;
    int64_t rank = 0;
  };
  struct Barrier {
    int64_t count = 0;
    std::map<int64_t, StorePeerId> here;  ///< rank -> who waits
    /// Once the first wait has timed out: who was missing then. Those who come later are told the same, so
    /// that all ranks name the same culprit.
    std::string broken;
  };

  void set(StorePeerId peer, const std::string& key, std::string value, std::vector<StoreReply>& out);
  void get(StorePeerId peer, const StoreRequest& request, double now, std::vector<StoreReply>& out);
  void add(StorePeerId peer, const StoreRequest& request, std::vector<StoreReply>& out);
  void barrier(StorePeerId peer, const StoreRequest& request, double now, std::vector<StoreReply>& out);
  void clear(StorePeerId peer, const std::string& start, std::vector<StoreReply>& out);
  Status keep(const std::string& key, std::string value, std::vector<StoreReply>& out);
  void wait(StorePeerId peer, Wait wait);
  void endWait(StorePeerId peer);
  Error full(const std::string& what);
  void giveUp(const std::string& name, std::vector<StoreReply>& out);
  [[nodiscard]] std::string missingAt(const std::string& name) const;

  StoreLimits limits_;
  uint64_t noRoom_ = 0;
  size_t memory_ = 0;  // first: values count themselves out of it when they go
  std::map<std::string, std::shared_ptr<const StoredValue>> values_;
  std::map<std::string, Barrier> barriers_;
  std::map<StorePeerId, Wait> waits_;
  std::map<std::string, std::set<StorePeerId>> keyWaiters_;
  std::set<std::pair<double, StorePeerId>> deadlines_;
};

}  // namespace muster

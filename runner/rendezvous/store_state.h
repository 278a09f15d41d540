// SPDX-License-Identifier: Apache-2.0
// What a store holds: keys, counters, barriers and who waits for them. No sockets, no clock of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runner/rendezvous/store_desk.h"
#include "runner/rendezvous/store_server.h"

namespace muster {

class StoreState : public StoreDesk {
 public:
  explicit StoreState(const StoreLimits& limits) : limits_(limits) {}

  void handle(StorePeerId peer, StoreRequest request, double now, std::vector<StoreReply>& out) override;
  void leave(StorePeerId peer) override;
  void leaveRank(StorePeerId peer, int64_t rank) override;
  void closed(uint64_t connection) override { seated_.erase(connection); }
  /// Ends the waits whose deadline has passed.
  void proceed(double now, std::vector<StoreReply>& out) override;
  [[nodiscard]] double nextDeadline() const override;
  [[nodiscard]] size_t memory() const { return ranks_.memory + others_.memory; }
  [[nodiscard]] uint64_t noRoom() const override { return ranks_.refused + others_.refused; }
  [[nodiscard]] uint64_t noRoomForRanks() const override { return ranks_.refused; }
  [[nodiscard]] uint64_t taken() const override { return taken_; }

 private:
  struct Entry {
    std::shared_ptr<const StoredValue> value;
    uint64_t version = 0;     ///< grows with each change of any key
    uint64_t connection = 0;  ///< that set it
  };
  /// What the keys of ranks take, and all others.
  struct Share {
    std::atomic<size_t> memory{0};
    size_t keys = 0;       ///< and open barriers
    uint64_t refused = 0;  ///< requests that there was no room for
  };
  struct Wait {
    double deadline = 0;
    bool barrier = false;
    std::string name;
    std::vector<int64_t> ranks;
    bool touch = false;      ///< the answer tells the version, too
    int64_t patienceMs = 0;  ///< how long it waits
    [[nodiscard]] size_t cost() const;
  };
  struct Barrier {
    int64_t count = 0;
    std::map<int64_t, StorePeerId> here;  ///< rank -> who waits
    /// Once the first wait has timed out: who was missing then. Those who come later are told the same, so
    /// that all ranks name the same culprit.
    std::string broken;
  };

  void set(StorePeerId peer, StoreRequest& request, std::vector<StoreReply>& out);
  void get(StorePeerId peer, const StoreRequest& request, double now, std::vector<StoreReply>& out);
  void add(StorePeerId peer, const StoreRequest& request, std::vector<StoreReply>& out);
  void barrier(StorePeerId peer, const StoreRequest& request, double now, std::vector<StoreReply>& out);
  void touch(StorePeerId peer, const StoreRequest& request, double now, std::vector<StoreReply>& out);
  void changes(StorePeerId peer, const StoreRequest& request, std::vector<StoreReply>& out) const;
  void clear(StorePeerId peer, const std::string& start, std::vector<StoreReply>& out);
  Status keep(const std::string& key, std::string value, uint64_t connection, std::vector<StoreReply>& out);
  Status seat(const StoreRequest& request, const std::vector<int64_t>& ranks);
  StoreReply refusal(StorePeerId peer, const Error& why);
  void wait(StorePeerId peer, Wait wait, std::vector<StoreReply>& out);
  void endWait(StorePeerId peer);
  static bool isOfRanks(const std::string& key);
  Share& shareOf(const std::string& key);
  Status room(const std::string& key, bool fresh, size_t more, size_t less = 0);
  std::map<std::string, Barrier>::iterator drop(std::map<std::string, Barrier>::iterator barrier);
  void giveUp(const Wait& wait, std::vector<StoreReply>& out);
  [[nodiscard]] std::string missingAt(const std::string& name) const;

  StoreLimits limits_;
  Share ranks_, others_;  // first: values count themselves out of them when they go
  std::map<std::string, Entry> values_;
  uint64_t version_ = 0;
  std::map<std::string, Barrier> barriers_;
  /// By what the names of barriers of ranks begin with, up to the last slash: for each rank the connection
  /// that came for it first.
  std::map<std::string, std::vector<uint64_t>> seats_;
  std::set<uint64_t> seated_;  ///< open connections among them
  uint64_t taken_ = 0;
  std::map<StorePeerId, Wait> waits_;
  std::map<std::string, std::set<StorePeerId>> keyWaiters_;
  std::set<std::pair<double, StorePeerId>> deadlines_;
};

}  // namespace muster

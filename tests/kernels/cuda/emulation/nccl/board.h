// SPDX-License-Identifier: Apache-2.0
// What the ranks of the fake NCCL share: a file in memory with a place for each rank and a mailbox for each
// pair. A rank that ends, however, is seen to be gone, since the kernel drops its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace muster::emulation {

inline constexpr int kMostRanks = 8;
inline constexpr uint64_t kChunk = 64 << 10;  ///< bytes of a mailbox; longer messages go in pieces

/// From one rank to another: one piece of a message at a time.
struct Mailbox {
  std::atomic<uint64_t> sent, taken;  ///< pieces
  uint64_t bytes;
  uint64_t tag;  ///< of the operation that the message belongs to
  std::byte data[kChunk];

  [[nodiscard]] bool empty() const { return sent.load() == taken.load(); }
};

class Board {
 public:
  /// Makes a new one; its path is what a unique id holds. Empty: the folder cannot be written.
  static std::string create();
  /// Takes `rank`'s place among `ranks`; none when there is no such board, or the place is taken.
  static std::shared_ptr<Board> join(const std::string& path, int rank, int ranks);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  Mailbox& mailbox(int from, int to);
  void beReady();  ///< has come and takes part
  [[nodiscard]] bool ready(int rank) const;
  /// The number of ranks that `rank` was told of; 0 while it has not come.
  [[nodiscard]] int sizeSeenBy(int rank) const;
  /// Whether a rank that came has ended, or left before this one did.
  [[nodiscard]] bool gone(int rank) const;
  void leave();   ///< ends well
  void vanish();  ///< aborts: the others see this rank gone
  [[nodiscard]] bool left(int rank) const;
  /// Whether all have left.
  [[nodiscard]] bool allLeft(int ranks) const;

 private:
  struct Shared;
  Board(int file, Shared* shared, int rank) : file_(file), shared_(shared), rank_(rank) {}

  int file_;
  Shared* shared_;
  int rank_;
};

}  // namespace muster::emulation

// SPDX-License-Identifier: Apache-2.0
// Check sums of a file's blocks, by which a changed byte is found without the original file. They locate; the
// SHA-256 beside them is what proves that a file is unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::attest {

/// The CRC-32 of each block of a file; the last block may be shorter.
struct BlockSums {
  uint64_t bytes = 0;  ///< of the file
  uint64_t block = 1;  ///< bytes of a block
  std::vector<uint32_t> sums;
};

/// The size of blocks for a file: a power of two, so that there are at most 64.
uint64_t blockSizeFor(uint64_t bytes);

/// Computes sums over bytes that arrive in pieces.
class BlockSummer {
 public:
  explicit BlockSummer(uint64_t block) : block_(block) {}
  void add(std::string_view bytes);
  [[nodiscard]] BlockSums sums() const;

 private:
  uint64_t block_;
  uint64_t bytes_ = 0;
  uint32_t open_ = 0;    ///< of the block that is not full
  uint64_t filled_ = 0;  ///< bytes of it
  std::vector<uint32_t> full_;
};

/// A part of a file that differs: [begin, end).
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
/// From the first differing block to the last one; none: no sum differs. Blocks that one of the files lacks
/// differ.
std::optional<ByteRange> differingRange(const BlockSums& expected, const BlockSums& found);

/// One byte of a block that was changed.
struct ChangedByte {
  uint64_t at = 0;         ///< within the block
  unsigned char from = 0;  ///< what it must have been
};
/// All single bytes whose change turns a block with the sum `expected` into `block`. With blocks of some
/// kilobytes it is the changed byte alone, or by chance one more; none: more than one byte was changed.
std::vector<ChangedByte> singleChanges(std::string_view block, uint32_t expected);

}  // namespace muster::attest

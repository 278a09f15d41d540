// SPDX-License-Identifier: Apache-2.0
// Locates changed bytes by CRC-32.
#include "runner/attest/byte_locator.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace muster::attest {
namespace {

constexpr uint64_t kLeastBlock = 256;
constexpr uint64_t kMostBlocks = 64;

uint32_t crcOf(uint32_t crc, std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

/// Which entry of zlib's table has a given highest byte: each byte is that of exactly one.
std::array<uint8_t, 256> entriesByHighByte() {
  std::array<uint8_t, 256> entries{};
  for (unsigned i = 0; i < 256; ++i) entries[get_crc_table()[i] >> 24 & 0xff] = static_cast<uint8_t>(i);
  return entries;
}

/// The state of a CRC register before a byte of zero was taken in.
uint32_t stepBack(uint32_t state) {
  static const std::array<uint8_t, 256> entries = entriesByHighByte();
  const uint32_t index = entries[state >> 24];
  return (state ^ static_cast<uint32_t>(get_crc_table()[index])) << 8 | index;
}

uint64_t endOf(const BlockSums& sums, size_t block) {
  return std::min(sums.bytes, (block + 1) * sums.block);
}

}  // namespace

uint64_t blockSizeFor(uint64_t bytes) {
  uint64_t block = kLeastBlock;
  while (bytes / block >= kMostBlocks) block *= 2;
  return block;
}

void BlockSummer::add(std::string_view bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, block_ - filled_);
    open_ = crcOf(open_, part);
    filled_ += part.size();
    bytes.remove_prefix(part.size());
    if (filled_ < block_) continue;
    full_.push_back(open_);
    open_ = 0;
    filled_ = 0;
  }
}

BlockSums BlockSummer::sums() const {
  BlockSums sums{bytes_, block_, full_};
  if (filled_ > 0) sums.sums.push_back(open_);
  return sums;
}

std::optional<ByteRange> differingRange(const BlockSums& expected, const BlockSums& found) {
  std::optional<ByteRange> range;
  for (size_t i = 0; i < std::max(expected.sums.size(), found.sums.size()); ++i) {
    const bool both = i < expected.sums.size() && i < found.sums.size();
    if (both && expected.sums[i] == found.sums[i] && endOf(expected, i) == endOf(found, i)) continue;
    if (!range) range.emplace(ByteRange{i * expected.block, 0});
    range->end = std::max(endOf(expected, i), endOf(found, i));
  }
  return range;
}

// A CRC is linear: the sums of two blocks that differ in one byte differ by what that byte's difference alone
// becomes, with the bytes after it zero. Undoing those bytes one by one ends in the difference itself, a
// value below 256, at the place of the changed byte.
std::vector<ChangedByte> singleChanges(std::string_view block, uint32_t expected) {
  std::vector<ChangedByte> changes;
  uint32_t state = crcOf(0, block) ^ expected;
  if (state == 0) return changes;
  for (size_t at = block.size(); at-- > 0;) {
    state = stepBack(state);
    if (state < 256)
      changes.push_back({at, static_cast<unsigned char>(static_cast<unsigned char>(block[at]) ^ state)});
  }
  return changes;
}

}  // namespace muster::attest

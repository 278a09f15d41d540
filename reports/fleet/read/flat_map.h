// SPDX-License-Identifier: Apache-2.0
// A hash map for what is filled and emptied a million times: it allocates only where it grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runner/core/keyed_hash.h"

namespace muster::fleet {

/// Numbers to values. A pointer to a value is valid until the next tryEmplace().
template <typename V>
class FlatMap {
 public:
  /// The value of `key`, which is `value` where it was not there; and whether it was not.
  std::pair<V*, bool> tryEmplace(uint64_t key, const V& value) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    Entry& entry = entryOf(key);
    if (entry.round == round_) return {&entry.value, false};
    entry = {key, round_, value};
    ++size_;
    return {&entry.value, true};
  }
  /// nullptr: it is not there.
  V* find(uint64_t key) {
    if (size_ == 0) return nullptr;
    Entry& entry = entryOf(key);
    return entry.round == round_ ? &entry.value : nullptr;
  }
  [[nodiscard]] size_t size() const { return size_; }
  void clear() {
    ++round_;
    size_ = 0;
  }

 private:
  static constexpr size_t kFirst = 256;  ///< a power of two, as all sizes are
  struct Entry {
    uint64_t key = 0;
    uint64_t round = 0;  ///< in which it was filled; of an earlier one it is empty
    V value{};
  };
  Entry& entryOf(uint64_t key) {
    const size_t mask = entries_.size() - 1;
    uint64_t hash = (key ^ secret_.k0) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 32) ^ secret_.k1) * 0x9e3779b97f4a7c15u;
    size_t at = (hash >> 32) & mask;
    while (entries_[at].round == round_ && entries_[at].key != key) at = (at + 1) & mask;
    return entries_[at];
  }
  void grow() {
    std::vector<Entry> old(entries_.empty() ? kFirst : 2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.round == round_) entryOf(entry.key) = entry;
  }

  HashKey secret_ = processHashKey();  ///< so that no record can choose keys that share a place
  std::vector<Entry> entries_;
  uint64_t round_ = 1;
  size_t size_ = 0;
};

}  // namespace muster::fleet

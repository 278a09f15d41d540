// SPDX-License-Identifier: Apache-2.0
// Texts and keys that thousands of records share, each kept once and known by a number.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runner/core/keyed_hash.h"
#include "runner/judge/waivers.h"
#include "runner/metrics/expectation.h"

namespace muster::fleet {

/// What a figure is of; equal on every node that measured the same.
struct FigureKey {
  std::string stage;
  std::string caseId;  ///< "gemm[dtype=bf16]"
  std::string metric;  ///< "compute.gemm_throughput"
  std::string unit;    ///< base unit
  Labels labels;       ///< without device and rank
  Direction direction = Direction::kNone;
  bool informational = false;
  std::string peak;  ///< name of its theoretical peak, or empty

  /// "gemm: compute.gemm_throughput (dtype=bf16 size=8192)"
  [[nodiscard]] std::string text() const;
};

/// What a deferred verdict is about.
struct DeferredKey {
  std::string stage;
  std::string caseId;
  std::string metric;
  Labels labels;  ///< without device, rank and peer: those that have these in common are peers
  Direction direction = Direction::kNone;
  Expectation expectation;
  std::string question;  ///< all of it as text, but for the direction
};

/// Values numbered in the order in which they came, by their text. May be used by many threads at once; a
/// number is valid for ever, a reference as long as the table.
template <typename T>
class Table {
 public:
  /// The number of the value with this `text`; `make()` gives the value when it is new.
  template <typename Make>
  uint32_t number(std::string_view text, Make make) {
    const std::lock_guard lock(mutex_);
    const auto at = numbers_.find(text);
    if (at != numbers_.end()) return at->second;
    texts_.emplace_back(text);
    values_.push_back(make());
    const auto number = static_cast<uint32_t>(values_.size() - 1);
    numbers_.emplace(texts_.back(), number);
    return number;
  }
  /// The value with this `text`, or nullptr.
  [[nodiscard]] const T* find(std::string_view text) const {
    const std::lock_guard lock(mutex_);
    const auto at = numbers_.find(text);
    return at == numbers_.end() ? nullptr : &values_[at->second];
  }
  [[nodiscard]] size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }
  [[nodiscard]] const T& operator[](uint32_t number) const {
    const std::lock_guard lock(mutex_);
    return values_[number];
  }
  /// The text by which the value is known.
  [[nodiscard]] const std::string& textOf(uint32_t number) const {
    const std::lock_guard lock(mutex_);
    return texts_[number];
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> texts_;
  std::deque<T> values_;
  std::unordered_map<std::string_view, uint32_t, KeyedHash> numbers_;
};

/// The tables of one fleet. Numbers depend on which record was read first: order by text whatever is written.
struct FleetNames {
  Table<std::string> texts;
  Table<FigureKey> figures;
  Table<DeferredKey> deferred;
  Table<std::string> profiles;       ///< texts of SKU profiles, by their digests
  Table<std::string> plans;          ///< texts of plans, by their digests
  Table<Waiver> waivers;             ///< those that the fleet was given first, then those of records
  std::vector<Waiver> givenWaivers;  ///< not changed while records are read

  /// Waivers that apply to all records. Call it before the first one is read.
  void give(const std::vector<Waiver>& list);
  /// The number of a waiver, equal for equal ones whichever file they stand in.
  uint32_t waiver(const Waiver& waiver);

  uint32_t text(std::string_view value) {
    return texts.number(value, [&] { return std::string(value); });
  }
};

}  // namespace muster::fleet

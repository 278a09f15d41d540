// SPDX-License-Identifier: Apache-2.0
// Configuration drift: who has another value of a fact than the majority. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fleet {

/// The value of a holder that lacks the fact: lacking what the others have is drift too.
inline constexpr uint32_t kNoFact = std::numeric_limits<uint32_t>::max();

/// Holders without a value that are listed; all are counted.
inline constexpr size_t kMostLacking = 20;

/// What one holder has of one fact: a node, or a device (its VBIOS, its link width).
struct FactValue {
  size_t holder = 0;   ///< index of the caller's choice; each at most once
  uint32_t value = 0;  ///< id of the text, or kNoFact
};

enum class DriftKind {
  kUniform,   ///< all have the same
  kDrift,     ///< more than half have the same: the others drifted
  kSplit,     ///< no value has more than half: which is meant cannot be told
  kTooFew,    ///< two holders that differ: neither is a majority
  kPersonal,  ///< three or more holders, and each has a value of its own: serials, UUIDs, addresses
};

/// Those who have one value.
struct FactShare {
  uint32_t value = 0;
  size_t count = 0;
  std::vector<size_t> holders;  ///< ascending; of those without a value, only the first kMostLacking
};

struct Drift {
  DriftKind kind = DriftKind::kUniform;
  size_t holders = 0;
  std::vector<FactShare> shares;  ///< the most frequent first; equal ones by their value's id, kNoFact last

  /// Those outside the majority that are listed, ascending; empty unless kDrift.
  [[nodiscard]] std::vector<size_t> drifted() const;
};

/// Compares one fact over all its holders; none gives kUniform without shares. With `total`, the holders are
/// 0 .. total-1, `values` is ascending, and who is missing there lacks the fact: the cost grows with
/// `values`.
Drift driftOf(const std::vector<FactValue>& values, size_t total = 0);

/// One sentence: what differs, on whom, beside how many, and what to do next. Empty for kUniform and
/// kPersonal.
std::string driftText(std::string_view fact, const Drift& drift,
                      const std::function<std::string(uint32_t)>& valueText,
                      const std::function<std::string(size_t)>& holderName);

}  // namespace muster::fleet

// SPDX-License-Identifier: Apache-2.0
// Bounds what a text format writes of one record.
#pragma once

#include <fmt/format.h>

#include <string>

#include "runner/metrics/verdict.h"

namespace muster {

/// What a line, row or test tells. Samples, readings and passed checks are the first to be left out.
enum class Weight { kBulk, kFinding };

inline Weight weightOf(Outcome outcome) {
  return outcome == Outcome::kPass ? Weight::kBulk : Weight::kFinding;
}

/// Bounds the text of one record, and the memory with it: packed samples and shared fields of a record of a
/// few MB stand for millions of lines. What is left out is counted, and each format says so.
class TextLimit {
 public:
  /// Real nodes of eight GPUs have up to 60 MB, as OCP streams.
  static constexpr size_t kMostBytes = 256u << 20;

  explicit TextLimit(size_t bytes = kMostBytes) : bulk_{bytes / 4 * 3}, findings_{bytes} {}

  /// Appends the text that `render` returns to `out`, if it still fits. Once one did not, all later ones of
  /// its weight are left out, without rendering them.
  template <typename F>
  bool add(std::string& out, Weight weight, F render) {
    if (!isFull(weight)) {
      const std::string text = render();
      if (written_ + text.size() <= shareOf(weight).most) {
        charge(text.size());
        out += text;
        return true;
      }
      shareOf(weight).isFull = true;
    }
    ++leftOut_;
    return false;
  }
  /// Counts what is written in any case.
  void charge(size_t bytes) { written_ += bytes; }
  void leaveOut(size_t entries) { leftOut_ += entries; }

  [[nodiscard]] bool isFull(Weight weight) const {
    const Share& share = weight == Weight::kBulk ? bulk_ : findings_;
    return share.isFull || written_ >= share.most;
  }
  [[nodiscard]] size_t leftOut() const { return leftOut_; }
  /// Says what is left out; empty if nothing is.
  [[nodiscard]] std::string note() const { return leftOut_ == 0 ? "" : noteOf(leftOut_); }
  static std::string noteOf(size_t entries) {
    return fmt::format("{} entries are left out, samples and passed checks first; record.json has all",
                       entries);
  }

 private:
  struct Share {
    size_t most = 0;
    bool isFull = false;
  };
  Share& shareOf(Weight weight) { return weight == Weight::kBulk ? bulk_ : findings_; }

  Share bulk_, findings_;
  size_t written_ = 0;
  size_t leftOut_ = 0;
};

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// What the tests of copies share: the timing and checking of one kind of transfer.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/checks/timing.h"
#include "kernels/interfaces/copies.h"
#include "plugins/memory/params.h"
#include "plugins/memory/tests.h"

namespace muster::memory {

/// Rates in B/s of copying `transfers` side by side, one for each sample: all bytes over the time of all.
/// `options.check` is left to the caller.
Result<std::vector<double>> sampleCopy(const Bench& bench, Copies& copies,
                                       const std::vector<Transfer>& transfers, CopyEngine engine,
                                       const SamplingOptions& options,
                                       const std::function<bool(double)>& keepGoing);

/// How far a test of several equal parts is.
class Steps {
 public:
  Steps(const sdk::Host& host, size_t count) : host_(host), count_(count) {}
  /// Says what the next parts begin with, before it can go wrong.
  void announce(const std::string& text) const;
  /// The keepGoing of the next part, called `text` in the progress.
  std::function<bool(double)> next(const std::string& text);

 private:
  const sdk::Host& host_;
  size_t count_;
  size_t done_ = 0;
};

/// A number that makes pattern words no other use of this case has.
uint64_t randomPattern(uint64_t seed, uint64_t use);

/// Counts bytes that copies left wrong, and logs the first of each path: "gpu0 to gpu3 by copy_engine: 8
/// bytes differ, the first ...".
class WrongBytes {
 public:
  void add(const Bench& bench, const Mismatch& mismatch, const std::string& path);
  /// What was counted since the last time.
  [[nodiscard]] double take() { return static_cast<double>(std::exchange(count_, 0)); }

 private:
  uint64_t count_ = 0;
  std::set<std::string> logged_;  ///< paths
};

}  // namespace muster::memory

// SPDX-License-Identifier: Apache-2.0
// One prepared multiplication and what is known of its correctness: what both tests of this plugin work with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/interfaces/ops.h"
#include "plugins/sdk/plugin.h"

namespace muster::compute {

/// Wrong results found so far.
struct Faults {
  uint64_t wrong = 0;       ///< elements beyond the reference's error bound
  uint64_t mismatches = 0;  ///< elements that differ from the first result
  uint64_t comparisons = 0;
  ReferenceError worst;  ///< of all checks against the reference
  std::string first;     ///< the first fault in words: device, what, where; empty: none
};

/// A multiplication whose every check is counted and whose first fault is logged.
class Multiplication {
 public:
  /// Fills the operands, runs once, checks that result against the reference and keeps it.
  static Result<Multiplication> prepare(const sdk::Host& host, Device& device, Ops& ops, const GemmSpec& spec,
                                        int referenceSamples, uint64_t seed);

  /// Queues one multiplication.
  Status run() { return gemm_->run(); }
  /// Compares the last result with the first one; it is used up by that. Waits.
  Status compare();
  /// Queues that comparison, which adds what it finds to `found`; blame() must be told what that comes to.
  Status compare(Tally& found);
  /// Books what all comparisons so far found together.
  void blame(const Mismatch& found);
  /// Runs once more and checks that result against the reference.
  Status checkReference();

  [[nodiscard]] const GemmSpec& spec() const { return spec_; }
  [[nodiscard]] const Faults& faults() const { return faults_; }
  [[nodiscard]] std::string implementation() const { return gemm_->implementation(); }

 private:
  Multiplication(const sdk::Host& host, Device& device, const GemmSpec& spec, std::unique_ptr<Gemm> gemm)
      : host_(host), device_(&device), spec_(spec), gemm_(std::move(gemm)) {}
  void note(const std::string& fault);

  sdk::Host host_;
  Device* device_;
  GemmSpec spec_;
  std::unique_ptr<Gemm> gemm_;
  std::unique_ptr<Tally> tally_;  ///< of compare() without one; made when it is first asked for
  int referenceSamples_ = 0;
  uint64_t seed_ = 0;
  Faults faults_;
};

}  // namespace muster::compute

// SPDX-License-Identifier: Apache-2.0
// The host's Gemm: choosing a library, checking against a reference, comparing runs bit by bit.
#include "kernels/host/blas/gemm.h"

#include <algorithm>
#include <limits>

#include "kernels/checks/gemm_reference.h"
#include "kernels/checks/reference.h"
#include "kernels/host/buffer.h"
#include "kernels/spec/pattern.h"

namespace muster::host {
namespace {

constexpr double kSlowRun = 0.25;  ///< seconds: a candidate that takes longer is timed once
constexpr int kChoiceRuns = 4;     ///< the first one warms up
constexpr double kSettle =
    0.05;  ///< seconds after which the threads of the library timed before have gone to sleep

/// The type whose bits compareBits() looks at: NaN matters for floats; i32 has the size of f32 but no NaN.
constexpr Dtype kInt32Bytes = Dtype::kI8;

class HostGemm : public Gemm {
 public:
  HostGemm(Device& device, const GemmSpec& spec, std::vector<Candidate> candidates, std::string& chosen)
      : device_(device), spec_(spec), candidates_(std::move(candidates)), chosen_(chosen) {}

  Status allocate();
  Status prepare(uint64_t seed) override;
  Status run() override { return inUse().run(bytesOf(*a_), bytesOf(*b_), bytesOf(*c_)); }
  Result<ReferenceError> checkAgainstReference(int samples, uint64_t seed) override;
  Status keepResult() override;
  Status compareWithKept(Tally& found) override;
  [[nodiscard]] std::string implementation() const override { return candidates_[use_].second->name(); }

 private:
  [[nodiscard]] Multiplier& inUse() { return *candidates_[use_].second; }
  Result<double> secondsOf(size_t candidate);
  Status choose();
  Status clearResult();

  Device& device_;
  GemmSpec spec_;
  std::vector<Candidate> candidates_;
  std::string& chosen_;
  size_t use_ = 0;
  std::unique_ptr<Buffer> a_, b_, c_, kept_;
};

Status HostGemm::allocate() {
  const uint64_t inputBytes = dtypeBits(spec_.dtype) / 8;
  const auto m = static_cast<uint64_t>(spec_.m);
  const auto n = static_cast<uint64_t>(spec_.n);
  const auto k = static_cast<uint64_t>(spec_.k);
  MUSTER_TRY(a_, device_.allocate(m * k * inputBytes));
  MUSTER_TRY(b_, device_.allocate(k * n * inputBytes));
  MUSTER_TRY(c_, device_.allocate(m * n * gemmOutputBytes(spec_.dtype)));
  MUSTER_TRY(kept_, device_.allocate(m * n * gemmOutputBytes(spec_.dtype)));
  return {};
}

Status HostGemm::prepare(uint64_t seed) {
  MUSTER_CHECK_OK(device_.fillNormal(*a_, spec_.dtype, scatter(seed)));
  MUSTER_CHECK_OK(device_.fillNormal(*b_, spec_.dtype, scatter(seed + 1)));
  MUSTER_CHECK_OK(choose());
  return clearResult();
}

/// A result that nobody computed is all ones: NaN in every float type, so it never passes for a right one.
Status HostGemm::clearResult() {
  return device_.fillPattern(*c_, static_cast<uint64_t>(Pattern::kOnes));
}

Result<double> HostGemm::secondsOf(size_t candidate) {
  use_ = candidate;
  device_.sleep(kSettle);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kChoiceRuns; ++i) {
    MUSTER_TRY(double seconds, device_.time([this] { return run(); }));
    best = std::min(best, seconds);
    if (seconds > kSlowRun) break;
  }
  return best;
}

/// Takes the candidate that was chosen before, or times each one.
Status HostGemm::choose() {
  for (use_ = 0; use_ < candidates_.size(); ++use_)
    if (candidates_[use_].first == chosen_ || candidates_.size() == 1) return {};
  size_t fastest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    MUSTER_TRY(double seconds, secondsOf(i));
    if (seconds < least) fastest = i;
    least = std::min(least, seconds);
  }
  use_ = fastest;
  chosen_ = candidates_[fastest].first;
  return {};
}

Result<ReferenceError> HostGemm::checkAgainstReference(int samples, uint64_t seed) {
  ReferenceCheck check(ErrorModel(gemmAccumulator(spec_.dtype), gemmOutput(spec_.dtype), spec_.k));
  for (const int64_t index : sampledElements(spec_, samples, seed)) {
    const int64_t row = index / spec_.n;
    const int64_t column = index % spec_.n;
    check.add(row, column, gemmOutputAt(bytesOf(*c_), spec_.dtype, index),
              dotProduct({bytesOf(*a_), spec_.dtype, row * spec_.k, 1},
                         {bytesOf(*b_), spec_.dtype, column, spec_.n}, spec_.k));
  }
  return check.result();
}

Status HostGemm::keepResult() {
  std::swap(c_, kept_);
  return clearResult();
}

Status HostGemm::compareWithKept(Tally& found) {
  const Dtype bits = spec_.dtype == Dtype::kI8 ? kInt32Bytes : gemmOutput(spec_.dtype);
  MUSTER_CHECK_OK(device_.countDifferences(*kept_, *c_, bits, found));
  return clearResult();
}

}  // namespace

Result<std::unique_ptr<Gemm>> makeGemm(Device& device, const GemmSpec& spec,
                                       std::vector<Candidate> candidates, std::string& chosen) {
  auto gemm = std::make_unique<HostGemm>(device, spec, std::move(candidates), chosen);
  MUSTER_CHECK_OK(gemm->allocate());
  return std::unique_ptr<Gemm>(std::move(gemm));
}

}  // namespace muster::host

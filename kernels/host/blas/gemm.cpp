// SPDX-License-Identifier: Apache-2.0
// The host's Gemm: choosing a library, checking against a reference, comparing runs bit by bit.
#include "kernels/host/blas/gemm.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/host/buffer.h"
#include "kernels/host/normal.h"
#include "kernels/pattern.h"
#include "kernels/reference.h"

namespace muster::host {
namespace {

constexpr double kSlowRun = 0.25;  ///< seconds: a candidate that takes longer is timed once
constexpr int kChoiceRuns = 4;     ///< the first one warms up
constexpr double kSettle =
    0.05;  ///< seconds after which the threads of the library timed before have gone to sleep

/// What C holds for an input type: f32 sums, i32 for i8; stored as bf16 for bf16.
Dtype accumulatorOf(Dtype input) {
  switch (input) {
    case Dtype::kF64:
      return Dtype::kF64;
    case Dtype::kI8:
      return Dtype::kI8;
    default:
      return Dtype::kF32;
  }
}
Dtype outputOf(Dtype input) {
  return input == Dtype::kBf16 ? Dtype::kBf16 : accumulatorOf(input);
}

/// The type whose bits compareBits() looks at: NaN matters for floats; i32 has the size of f32 but no NaN.
constexpr Dtype kInt32Bytes = Dtype::kI8;

template <typename T>
T at(const std::byte* data, int64_t index) {
  return reinterpret_cast<const T*>(data)[index];
}

long double inputAt(const std::byte* data, Dtype dtype, int64_t index) {
  switch (dtype) {
    case Dtype::kF64:
      return at<double>(data, index);
    case Dtype::kBf16:
      return fromBf16(at<uint16_t>(data, index));
    case Dtype::kI8:
      return at<int8_t>(data, index);
    default:
      return at<float>(data, index);
  }
}

long double outputAt(const std::byte* data, Dtype input, int64_t index) {
  if (input == Dtype::kI8) return at<int32_t>(data, index);
  return inputAt(data, outputOf(input), index);
}

class HostGemm : public Gemm {
 public:
  HostGemm(Device& device, const GemmSpec& spec, std::vector<Candidate> candidates, std::string& chosen)
      : device_(device), spec_(spec), candidates_(std::move(candidates)), chosen_(chosen) {}

  Status allocate();
  Status prepare(uint64_t seed) override;
  Status run() override { return inUse().run(bytesOf(*a_), bytesOf(*b_), bytesOf(*c_)); }
  Result<ReferenceError> checkAgainstReference(int samples, uint64_t seed) override;
  Status keepResult() override;
  Result<Mismatch> compareWithKept() override;
  [[nodiscard]] std::string implementation() const override { return candidates_[use_].second->name(); }

 private:
  [[nodiscard]] Multiplier& inUse() { return *candidates_[use_].second; }
  Result<double> secondsOf(size_t candidate);
  Status choose();
  Status clearResult();
  [[nodiscard]] long double reference(int64_t row, int64_t column) const;

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
  MUSTER_TRY(c_, device_.allocate(m * n * outputBytes(spec_.dtype)));
  MUSTER_TRY(kept_, device_.allocate(m * n * outputBytes(spec_.dtype)));
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

/// Sums in f80: 11 bits more than f64 has, 40 more than f32.
long double HostGemm::reference(int64_t row, int64_t column) const {
  long double sum = 0;
  for (int64_t i = 0; i < spec_.k; ++i)
    sum += inputAt(bytesOf(*a_), spec_.dtype, row * spec_.k + i) *
           inputAt(bytesOf(*b_), spec_.dtype, i * spec_.n + column);
  return sum;
}

/// Every element where there are no more than `samples`, else that many at random.
Result<ReferenceError> HostGemm::checkAgainstReference(int samples, uint64_t seed) {
  ReferenceCheck check(ErrorModel(accumulatorOf(spec_.dtype), outputOf(spec_.dtype), spec_.k));
  const int64_t elements = spec_.m * spec_.n;
  const int64_t count = std::min<int64_t>(elements, samples);
  for (int64_t i = 0; i < count; ++i) {
    const auto random = static_cast<int64_t>(scatter(scatter(seed) ^ static_cast<uint64_t>(i)) >> 1);
    const int64_t index = count == elements ? i : random % elements;
    const int64_t row = index / spec_.n;
    const int64_t column = index % spec_.n;
    check.add(row, column, outputAt(bytesOf(*c_), spec_.dtype, index), reference(row, column));
  }
  return check.result();
}

Status HostGemm::keepResult() {
  std::swap(c_, kept_);
  return clearResult();
}

Result<Mismatch> HostGemm::compareWithKept() {
  const Dtype bits = spec_.dtype == Dtype::kI8 ? kInt32Bytes : outputOf(spec_.dtype);
  MUSTER_TRY(Mismatch mismatch, device_.compareBits(*kept_, *c_, bits));
  MUSTER_CHECK_OK(clearResult());
  return mismatch;
}

}  // namespace

size_t outputBytes(Dtype input) {
  return input == Dtype::kI8 ? sizeof(int32_t) : dtypeBits(outputOf(input)) / 8;
}

Result<std::unique_ptr<Gemm>> makeGemm(Device& device, const GemmSpec& spec,
                                       std::vector<Candidate> candidates, std::string& chosen) {
  auto gemm = std::make_unique<HostGemm>(device, spec, std::move(candidates), chosen);
  MUSTER_CHECK_OK(gemm->allocate());
  return std::unique_ptr<Gemm>(std::move(gemm));
}

}  // namespace muster::host

// SPDX-License-Identifier: Apache-2.0
// A product on a GPU: its operands, the choice of an algorithm, the checks.
#include "kernels/cuda/blas/gemm.h"

#include <fmt/format.h>

#include <array>

#include "kernels/checks/gemm_reference.h"
#include "kernels/checks/reference.h"
#include "kernels/cuda/blas/error.h"
#include "kernels/cuda/blas/plan.h"
#include "kernels/cuda/blas/scales.h"
#include "kernels/cuda/blas/search.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/error.h"
#include "kernels/spec/pattern.h"

namespace muster::cuda {
namespace {

constexpr int kManyHeuristics = 48;  ///< asked for in each mode of "best"

class CudaGemm : public Gemm {
 public:
  CudaGemm(CudaDevice& device, cublasLtHandle_t handle, const GemmSpec& spec, const GemmType& type,
           std::string& chosen)
      : device_(device), handle_(handle), spec_(spec), type_(type), chosen_(chosen) {}

  Status allocate();
  Status plan();
  Status prepare(uint64_t seed) override;
  Status run() override { return runCandidate(use_); }
  Result<ReferenceError> checkAgainstReference(int samples, uint64_t seed) override;
  Status keepResult() override;
  Status compareWithKept(Tally& found) override;
  [[nodiscard]] std::string implementation() const override;

 private:
  /// An algorithm of one of the plans.
  struct Candidate {
    size_t plan;
    size_t algorithm;
  };
  Status runCandidate(const Candidate& one) {
    return plans_[one.plan]->run(one.algorithm, bytesOf(*c_), device_.stream());
  }
  [[nodiscard]] uint64_t scaleSeed(int operand) const {
    return scatter(seed_ + 2 + static_cast<uint64_t>(operand));
  }
  Status fillScales();
  static Status upload(Buffer& to, const void* from, cudaStream_t stream);
  Status choose();
  Status clearResult();
  Result<double> secondsOf(const Candidate& one, int runs);
  Result<long double> reference(int64_t row, int64_t column);
  Result<long double> resultAt(int64_t index);
  Status readColumn(int64_t column);
  [[nodiscard]] bool best() const { return spec_.algorithm == "best"; }

  CudaDevice& device_;
  cublasLtHandle_t handle_;
  GemmSpec spec_;
  GemmType type_;
  std::string& chosen_;
  std::unique_ptr<Buffer> a_, b_, c_, kept_, workspace_, aScale_, bScale_, column_;
  std::vector<std::unique_ptr<GemmPlan>> plans_;
  std::vector<Candidate> candidates_;
  Candidate use_ = {0, 0};
  uint64_t seed_ = 0;
  std::vector<std::byte> rowOnHost_, columnOnHost_;
};

Status CudaGemm::allocate() {
  const auto m = static_cast<uint64_t>(spec_.m);
  const auto n = static_cast<uint64_t>(spec_.n);
  const auto k = static_cast<uint64_t>(spec_.k);
  const uint64_t bits = dtypeBits(spec_.dtype);
  MUSTER_TRY(a_, device_.allocate(m * k * bits / 8));
  MUSTER_TRY(b_, device_.allocate(k * n * bits / 8));
  MUSTER_TRY(c_, device_.allocate(m * n * gemmOutputBytes(spec_.dtype)));
  MUSTER_TRY(kept_, device_.allocate(m * n * gemmOutputBytes(spec_.dtype)));
  MUSTER_TRY(workspace_, device_.allocate(kWorkspaceBytes));
  MUSTER_TRY(column_, device_.allocate(k * bits / 8));
  if (type_.scaleBlock < 0) return {};
  const bool blocks = type_.scaleBlock > 0;
  MUSTER_TRY(aScale_, device_.allocate(blocks ? blockScaleBytes(type_, spec_.m, spec_.k) : sizeof(float)));
  MUSTER_TRY(bScale_, device_.allocate(blocks ? blockScaleBytes(type_, spec_.n, spec_.k) : sizeof(float)));
  return {};
}

Status CudaGemm::upload(Buffer& to, const void* from, cudaStream_t stream) {
  MUSTER_CUDA(cudaMemcpyAsync(bytesOf(to), from, to.bytes(), cudaMemcpyHostToDevice, stream));
  return {};
}

Status CudaGemm::fillScales() {
  if (type_.scaleBlock < 0) return {};
  if (type_.scaleBlock == 0) {
    MUSTER_CHECK_OK(upload(*aScale_, &kScaleOfA, device_.stream()));
    return upload(*bScale_, &kScaleOfB, device_.stream());
  }
  const std::vector<uint8_t> a = blockScales(type_, spec_.m, spec_.k, scaleSeed(0));
  const std::vector<uint8_t> b = blockScales(type_, spec_.n, spec_.k, scaleSeed(1));
  MUSTER_CHECK_OK(upload(*aScale_, a.data(), device_.stream()));
  MUSTER_CHECK_OK(upload(*bScale_, b.data(), device_.stream()));
  return device_.synchronize();
}

/// The modes in which the type can be put to the library; only the first one is the default.
Status CudaGemm::plan() {
  std::vector<GemmPlan::Mode> modes = {{type_.transposedOnly, false}};
  if (best() && !type_.transposedOnly) modes.push_back({true, false});
  if (best() && type_.fastAccumulation) modes.push_back({type_.transposedOnly, true});
  const GemmOperands at = {bytesOf(*a_),
                           bytesOf(*b_),
                           bytesOf(*c_),
                           bytesOf(*workspace_),
                           aScale_ ? bytesOf(*aScale_) : nullptr,
                           bScale_ ? bytesOf(*bScale_) : nullptr};
  for (const GemmPlan::Mode& mode : modes) {
    auto made = GemmPlan::make(handle_, spec_, type_, mode, at, best() ? kManyHeuristics : 1);
    if (!made.ok() && !plans_.empty()) {
      MUSTER_CHECK_OK(device_.synchronize());  // a mode that the library does not take is left out
      continue;
    }
    if (!made.ok()) return std::move(made).error();
    for (size_t i = 0; i < (*made)->algorithms(); ++i) candidates_.push_back({plans_.size(), i});
    plans_.push_back(std::move(made).value());
  }
  use_ = candidates_.front();
  return {};
}

Status CudaGemm::prepare(uint64_t seed) {
  seed_ = seed;
  MUSTER_CHECK_OK(device_.fillNormal(*a_, type_.dtype, scatter(seed)));
  MUSTER_CHECK_OK(device_.fillNormal(*b_, type_.b, scatter(seed + 1)));
  MUSTER_CHECK_OK(fillScales());
  MUSTER_CHECK_OK(choose());
  return clearResult();
}

/// A result that nobody computed is all ones: NaN in every float type, so it never passes for a right one.
Status CudaGemm::clearResult() {
  return device_.fillPattern(*c_, static_cast<uint64_t>(Pattern::kOnes));
}

Result<double> CudaGemm::secondsOf(const Candidate& one, int runs) {
  MUSTER_CHECK_OK(runCandidate(one));
  return device_.time([&]() -> Status {
    for (int i = 0; i < runs; ++i) MUSTER_CHECK_OK(runCandidate(one));
    return {};
  });
}

/// B's values are random, so the same bytes serve as [k, n] and as [n, k].
Status CudaGemm::choose() {
  if (!best()) return {};
  for (const Candidate& one : candidates_) {
    use_ = one;
    if (implementation() == chosen_) return {};
  }
  MUSTER_TRY(size_t index,
             fastest(
                 candidates_.size(), [&](size_t i, int runs) { return secondsOf(candidates_[i], runs); },
                 [&] { return device_.synchronize(); }));
  use_ = candidates_[index];
  chosen_ = implementation();
  return {};
}

/// Gathers a column of B on the device first: two bytes per row are slow to copy over PCIe.
Status CudaGemm::readColumn(int64_t column) {
  const uint64_t element = dtypeBits(spec_.dtype) / 8;
  const auto n = static_cast<uint64_t>(spec_.n);
  const auto k = static_cast<uint64_t>(spec_.k);
  const std::byte* from = bytesOf(*b_) + static_cast<uint64_t>(column) * element;
  MUSTER_CUDA(cudaMemcpy2DAsync(bytesOf(*column_), element, from, n * element, element, k,
                                cudaMemcpyDeviceToDevice, device_.stream()));
  MUSTER_CUDA(cudaMemcpyAsync(columnOnHost_.data(), bytesOf(*column_), columnOnHost_.size(),
                              cudaMemcpyDeviceToHost, device_.stream()));
  return {};
}

Result<long double> CudaGemm::reference(int64_t row, int64_t column) {
  const uint64_t lane = static_cast<uint64_t>(spec_.k) * dtypeBits(spec_.dtype) / 8;
  rowOnHost_.resize(lane);
  columnOnHost_.resize(lane);
  MUSTER_CUDA(cudaMemcpyAsync(rowOnHost_.data(), bytesOf(*a_) + static_cast<uint64_t>(row) * lane, lane,
                              cudaMemcpyDeviceToHost, device_.stream()));
  if (plans_[use_.plan]->mode().transposedB)
    MUSTER_CUDA(cudaMemcpyAsync(columnOnHost_.data(), bytesOf(*b_) + static_cast<uint64_t>(column) * lane,
                                lane, cudaMemcpyDeviceToHost, device_.stream()));
  else
    MUSTER_CHECK_OK(readColumn(column));
  MUSTER_CHECK_OK(device_.synchronize());
  const Lane a = {rowOnHost_.data(), type_.dtype, 0, 1}, b = {columnOnHost_.data(), type_.b, 0, 1};
  if (type_.scaleBlock > 0)
    return scaledDotProduct(type_, {a, row, scaleSeed(0)}, {b, column, scaleSeed(1)}, spec_.k);
  return dotProduct(a, b, spec_.k);
}

Result<long double> CudaGemm::resultAt(int64_t index) {
  std::array<std::byte, sizeof(double)> element{};
  const uint64_t bytes = gemmOutputBytes(spec_.dtype);
  MUSTER_CUDA(cudaMemcpyAsync(element.data(), bytesOf(*c_) + static_cast<uint64_t>(index) * bytes, bytes,
                              cudaMemcpyDeviceToHost, device_.stream()));
  MUSTER_CHECK_OK(device_.synchronize());
  const long double result = gemmOutputAt(element.data(), spec_.dtype, 0);
  // The error model is one of unscaled inputs, and powers of two round nothing.
  return type_.scaleBlock == 0 ? result / (kScaleOfA * kScaleOfB) : result;
}

Result<ReferenceError> CudaGemm::checkAgainstReference(int samples, uint64_t seed) {
  // A result in the accumulator's own type is rounded no further.
  const Dtype output = gemmOutput(spec_.dtype);
  const bool narrow = output != gemmAccumulator(spec_.dtype);
  ReferenceCheck check(ErrorModel(Summation::tensorCore(spec_.dtype), narrow ? output : Dtype::kI8, spec_.k));
  for (const int64_t index : sampledElements(spec_, samples, seed)) {
    const int64_t row = index / spec_.n;
    const int64_t column = index % spec_.n;
    MUSTER_TRY(long double computed, resultAt(index));
    MUSTER_TRY(long double wanted, reference(row, column));
    check.add(row, column, computed, wanted);
  }
  return check.result();
}

Status CudaGemm::keepResult() {
  std::swap(c_, kept_);
  return clearResult();
}

Status CudaGemm::compareWithKept(Tally& found) {
  // i32 has the size of f32 but no NaN: compared as bytes.
  const Dtype bits = spec_.dtype == Dtype::kI8 ? Dtype::kI8 : gemmOutput(spec_.dtype);
  MUSTER_CHECK_OK(device_.countDifferences(*kept_, *c_, bits, found));
  return clearResult();
}

std::string CudaGemm::implementation() const {
  const size_t version = cublasLtGetVersion();
  const std::string inputs = type_.dtype == type_.b ? "" : fmt::format(", B in {}", dtypeName(type_.b));
  return fmt::format("cublasLt {}.{}.{} {}{}", version / 10000, version / 100 % 100, version % 100,
                     plans_[use_.plan]->describe(use_.algorithm), inputs);
}

}  // namespace

Result<std::unique_ptr<Gemm>> makeGemm(CudaDevice& device, cublasLtHandle_t handle, const GemmSpec& spec,
                                       const GemmType& type, std::string& chosen) {
  auto gemm = std::make_unique<CudaGemm>(device, handle, spec, type, chosen);
  MUSTER_CHECK_OK(gemm->allocate());
  MUSTER_CHECK_OK(gemm->plan());
  return std::unique_ptr<Gemm>(std::move(gemm));
}

}  // namespace muster::cuda

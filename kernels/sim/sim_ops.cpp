// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication of a simulated device: a result is the tag of what it was computed from.
#include "kernels/sim/sim_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/checks/reference.h"
#include "kernels/sim/chance.h"
#include "runner/core/text.h"

namespace muster::sim {
namespace {

constexpr const char* kAlgorithm = "sim";

uint64_t bytesOf(int64_t elements, Dtype dtype) {
  return static_cast<uint64_t>(elements) * dtypeBits(dtype) / 8;
}

/// The type of the result: narrow floats stay 16 bit wide, integers grow to 32.
Dtype resultType(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp8E4m3:
    case Dtype::kFp8E5m2:
    case Dtype::kFp4:
      return Dtype::kBf16;
    case Dtype::kI8:
    case Dtype::kTf32:
      return Dtype::kF32;
    default:
      return dtype;
  }
}

class SimGemm : public Gemm {
 public:
  SimGemm(SimDevice& device, GemmSpec spec, double rate, std::vector<std::unique_ptr<Buffer>> operands)
      : device_(device),
        spec_(std::move(spec)),
        seconds_(spec_.flops() / rate),
        operands_(std::move(operands)) {}

  Status prepare(uint64_t seed) override {
    MUSTER_CHECK_OK(device_.fillNormal(*operands_[0], spec_.dtype, seed));
    MUSTER_CHECK_OK(device_.fillNormal(*operands_[1], spec_.dtype, mix(seed, uint64_t{1})));
    prepared_ = true;
    inputs_ = mix(seed, static_cast<uint64_t>(spec_.dtype));
    return {};
  }

  Status run() override {
    if (!prepared_) return misuse("run() before prepare()");
    MUSTER_CHECK_OK(device_.perform(Work::kGemm, seconds_));
    ran_ = true;
    result_ = {inputs_, device_.flawOfNext(Work::kGemm, operands_[2]->bytes())};
    return {};
  }

  /// One wrong element is found whatever the sample: a plan is judged here, not the odds of a sample.
  Result<ReferenceError> checkAgainstReference(int samples, uint64_t seed) override {
    if (!ran_) return misuse("checkAgainstReference() before run()");
    ErrorModel model(accumulator(), resultType(spec_.dtype), spec_.k);
    ReferenceError error;
    error.bound = model.bound();
    error.checked = static_cast<uint64_t>(samples);
    error.worst = error.bound * 0.05 * (1 + uniform(mix(device_.unit().key, seed)));
    error.row = static_cast<int64_t>(scatter(seed) % static_cast<uint64_t>(spec_.m));
    error.column = static_cast<int64_t>(scatter(seed + 1) % static_cast<uint64_t>(spec_.n));
    if (!result_.flaw.there) return error;
    auto element = static_cast<int64_t>(result_.flaw.offset * 8 / dtypeBits(resultType(spec_.dtype)));
    error.wrong = 1;
    error.row = element / spec_.n;
    error.column = element % spec_.n;
    error.worst = std::numeric_limits<float>::max();
    return error;
  }

  Status keepResult() override {
    if (!ran_) return misuse("keepResult() before run()");
    kept_ = result_;
    hasKept_ = true;
    return {};
  }

  Status compareWithKept(Tally& found) override {
    if (!hasKept_) return misuse("compareWithKept() before keepResult()");
    static_cast<PlainTally&>(found).add(difference(kept_, result_, static_cast<uint64_t>(spec_.m * spec_.n),
                                                   dtypeBits(resultType(spec_.dtype))));
    return {};
  }

  [[nodiscard]] std::string implementation() const override { return "sim " + device_.unit().scenario->name; }

 private:
  [[nodiscard]] Dtype accumulator() const {
    return spec_.dtype == Dtype::kF64 ? Dtype::kF64 : spec_.dtype == Dtype::kI8 ? Dtype::kI8 : Dtype::kF32;
  }
  [[nodiscard]] Error misuse(const char* what) const {
    return {ErrorCode::kInternal, what, device_.info().id};
  }

  SimDevice& device_;
  GemmSpec spec_;
  double seconds_;                                 ///< of a healthy, warm device
  std::vector<std::unique_ptr<Buffer>> operands_;  ///< A, B, C: they only take up memory
  uint64_t inputs_ = 0;
  bool ran_ = false;
  bool prepared_ = false;
  bool hasKept_ = false;
  Content result_;
  Content kept_;
};

}  // namespace

std::vector<Dtype> SimOps::gemmDtypes() const {
  std::vector<Dtype> dtypes;
  for (const auto& [dtype, rate] : device_.unit().scenario->figures.gemm) dtypes.push_back(dtype);
  return dtypes;
}

std::vector<std::string> SimOps::gemmAlgorithms(Dtype dtype) const {
  if (device_.unit().scenario->figures.gemm.count(dtype) == 0) return {};
  return {kAlgorithm};
}

Result<std::unique_ptr<Gemm>> SimOps::gemm(const GemmSpec& spec) {
  const auto& rates = device_.unit().scenario->figures.gemm;
  auto rate = rates.find(spec.dtype);
  const std::string& id = device_.info().id;
  if (rate == rates.end())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("scenario \"{}\" has no GEMM rate for {}", device_.unit().scenario->name,
                             dtypeName(spec.dtype)),
                 id};
  if (spec.m <= 0 || spec.n <= 0 || spec.k <= 0)
    return Error{ErrorCode::kUsage, fmt::format("a GEMM of {} x {} x {} has no work", spec.m, spec.n, spec.k),
                 id};
  if (spec.algorithm != "default" && spec.algorithm != kAlgorithm)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("a simulated device has no GEMM algorithm \"{}\"; it has {}",
                             printable(spec.algorithm), kAlgorithm),
                 id};
  std::vector<std::unique_ptr<Buffer>> operands;
  const std::pair<int64_t, Dtype> shapes[] = {{spec.m * spec.k, spec.dtype},
                                              {spec.k * spec.n, spec.dtype},
                                              {spec.m * spec.n, resultType(spec.dtype)}};
  for (const auto& [elements, dtype] : shapes) {
    MUSTER_TRY(auto buffer, device_.allocate(std::max<uint64_t>(8, bytesOf(elements, dtype))));
    operands.push_back(std::move(buffer));
  }
  return std::unique_ptr<Gemm>(std::make_unique<SimGemm>(device_, spec, rate->second, std::move(operands)));
}

}  // namespace muster::sim

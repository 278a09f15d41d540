// SPDX-License-Identifier: Apache-2.0
// The error model of matrix products; see reference.h for its source.
#include "kernels/checks/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster {
namespace {

int significantBits(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return 53;
    case Dtype::kF32:
      return 24;
    case Dtype::kTf32:
    case Dtype::kF16:
      return 11;
    case Dtype::kBf16:
      return 8;
    case Dtype::kFp8E4m3:
      return 4;
    case Dtype::kFp8E5m2:
      return 3;
    case Dtype::kFp4:
      return 2;
    case Dtype::kI8:
      return 0;
  }
  return 0;
}

}  // namespace

double unitRoundoff(Dtype dtype) {
  const int bits = significantBits(dtype);
  return bits == 0 ? 0 : std::ldexp(1.0, -bits);
}

Summation Summation::rounding(Dtype accumulator) {
  return {unitRoundoff(accumulator), 0, 0};
}

Summation Summation::tensorCore(Dtype input) {
  constexpr double kF32 = 0x1p-24;
  constexpr double kFp8 = 0x1p-14;
  switch (input) {
    case Dtype::kTf32:
      return {kF32, 4, 0x1p-10};
    case Dtype::kF16:
    case Dtype::kBf16:
      return {kF32, 8, 0};
    case Dtype::kFp8E4m3:
    case Dtype::kFp8E5m2:
      return {kFp8, 32, 0};
    case Dtype::kFp4:
      return {kF32, 16, 0};
    default:
      return rounding(input);
  }
}

ErrorModel::ErrorModel(Dtype accumulator, Dtype output, int64_t k)
    : ErrorModel(Summation::rounding(accumulator), output == accumulator ? Dtype::kI8 : output, k) {}

ErrorModel::ErrorModel(const Summation& summation, Dtype output, int64_t k)
    : bound_(kSafety * summation.unit * std::sqrt(static_cast<double>(k)) +
             2 * kLargest * summation.inputError),
      output_(unitRoundoff(output)),
      scale_(std::sqrt(static_cast<double>(std::max<int64_t>(k, 1)))) {
  if (summation.width > 0)
    bound_ +=
        kLargest * summation.unit * std::ceil(static_cast<double>(k) / static_cast<double>(summation.width));
}

double ErrorModel::deviation(long double computed, long double reference) const {
  if (!std::isfinite(computed)) return std::numeric_limits<double>::infinity();
  const long double beyond = std::fabs(computed - reference) - std::fabs(reference) * output_;
  return static_cast<double>(std::max(beyond, 0.0L)) / scale_;
}

void ReferenceCheck::add(int64_t row, int64_t column, long double computed, long double reference) {
  const double deviation = model_.deviation(computed, reference);
  ++error_.checked;
  if (!(deviation <= error_.bound)) ++error_.wrong;
  if (error_.row >= 0 && deviation <= error_.worst) return;
  error_.worst = deviation;
  error_.row = row;
  error_.column = column;
}

}  // namespace muster

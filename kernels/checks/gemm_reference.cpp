// SPDX-License-Identifier: Apache-2.0
// Samples, element types and the reference of matrix products.
#include "kernels/checks/gemm_reference.h"

#include <algorithm>

#include "kernels/spec/narrow_floats.h"
#include "kernels/spec/pattern.h"

namespace muster {
namespace {

constexpr int64_t kMaxDimension = 1 << 20;

template <typename T>
T at(const std::byte* data, int64_t index) {
  return reinterpret_cast<const T*>(data)[index];
}

}  // namespace

Dtype gemmAccumulator(Dtype input) {
  switch (input) {
    case Dtype::kF64:
      return Dtype::kF64;
    case Dtype::kI8:
      return Dtype::kI8;
    default:
      return Dtype::kF32;
  }
}

Dtype gemmOutput(Dtype input) {
  switch (input) {
    case Dtype::kF16:
      return Dtype::kF16;
    case Dtype::kBf16:
    case Dtype::kFp8E4m3:
    case Dtype::kFp8E5m2:
    case Dtype::kFp4:
      return Dtype::kBf16;
    default:
      return gemmAccumulator(input);
  }
}

size_t gemmOutputBytes(Dtype input) {
  return input == Dtype::kI8 ? sizeof(int32_t) : dtypeBits(gemmOutput(input)) / 8;
}

uint64_t gemmOperandBytes(const GemmSpec& spec) {
  const auto m = static_cast<uint64_t>(spec.m);
  const auto n = static_cast<uint64_t>(spec.n);
  const auto k = static_cast<uint64_t>(spec.k);
  return (m * k + k * n) * dtypeBits(spec.dtype) / 8 + 2 * m * n * gemmOutputBytes(spec.dtype);
}

Status checkGemmShape(const GemmSpec& spec) {
  for (int64_t dimension : {spec.m, spec.n, spec.k})
    if (dimension < 1 || dimension > kMaxDimension)
      return Error{ErrorCode::kUsage,
                   "a matrix of dimension " + std::to_string(dimension) +
                       " is out of bounds, expected 1 to " + std::to_string(kMaxDimension),
                   ""};
  return {};
}

std::vector<int64_t> sampledElements(const GemmSpec& spec, int samples, uint64_t seed) {
  const int64_t elements = spec.m * spec.n;
  const int64_t count = std::min<int64_t>(elements, samples);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    const auto random = static_cast<int64_t>(scatter(scatter(seed) ^ static_cast<uint64_t>(i)) >> 1);
    indices.push_back(count == elements ? i : random % elements);
  }
  return indices;
}

long double gemmInputAt(const std::byte* data, Dtype dtype, int64_t index) {
  switch (dtype) {
    case Dtype::kF64:
      return at<double>(data, index);
    case Dtype::kF32:
    case Dtype::kTf32:
      return at<float>(data, index);
    case Dtype::kI8:
      return at<int8_t>(data, index);
    case Dtype::kF16:
      return decodeFloat(at<uint16_t>(data, index), kF16Format);
    case Dtype::kBf16:
      return fromBf16(at<uint16_t>(data, index));
    case Dtype::kFp8E4m3:
      return decodeFloat(at<uint8_t>(data, index), kE4m3Format);
    case Dtype::kFp8E5m2:
      return decodeFloat(at<uint8_t>(data, index), kE5m2Format);
    case Dtype::kFp4: {
      const uint32_t pair = at<uint8_t>(data, index / 2);
      return decodeFloat(index % 2 == 0 ? pair & 0xfu : pair >> 4, kE2m1Format);
    }
  }
  return 0;
}

long double gemmOutputAt(const std::byte* data, Dtype input, int64_t index) {
  if (input == Dtype::kI8) return at<int32_t>(data, index);
  return gemmInputAt(data, gemmOutput(input), index);
}

long double dotProduct(const Lane& a, const Lane& b, int64_t k) {
  long double sum = 0;
  for (int64_t i = 0; i < k; ++i)
    sum += gemmInputAt(a.data, a.dtype, a.first + i * a.stride) *
           gemmInputAt(b.data, b.dtype, b.first + i * b.stride);
  return sum;
}

}  // namespace muster

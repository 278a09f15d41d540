// SPDX-License-Identifier: Apache-2.0
// Computes the initial parameters of a network from seed and index.
#include "kernels/spec/initial_values.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>

#include "kernels/spec/pattern.h"

namespace muster {
namespace {

constexpr uint64_t kShare = 1 << 20;  ///< values that are worth a thread

/// Uniform in (0, 1).
double uniform(uint64_t key) {
  return (static_cast<double>(scatter(key) >> 11) + 0.5) * 0x1p-53;
}

/// Box and Muller 1958; the pair 2i, 2i + 1 shares its two draws.
double normal(uint64_t key, uint64_t index) {
  const uint64_t pair = scatter(key ^ scatter(index / 2));
  const double radius = std::sqrt(-2 * std::log(uniform(pair)));
  const double angle = 2 * std::numbers::pi * uniform(pair + 1);
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

void compute(const InitialValues& values, uint64_t first, uint64_t last, float* out) {
  for (uint64_t i = first; i < last; ++i) {
    const double draw = values.kind == InitialKind::kConstant  ? 1
                        : values.kind == InitialKind::kUniform ? 2 * uniform(values.seed ^ scatter(i)) - 1
                                                               : normal(values.seed, i);
    out[i] = static_cast<float>(values.scale * draw);
  }
}

}  // namespace

std::vector<float> computeInitialValues(const InitialValues& values, uint64_t count) {
  std::vector<float> out(count);
  const uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const uint64_t parts = std::clamp<uint64_t>(count / kShare, 1, cores);
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i < parts; ++i)
    threads.emplace_back([&, i] { compute(values, count * i / parts, count * (i + 1) / parts, out.data()); });
  compute(values, 0, count / parts, out.data());
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace muster

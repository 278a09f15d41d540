// SPDX-License-Identifier: Apache-2.0
// How parameters of a network start: pure functions of seed and index, the same on every backend.
#pragma once

#include <cstdint>
#include <vector>

namespace muster {

enum class InitialKind {
  kConstant,  ///< `scale` everywhere
  kUniform,   ///< within -scale ... scale
  kNormal,    ///< mean 0, sigma `scale`
};

struct InitialValues {
  InitialKind kind = InitialKind::kConstant;
  double scale = 0;
  uint64_t seed = 0;
};

/// The first `count` values; computed on as many threads as pay off, the same for any number of them.
std::vector<float> computeInitialValues(const InitialValues& values, uint64_t count);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// What the memory kernels compute with, the same on every backend.
#pragma once

namespace muster {

inline constexpr double kWriteValue = 1.25;  ///< kWrite writes it
inline constexpr double kTriadScalar = 3;    ///< kTriad is a = b + kTriadScalar * c

}  // namespace muster

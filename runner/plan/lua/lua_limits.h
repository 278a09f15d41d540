// SPDX-License-Identifier: Apache-2.0
// How much a Lua plan or predicate may use before it is ended.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

/// Bounds on one evaluation. The instruction count names the line of an endless loop; the CPU and wall limits
/// end what no instruction hook can, such as a text pattern that backtracks.
struct LuaLimits {
  uint64_t instructions = 20'000'000;
  size_t memory = size_t{64} << 20;    ///< bytes of Lua objects
  size_t process = size_t{512} << 20;  ///< bytes that the process may map beyond what it begins with
  int cpuSeconds = 2;
  double wallSeconds = 30;           ///< on a machine under load CPU time takes longer
  size_t output = size_t{16} << 20;  ///< bytes that the child may hand back
  size_t values = 100'000;           ///< values in the plan's table
};

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// How much a Lua plan or predicate may use before it is ended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runner/system/limited_child.h"

namespace muster {

/// Bounds on one evaluation. The instruction count names the line of an endless loop; the child's CPU and
/// wall limits end what no instruction hook can, such as a text pattern that backtracks.
struct LuaLimits : ChildLimits {
  LuaLimits() { hint = "; does it contain an endless loop, or a text pattern with excessive backtracking?"; }

  uint64_t instructions = 20'000'000;
  size_t memory = size_t{64} << 20;  ///< bytes of Lua objects
  size_t values = 100'000;           ///< values in the plan's table
};

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Evaluates a Lua plan in this process and writes the table that it returns as a JSON message; see
// lua_child.h for the process around it.
#pragma once

#include <string>
#include <string_view>

#include "runner/plan/lua/lua_limits.h"

namespace muster {

/// The message: "root" (the plan's table; absent when there is none), "lines" (pairs of JSON pointer and
/// line, of the tables that plan{}, stage{} and expect{} made), "functions" (pointers of predicates, whose
/// text stands in root), "numbers" (pairs of pointer and "nan", "inf" or "-inf"), "problems" (pairs of line
/// and text).
std::string evaluateLuaPlan(std::string_view text, const LuaLimits& limits, volatile int* line);

}  // namespace muster

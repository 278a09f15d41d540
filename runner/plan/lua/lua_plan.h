// SPDX-License-Identifier: Apache-2.0
// Evaluates a Lua plan in this process and writes the table that it returns as a JSON message; see
// limited_child.h for the process around it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "runner/plan/lua/lua_limits.h"

namespace muster {

/// The files that a Lua plan includes, read beforehand: its process can read none.
struct LuaFiles {
  /// What a file ("": the plan) includes by a name is the file of this path; below the plan's folder.
  std::map<std::pair<std::string, std::string>, std::string> paths;
  std::map<std::string, std::string> texts;  ///< of the function libraries, by path; of TOML files none
};

/// The name by which Lua knows the plan's own text; an included file's is "=" and its path.
inline constexpr const char* kPlanChunk = "=plan";

/// The message: "root" (the plan's table; absent when there is none), "lines" (pairs of JSON pointer and
/// line, of the tables that plan{}, stage{} and expect{} made), "functions" (pointers of predicates, whose
/// text stands in root), "numbers" (pairs of pointer and "nan", "inf" or "-inf"), "problems" (pairs of line
/// and text).
std::string evaluateLuaPlan(std::string_view text, const LuaFiles& files, const LuaLimits& limits,
                            volatile int* line);

}  // namespace muster

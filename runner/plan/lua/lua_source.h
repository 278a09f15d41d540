// SPDX-License-Identifier: Apache-2.0
// The source text of one Lua function, cut out of the file that it stands in, so that it can be kept and run
// later.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"
#include "runner/plan/lua/lua_sandbox.h"

namespace muster {

/// The text "function(m) ... end" of the only function of `file` that starts on `firstLine` and ends on
/// `lastLine`.
Result<std::string> cutFunction(std::string_view file, int firstLine, int lastLine);

/// What a text includes: `include "lib.lua"`, with the line. Only paths that stand in quotes behind the word.
struct LuaInclude {
  std::string name;
  int line = 0;
};
std::vector<LuaInclude> luaIncludes(std::string_view text);

/// The names that a function text uses and does not define itself, without those of the sandbox: locals and
/// globals of the file that it was cut out of.
Result<std::vector<std::string>> namesFromOutside(LuaSandbox& sandbox, const std::string& function);

}  // namespace muster

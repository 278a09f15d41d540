// SPDX-License-Identifier: Apache-2.0
// A child process with bounded CPU time, wall time and output, in which untrusted Lua code is evaluated.
#pragma once

#include <functional>
#include <string>

#include "runner/plan/lua/lua_limits.h"

namespace muster {

/// How the child ended.
struct ChildEnd {
  std::string output;   ///< all that the work returned, when `problem` is empty
  std::string problem;  ///< why there is no output: "was still running after 2s of CPU time ..."
  int line = 0;         ///< the last line that the child told, for the problem's place
};

/// Forks and runs `work` there; what it returns comes back through a pipe. `work` keeps the line that it
/// evaluates in the integer it is given. The calling process must have one thread. The child holds no
/// descriptor but the pipe, the standard input and outputs, and dies with its parent.
ChildEnd runInChild(const LuaLimits& limits, const std::function<std::string(volatile int* line)>& work);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// A child process with bounded CPU time, wall time, memory and output, for work on what nobody vouches for.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace muster {

/// How much a child may use before it is ended.
struct ChildLimits {
  size_t process = size_t{512} << 20;  ///< bytes that the process may map beyond what it begins with
  int cpuSeconds = 2;
  double wallSeconds = 30;           ///< on a machine under load CPU time takes longer
  size_t output = size_t{16} << 20;  ///< bytes that the child may hand back
  bool isSealed = true;              ///< it can only compute: no descriptor, file, process or socket
  std::string hint = {};             ///< what to say of a child that takes too long
};

/// How the child ended.
struct ChildEnd {
  std::string output;   ///< all that the work returned, when `problem` is empty
  std::string problem;  ///< why there is no output: "was still running after 2s of CPU time ..."
  int line = 0;         ///< the last line that the child told, for the problem's place
};

/// Forks and runs `work` there; what it returns comes back through a pipe. `work` keeps the line that it
/// evaluates in the integer it is given. The calling process must have one thread. The child dies with its
/// parent; a sealed one holds no descriptor but the pipe, the standard input and outputs.
ChildEnd runInChild(const ChildLimits& limits, const std::function<std::string(volatile int* line)>& work);

}  // namespace muster

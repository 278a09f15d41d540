// SPDX-License-Identifier: Apache-2.0
// Reads process states from /proc/PID/stat.
#include "runner/dispatch/process_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "runner/system/files.h"

namespace muster {

Result<ProcessState> readProcessState(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/stat", pid);
  MUSTER_TRY(const std::string text, readFile(path, 4096));
  // The name in parentheses may hold anything, a parenthesis too: fields are counted from the last one.
  const size_t close = text.rfind(')');
  if (close == std::string::npos) return Error{ErrorCode::kIo, "has no process name, expected (NAME)", path};
  std::istringstream fields(text.substr(close + 1));
  ProcessState found;
  fields >> found.state;
  constexpr int kBeforeTimes = 10;  // fields 4 to 13 of proc(5)
  std::string skipped;
  for (int i = 0; i < kBeforeTimes; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  if (!fields) return Error{ErrorCode::kIo, "ends early, expected the fields of proc(5)", path};
  found.cpuSeconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return found;
}

}  // namespace muster

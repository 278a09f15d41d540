// SPDX-License-Identifier: Apache-2.0
// The `muster` command. An exception that reaches here is a fault of Muster itself.
#include <fcntl.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "runner/app/commands.h"
#include "runner/app/exit_code.h"

namespace {

/// A caller may close standard input, output or error (`>&-`). The next file that is opened would take the
/// place, and what is printed would end up in a journal: /dev/null takes it instead.
bool holdStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!holdStandardDescriptors()) return muster::kExitInternal;
  // A file that grows beyond `ulimit -f` is a failed write that is told, and not the end of the runner.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return muster::muster(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster: internal fault: %s; please report it with the plan and this line\n",
                 error.what());
  } catch (...) {
    std::fprintf(stderr, "muster: internal fault of unknown kind; please report it with the plan\n");
  }
  return muster::kExitInternal;
}

// SPDX-License-Identifier: Apache-2.0
// The `muster` command. An exception that reaches here is a fault of Muster itself.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "runner/app/cli.h"
#include "runner/app/process/environment.h"
#include "runner/app/process/print_error.h"
#include "runner/judge/exit_code.h"

namespace {

/// A caller may close standard input, output or error (`>&-`). The next file that is opened would take the
/// place, and what is printed would end up in a journal: /dev/null takes it instead.
bool holdStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return false;
  return true;
}

/// Whether who read standard output has gone, as `head` does: then nobody misses the rest.
bool readerIsGone() {
  pollfd output{1, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

/// The exit code after all that was printed is written: what cannot be read by anyone is no success.
int afterOutput(int code) {
  const int reason = std::fflush(stdout) == 0 ? 0 : errno;
  if ((reason == 0 && std::ferror(stdout) == 0) || readerIsGone()) return code;
  std::fprintf(stderr,
               "muster: cannot write to standard output%s%s; what was printed is incomplete, files that were "
               "written are not affected\n",
               reason == 0 ? "" : ": ", reason == 0 ? "" : std::strerror(reason));
  return code == muster::kExitAccepted ? muster::kExitInternal : code;
}

}  // namespace

/// What this process and those that it starts write is never everybody's to change: a umask of 0 is nobody's
/// decision. One that lets a group write is kept, but for root.
void keepFilesOwn() {
  const mode_t given = umask(S_IWGRP | S_IWOTH);
  const bool shares = geteuid() != 0 && (given & S_IWOTH) != 0 && (given & S_IWGRP) == 0;
  umask(given | S_IWOTH | (shares ? 0 : S_IWGRP));
}

int main(int argc, char** argv) {
  muster::takeToken();
  keepFilesOwn();
  if (!holdStandardDescriptors()) return muster::kExitInternal;
  // A file that grows beyond `ulimit -f` is a failed write that is told, and not the end of the runner.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return afterOutput(muster::muster(argc, argv));
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return afterOutput(muster::kExitAccepted);  // printing throws
    muster::printError(fmt::format("muster: internal fault: {}; please report it with the plan and this line",
                                   error.what()));
  } catch (...) {
    std::fprintf(stderr, "muster: internal fault of unknown kind; please report it with the plan\n");
  }
  return muster::kExitInternal;
}

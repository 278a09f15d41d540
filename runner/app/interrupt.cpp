// SPDX-License-Identifier: Apache-2.0
// See interrupt.h.
#include "runner/app/interrupt.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

namespace muster {
namespace {

std::atomic<bool> interruptedFlag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

constexpr std::string_view kHeard =
    "\nmuster: interrupted: the ranks are ended and the record is written; once more ends all at once\n";

void onSignal(int signal) {
  const int before = errno;
  const bool first = !interruptedFlag.exchange(true);
  // Nobody can be told that telling failed: the terminal may be what went away.
  if (first && write(STDERR_FILENO, kHeard.data(), kHeard.size()) < 0) errno = before;
  std::signal(signal, SIG_DFL);
  errno = before;
}

}  // namespace

const std::atomic<bool>& interrupted() {
  return interruptedFlag;
}

void installInterruptHandlers() {
  struct sigaction action {};
  action.sa_handler = onSignal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // The terminal is closed or the connection lost: a record all the same. `nohup` asks to go on instead.
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace muster

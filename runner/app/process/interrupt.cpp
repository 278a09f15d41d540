// SPDX-License-Identifier: Apache-2.0
// Installs the signal handlers and keeps the first signal.
#include "runner/app/process/interrupt.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "runner/core/units.h"

namespace muster {
namespace {

std::atomic<bool> interruptedFlag{false};
std::atomic<int> firstSignal{0};
std::atomic<bool> tellsOfSignals{true};
std::atomic<time_t> firstAt{0};  ///< when it came, seconds since 1970
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<time_t>::is_always_lock_free);

/// Slurm sends the signal 30 s before a job's end as asked, and up to 60 s sooner.
constexpr long kSoonest = 100;

constexpr std::string_view kHeard =
    "\nmuster: interrupted: stopping ranks and writing the record; interrupt again to stop at once\n";

void onSignal(int signal) {
  const int before = errno;
  const bool first = !interruptedFlag.exchange(true);
  if (first) {
    firstAt = time(nullptr);
    firstSignal = signal;
  }
  // Nobody can be told that telling failed: the terminal may be what went away.
  if (first && tellsOfSignals.load() && write(STDERR_FILENO, kHeard.data(), kHeard.size()) < 0)
    errno = before;
  std::signal(signal, SIG_DFL);
  errno = before;
}

/// A whole number of the environment; 0 where there is none.
long numberIn(const char* name) {
  const char* text = std::getenv(name);
  long number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

std::string interruptionText() {
  const int signal = firstSignal.load();
  const long end = numberIn("MUSTER_JOB_END"), minutes = numberIn("MUSTER_JOB_MINUTES");
  if (signal == 0) return "";
  if (signal == SIGTERM && end > 0 && minutes > 0 && firstAt.load() >= end - kSoonest) {
    const char* job = std::getenv("SLURM_JOB_ID");
    return fmt::format("the time limit of Slurm job {} ({}) ended the run; set a longer one with --time",
                       job == nullptr ? "" : job, formatQuantity(60.0 * static_cast<double>(minutes), "s"));
  }
  return fmt::format("the run was interrupted (SIG{})", sigabbrev_np(signal));
}

const std::atomic<bool>& interrupted() {
  return interruptedFlag;
}

int interruptingSignal() {
  return firstSignal.load();
}

void installInterruptHandlers(bool tells) {
  tellsOfSignals = tells;
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

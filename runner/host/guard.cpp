// SPDX-License-Identifier: Apache-2.0
// See guard.h. As child subreaper the guard inherits every orphan below it: no child left means no descendant
// left.
#include "runner/host/guard.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runner/core/clock.h"
#include "runner/core/json.h"
#include "runner/host/process_tree.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr int kAbandonedExit = 125;
// Looks after the first KILL, 10 ms apart or, where the machine is too busy for that, more: a guard that gets no
// CPU for as long as survivors may take has seen nothing of them.
constexpr int kLooksAfterKill = 20;

sigset_t watchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
  return set;
}

class Guard {
 public:
  explicit Guard(const GuardOptions& options) : options_(options) {}

  int run(const std::function<int()>& rank) {
    const sigset_t signals = watchedSignals();
    sigprocmask(SIG_BLOCK, &signals, &outerMask_);
    signals_ = Fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || !signals_.valid()) return cannot("become a guard");
    guard_ = getpid();
    rank_ = fork();
    if (rank_ < 0) return cannot("fork the rank");
    if (rank_ == 0) becomeRank(rank);
    prctl(PR_SET_NAME, "muster-guard", 0, 0, 0);
    if (options_.forRank >= 0) close(options_.forRank);
    report({{"type", "rank"}, {"pid", rank_}});
    while (reap() && !abandoned_) {
      wait();
      if (ending_) end();
    }
    return exitCode();
  }

 private:
  static int cannot(const char* what) {
    std::fprintf(stderr, "muster-host: cannot %s: %s\n", what, errnoText(errno).c_str());
    return 1;
  }

  [[noreturn]] void becomeRank(const std::function<int()>& rank) {
    // Should the guard itself be killed, nobody else would end the rank.
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != guard_) _exit(1);
    prctl(PR_SET_NAME, "muster-rank", 0, 0, 0);
    signals_.reset();
    if (options_.lifeline >= 0) close(options_.lifeline);
    if (options_.report >= 0) close(options_.report);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &outerMask_, nullptr);
    std::exit(rank());
  }

  /// Collects every ended child; false once there is none left.
  bool reap() {
    while (true) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid == 0) return true;
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return false;
      if (pid == rank_) rankEnded(status);
    }
  }

  void rankEnded(int status) {
    rankEnded_ = true;
    if (WIFEXITED(status)) code_ = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) signal_ = WTERMSIG(status);
    report({{"type", "exit"}, {"code", code_}, {"signal", signal_}});
    begin();
  }

  void wait() {
    pollfd fds[2] = {{signals_.get(), POLLIN, 0}, {ending_ ? -1 : options_.lifeline, POLLIN, 0}};
    // While ending, children of dead children arrive without a signal of their own: look again soon.
    if (poll(fds, 2, ending_ ? 10 : -1) <= 0) return;
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGQUIT) options_.grace = 0;
      if (info.ssi_signo != SIGCHLD) begin();
    }
    if (fds[1].revents != 0) begin();
  }

  /// From now on everything below is ended.
  void begin() {
    if (!ending_) endingSince_ = systemClock().now();
    ending_ = true;
  }

  void end() {
    const double now = systemClock().now();
    const bool killing = now - endingSince_ >= options_.grace;
    if (!killing && termed_ && !(rankEnded_ && !reportedLeft_)) return;
    const std::vector<Descendant> below = descendantsOf(guard_);
    if (rankEnded_ && !reportedLeft_) reportLeft(below);
    for (const Descendant& process : below) kill(process.pid, killing ? SIGKILL : SIGTERM);
    termed_ = true;
    if (!killing) return;
    if (looksAfterKill_++ == 0) killingSince_ = now;
    if (looksAfterKill_ > kLooksAfterKill && now - killingSince_ >= options_.abandonAfter) abandon(below);
  }

  /// Processes that outlive the rank are the plugin's mistake (or its crash): name them once.
  void reportLeft(const std::vector<Descendant>& below) {
    Json names = Json::array();
    for (const Descendant& process : below)
      if (process.state != 'Z' && names.size() < 20) names.push_back(process.name);
    reportedLeft_ = true;
    if (!names.empty()) report({{"type", "left"}, {"names", names}});
  }

  void abandon(const std::vector<Descendant>& below) {
    if (below.empty()) return;
    // The rank is what matters most: its device is not to be used again.
    const auto rank =
        std::find_if(below.begin(), below.end(), [&](const Descendant& d) { return d.pid == rank_; });
    const Descendant& stuck = rank == below.end() ? below.front() : *rank;
    report({{"type", "abandoned"},
            {"pid", stuck.pid},
            {"name", stuck.name},
            {"state", std::string(1, stuck.state)}});
    abandoned_ = true;
  }

  void report(const Json& what) {
    if (options_.report < 0) return;
    const std::string line = dumpJson(what) + "\n";
    // The runner may be gone; then nobody wants the report, and the ending goes on.
    [[maybe_unused]] const ssize_t written = write(options_.report, line.data(), line.size());
  }

  [[nodiscard]] int exitCode() const {
    if (abandoned_) return kAbandonedExit;
    return signal_ != 0 ? 128 + signal_ : code_;
  }

  GuardOptions options_;
  Fd signals_;
  sigset_t outerMask_{};
  pid_t guard_ = 0;
  pid_t rank_ = 0;
  int code_ = 0;
  int signal_ = 0;
  bool rankEnded_ = false;
  bool ending_ = false;
  bool termed_ = false;
  bool reportedLeft_ = false;
  bool abandoned_ = false;
  double endingSince_ = 0;
  double killingSince_ = 0;  ///< of the first KILL
  int looksAfterKill_ = 0;
};

}  // namespace

int runGuarded(const GuardOptions& options, const std::function<int()>& rank) {
  signal(SIGPIPE, SIG_IGN);  // a report to a runner that is gone must not end the guard
  Guard guard(options);
  return guard.run(rank);
}

}  // namespace muster

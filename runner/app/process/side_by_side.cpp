// SPDX-License-Identifier: Apache-2.0
// See side_by_side.h. Each part is a fork: whatever it keeps in globals is its own.
#include "runner/app/process/side_by_side.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "runner/app/process/interrupt.h"
#include "runner/core/json.h"
#include "runner/system/child_process.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr int kLook = 200;  // ms; a signal may come right before the wait that it should end

Error systemError(const char* what) {
  return {ErrorCode::kInternal, fmt::format("cannot {}: {}", what, errnoText(errno)), ""};
}

Json toJson(const Result<int>& result) {
  return result.ok() ? Json{{"exit", *result}} : toJson(result.error());
}

Result<int> resultFromJson(const std::string& text, int status) {
  const Error lost{
      ErrorCode::kInternal,
      WIFSIGNALED(status)
          ? fmt::format("its process was killed by SIG{}", sigabbrev_np(WTERMSIG(status)))
          : fmt::format("its process ended with exit code {} and no result", WEXITSTATUS(status)),
      ""};
  const Result<Json> json = parseJson(text);
  if (!json.ok() || !json->is_object()) return lost;
  int exit = 0;
  JsonReader reader(*json, "result");
  if (!reader.has("exit")) return errorFromJson(*json).value_or(lost);
  reader.read("exit", exit);
  return reader.ok() ? Result<int>(exit) : lost;
}

/// One part at work.
class Part {
 public:
  static Result<Part> start(int number, const std::function<Result<int>(int)>& work) {
    MUSTER_TRY(Pipe output, makePipe());
    MUSTER_TRY(Pipe result, makePipe());
    std::fflush(nullptr);  // or both print what is buffered
    const pid_t parent = getpid();
    Part part;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);  // none comes before the part has handlers of its own
    part.pid_ = fork();
    if (part.pid_ == 0) installInterruptHandlers(false);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (part.pid_ < 0) return systemError("fork");
    if (part.pid_ == 0) become(parent, output.write.get(), result.write.get(), [&] { return work(number); });
    part.output_ = std::move(output.read);
    part.result_ = std::move(result.read);
    return part;
  }

  void appendPollFds(std::vector<pollfd>& fds) const {
    for (const Fd* fd : {&output_, &result_})
      if (fd->valid()) fds.push_back({fd->get(), POLLIN, 0});
  }

  /// Takes what has arrived, and the end.
  void service() {
    if (end_) return;
    read(output_, printed_);
    read(result_, told_);
    int status = 0;
    if (output_.valid() || result_.valid() || waitpid(pid_, &status, 0) != pid_) return;
    end_ = resultFromJson(told_, status);
  }

  void print() {
    if (printed_.empty()) return;
    std::fputs(printed_.c_str(), stdout);
    std::fflush(stdout);
    printed_.clear();
  }
  void interrupt(int signal) const {
    if (!end_) kill(pid_, signal);
  }
  [[nodiscard]] const std::optional<Result<int>>& end() const { return end_; }

 private:
  [[noreturn]] static void become(pid_t parent, int output, int result,
                                  const std::function<Result<int>()>& work) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) _exit(kExitLost);
    setpgid(0, 0);  // Ctrl-C reaches the parent alone, which hands it on
    dup2(output, STDOUT_FILENO);
    const std::string text = dumpJson(toJson(work()));
    std::fflush(stdout);
    const bool told = write(result, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    std::exit(told ? 0 : kExitLost);
  }

  /// Without blocking; closes `fd` at end-of-file.
  static void read(Fd& fd, std::string& into) {
    char buffer[65536];
    while (fd.valid()) {
      pollfd ready{fd.get(), POLLIN, 0};
      if (poll(&ready, 1, 0) <= 0) return;
      const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
      if (n > 0) into.append(buffer, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) fd.reset();
    }
  }

  static constexpr int kExitLost = 4;
  pid_t pid_ = -1;
  Fd output_, result_;
  std::string printed_, told_;
  std::optional<Result<int>> end_;
};

class Parts {
 public:
  Parts(int count, const std::function<Result<int>(int)>& work) : count_(count), work_(work) {}

  Result<std::vector<int>> run() {
    while (true) {
      MUSTER_CHECK_OK(begin());
      if (running() == 0) break;
      wait();
      for (Part& part : parts_) part.service();
      handOn();
      print();
    }
    std::vector<int> codes;
    for (const Part& part : parts_) {
      MUSTER_TRY(const int code, *part.end());
      codes.push_back(code);
    }
    return codes;
  }

 private:
  [[nodiscard]] int running() const {
    return static_cast<int>(
        std::count_if(parts_.begin(), parts_.end(), [](const Part& part) { return !part.end(); }));
  }
  [[nodiscard]] bool goesOn() const {
    return !interrupted().load() && std::none_of(parts_.begin(), parts_.end(), [](const Part& part) {
      return part.end() && !part.end()->ok();
    });
  }

  Status begin() {
    const int most = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int free = most - running(); free > 0 && static_cast<int>(parts_.size()) < count_ && goesOn();
         --free) {
      MUSTER_TRY(Part part, Part::start(static_cast<int>(parts_.size()), work_));
      parts_.push_back(std::move(part));
    }
    return {};
  }

  void wait() const {
    std::vector<pollfd> fds;
    for (const Part& part : parts_) part.appendPollFds(fds);
    poll(fds.data(), fds.size(), kLook);
  }

  /// Once: a second signal ends this process, and all others with it.
  void handOn() {
    if (!interrupted().load() || std::exchange(handedOn_, true)) return;
    for (const Part& part : parts_) part.interrupt(interruptingSignal());
  }

  /// The first that has not ended prints as it goes, and those behind it once it is their turn.
  void print() {
    for (; printing_ < parts_.size(); ++printing_) {
      parts_[printing_].print();
      if (!parts_[printing_].end()) return;
    }
  }

  int count_;
  const std::function<Result<int>(int)>& work_;
  std::vector<Part> parts_;
  size_t printing_ = 0;
  bool handedOn_ = false;
};

}  // namespace

Result<std::vector<int>> runSideBySide(int count, const std::function<Result<int>(int)>& work) {
  return Parts(count, work).run();
}

}  // namespace muster

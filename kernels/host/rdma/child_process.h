// SPDX-License-Identifier: Apache-2.0
// One process of an engine under supervision: its output is bounded, its time too, and it does not outlive
// us.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "runner/core/files.h"
#include "runner/core/result.h"

namespace muster {

/// A child in a process group of its own, its standard input empty, its stdout and stderr one pipe. It dies
/// with the thread that started it; the destructor kills what is left of it and waits, but not for ever.
class ChildProcess {
 public:
  static constexpr size_t kMostOutput = 64u << 10;

  /// Starts command[0] (a path). `name` is what messages call it.
  static Result<ChildProcess> start(const std::vector<std::string>& command, std::string name);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  [[nodiscard]] int outputFd() const { return output_.get(); }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const std::string& output() const { return text_; }
  /// Takes what it printed and notices its end; waits at most `seconds` for either. Output beyond the bound
  /// is an error.
  Status service(double seconds);
  /// Ends it by force: the whole group at once. An error when it cannot be killed.
  Status kill();
  /// How it ended, unless by itself with code 0: "ib_write_bw was killed by signal 11 (SIGSEGV); it printed:
  /// ...".
  [[nodiscard]] Status verdict() const;

 private:
  ChildProcess(pid_t pid, Fd output, std::string name)
      : pid_(pid), output_(std::move(output)), name_(std::move(name)) {}
  bool reap();

  pid_t pid_ = -1;
  Fd output_;
  std::string name_;
  std::string text_;
  int status_ = 0;
  bool ended_ = false;
};

/// A deadline with a way to be cancelled.
struct Patience {
  double until = 0;  ///< of systemClock().now()
  std::function<bool()> cancelled = {};

  [[nodiscard]] bool over() const;
  [[nodiscard]] bool wasCancelled() const { return cancelled && cancelled(); }
};

}  // namespace muster

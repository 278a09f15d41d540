// SPDX-License-Identifier: Apache-2.0
// Programs that we start: with exactly the descriptors and variables they are to have, bounded output and a
// deadline, and nothing of them left behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/system/files.h"

namespace muster {

struct Pipe {
  Fd read;
  Fd write;
};
/// Both ends are close-on-exec.
Result<Pipe> makePipe();

/// A program to start.
struct ProgramSpec {
  std::vector<std::string> command;       ///< without a slash, command[0] is looked up in PATH
  std::string name = {};                  ///< how messages call it; empty: command[0]
  std::vector<std::string> without = {};  ///< variables whose name begins with one of these are left out
  std::vector<std::string> with = {};     ///< "NAME=VALUE": replace or join those of our environment
  std::string input = {};                 ///< its standard input
  std::string folder = {};                ///< where it works; empty: where we do
  bool diesWithThread = false;            ///< it is killed when the thread that started it ends
  bool oneOutput = false;                 ///< its standard error goes where its standard output goes
  size_t mostOutput = 256u << 20;         ///< bytes of both outputs; more is an error

  [[nodiscard]] const std::string& shownName() const { return name.empty() ? command.front() : name; }
};

/// Starts it in a process group of its own, with default signals and no open descriptor but `descriptors`:
/// the first is its standard input, the second its standard output, and so on. It shares our memory until it
/// runs, so a start costs the same however large we are. kNotFound when it cannot be started.
Result<pid_t> spawn(const ProgramSpec& program, const std::vector<int>& descriptors);

/// A program whose outputs are read. The destructor kills what is left of it and waits, but not for ever.
class ChildProcess {
 public:
  static Result<ChildProcess> start(ProgramSpec program);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  [[nodiscard]] const ProgramSpec& program() const { return program_; }
  [[nodiscard]] const std::string& out() const { return out_.text; }
  [[nodiscard]] const std::string& err() const { return err_.text; }
  /// Takes what it printed and notices its end; waits at most `seconds` for either. With it ends what it left
  /// behind in its group, so whoever keeps its outputs open is not waited for. kProtocol when it printed too
  /// much.
  Status service(double seconds);
  /// Ends it by force, the whole group at once. kTimeout when it cannot be killed.
  Status kill();

  [[nodiscard]] bool ended() const { return ended_; }
  /// How it ended: with a code, or -1 and the signal that ended it.
  [[nodiscard]] int exitCode() const;
  [[nodiscard]] int signal() const;

 private:
  struct Output {
    Fd fd;
    std::string text;
    void read(size_t most);
  };
  ChildProcess(ProgramSpec program, pid_t pid, Fd out, Fd err)
      : program_(std::move(program)), pid_(pid), out_{std::move(out), {}}, err_{std::move(err), {}} {}
  bool reap();
  void await(double seconds);

  ProgramSpec program_;
  pid_t pid_ = -1;
  Output out_;
  Output err_;
  int status_ = 0;
  bool ended_ = false;
};

/// Runs it to its end. Errors beside those above: kTimeout when it takes longer than `timeout` seconds; it is
/// killed then.
Result<ChildProcess> runProgram(ProgramSpec program, double timeout);

}  // namespace muster

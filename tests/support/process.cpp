// SPDX-License-Identifier: Apache-2.0
// See process.h.
#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace muster::testing {
namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "muster-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TempDir::write(const std::string& name, const std::string& content) const {
  const fs::path file = path_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
  return file;
}

namespace {

[[noreturn]] void startChild(const std::vector<std::string>& command, const ProcessOptions& options,
                             const int in[2], const int out[2], const int err[2]) {
  setpgid(0, 0);
  dup2(in[0], 0);
  dup2(out[1], 1);
  dup2(err[1], 2);
  for (int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) close(fd);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
  for (const auto& [key, value] : options.environment) setenv(key.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

ProcessResult runProcess(const std::vector<std::string>& command, const ProcessOptions& options) {
  int in[2], out[2], err[2];
  if (pipe(in) != 0 || pipe(out) != 0 || pipe(err) != 0) throw std::runtime_error("pipe failed");
  const pid_t pid = fork();
  if (pid == 0) startChild(command, options, in, out, err);
  setpgid(pid, pid);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  signal(SIGPIPE, SIG_IGN);
  if (!options.input.empty() && write(in[1], options.input.data(), options.input.size()) < 0) {
    // The child closed its input: it may do that.
  }
  close(in[1]);

  ProcessResult result;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.timeout);
  pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* sinks[2] = {&result.out, &result.err};
  int status = 0;
  bool ended = false;
  while (!ended || fds[0].fd >= 0 || fds[1].fd >= 0) {
    const bool hadEnded = ended;  // what it wrote until then is in the pipes when they are looked at
    const int ready = poll(fds, 2, 20);
    for (int i = 0; i < 2 && ready > 0; ++i) {
      if (fds[i].fd < 0 || (fds[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      char buffer[65536];
      const ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0) sinks[i]->append(buffer, static_cast<size_t>(n));
      if (n <= 0) fds[i].fd = -1;
    }
    // A process that outlives its parent may hold the pipes: once the child has ended and they are quiet,
    // stop.
    if (!ended && waitpid(pid, &status, WNOHANG) == pid) ended = true;
    if (hadEnded && ready == 0) break;
    if (!ended && std::chrono::steady_clock::now() > deadline) {
      result.timedOut = true;
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      ended = true;
    }
  }
  close(out[0]);
  close(err[0]);
  if (WIFEXITED(status)) result.exitCode = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

namespace {
fs::path fromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw std::runtime_error(std::string(name) + " is not set; run the tests through ./dev test");
  return value;
}
}  // namespace

fs::path distDir() {
  return fromEnvironment("MUSTER_DIST");
}
fs::path sourceDir() {
  return fromEnvironment("MUSTER_SOURCE");
}
fs::path buildDir() {
  return fromEnvironment("MUSTER_BUILD");
}

std::string readWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<int> processesWith(const std::string& marker) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == getpid()) continue;
    if (readWhole(entry.path() / "cmdline").find(marker) != std::string::npos ||
        readWhole(entry.path() / "environ").find(marker) != std::string::npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

}  // namespace muster::testing

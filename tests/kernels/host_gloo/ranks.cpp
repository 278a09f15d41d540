// SPDX-License-Identifier: Apache-2.0
// Forks ranks and collects what they say.
#include "tests/kernels/host_gloo/ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "tests/support/process.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPoll = std::chrono::milliseconds(1);

std::string runOne(const fs::path& folder, int rank, int size, const RankBody& body) {
  BackendOptions options;
  options.folder = (buildDir() / "kernels" / "host").string();
  auto backend = loadBackend("host", options);
  if (!backend.ok()) return backend.error().text();
  auto device = (*backend)->open("cpu0");
  if (!device.ok()) return device.error().text();
  CommunicatorSpec spec;
  spec.name = "test";
  spec.rank = rank;
  spec.size = size;
  spec.timeout = 20;
  Rank self{std::move(*backend), std::move(*device), FileStore(folder), spec};
  return body(self);
}

/// The child's whole life. An exception ends it here: it must not reach the test runner that it is a copy of.
[[noreturn]] void live(const fs::path& folder, int rank, int size, const RankBody& body) noexcept {
  const std::string words = runOne(folder, rank, size, body);
  std::ofstream(folder / ("said." + std::to_string(rank))) << words << std::flush;
  _exit(0);
}

pid_t start(const fs::path& folder, int rank, int size, const RankBody& body) {
  const pid_t pid = fork();
  if (pid == 0) live(folder, rank, size, body);
  return pid;
}

std::string wordsOf(const fs::path& folder, int rank, int status, bool late) {
  if (late) return "took too long";
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  const fs::path said = folder / ("said." + std::to_string(rank));
  // Its words are the last thing it does: without them it never came to the end of its body.
  if (WEXITSTATUS(status) != 0 || !fs::exists(said))
    return "ended early with code " + std::to_string(WEXITSTATUS(status));
  return readWhole(said);
}

}  // namespace

fs::path FileStore::fileOf(const std::string& key) const {
  std::string name = key;
  std::replace(name.begin(), name.end(), '/', '+');
  return folder_ / name;
}

Status FileStore::set(const std::string& key, std::string_view value) {
  const fs::path file = fileOf(key);
  const fs::path fresh = file.string() + ".new" + std::to_string(getpid());
  std::ofstream(fresh, std::ios::binary) << value << std::flush;
  fs::rename(fresh, file);
  return {};
}

Result<std::string> FileStore::get(const std::string& key, double timeout) {
  const auto end = Clock::now() + std::chrono::duration<double>(timeout);
  while (!fs::exists(fileOf(key))) {
    if (Clock::now() > end) return Error{ErrorCode::kTimeout, "nobody set the key", key};
    std::this_thread::sleep_for(kPoll);
  }
  return readWhole(fileOf(key));
}

std::vector<std::string> runRanks(int size, const RankBody& body, double timeout) {
  const TempDir folder;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) pids.push_back(start(folder.path(), rank, size, body));
  const auto end = Clock::now() + std::chrono::duration<double>(timeout);
  std::vector<std::string> words;
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    bool late = false;
    while (waitpid(pids[static_cast<size_t>(rank)], &status, WNOHANG) == 0) {
      if (!late && Clock::now() > end) {
        late = true;
        kill(pids[static_cast<size_t>(rank)], SIGKILL);
      }
      std::this_thread::sleep_for(kPoll);
    }
    words.push_back(wordsOf(folder.path(), rank, status, late));
  }
  return words;
}

}  // namespace muster::testing

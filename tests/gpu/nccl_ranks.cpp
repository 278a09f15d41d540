// SPDX-License-Identifier: Apache-2.0
// See nccl_ranks.h.
#include "tests/gpu/nccl_ranks.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/gpu/gpu.h"

extern char** environ;

namespace muster::gpu {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPoll = std::chrono::milliseconds(2);

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string wholeFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path wordsFile(const fs::path& folder, int rank) {
  return folder / ("words." + std::to_string(rank));
}

/// A host id of its own makes each rank a host to NCCL, so that several can share one GPU.
CommunicatorSpec specOf(int rank, int size) {
  CommunicatorSpec spec;
  spec.name = "group";
  spec.rank = rank;
  spec.size = size;
  spec.timeout = 60;
  spec.interface = "lo";
  spec.settings = {{"NCCL_HOSTID", "muster-host-" + std::to_string(rank)}, {"NCCL_IB_DISABLE", "1"}};
  return spec;
}

pid_t start(const Stage& stage, std::map<std::string, std::string> own) {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  std::erase_if(variables,
                [&](const std::string& one) { return own.contains(one.substr(0, one.find('='))); });
  for (const auto& [name, value] : own) variables.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (std::string& one : variables) environment.push_back(one.data());
  environment.push_back(nullptr);
  std::string program = fs::read_symlink("/proc/self/exe").string();
  std::string filter = "--gtest_filter=" + stage.filter, disabled = "--gtest_also_run_disabled_tests";
  std::string brief = "--gtest_brief=1";
  char* arguments[] = {program.data(), filter.data(), disabled.data(), brief.data(), nullptr};
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environment.data()), 0);
  return pid;
}

/// Waits for a process until `end`, then kills it; whether it was late.
bool waitUntil(pid_t pid, Clock::time_point end, int& status) {
  bool late = false;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (!late && Clock::now() > end) late = kill(pid, SIGKILL) == 0;
    std::this_thread::sleep_for(kPoll);
  }
  return late;
}

std::string wordsOfRank(const fs::path& folder, int rank, int status, bool late) {
  if (late) return "took too long";
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  // Words are the last thing that a rank has to do: without them it never came to the end of its role.
  if (!fs::exists(wordsFile(folder, rank))) return "ended without a word";
  return wholeFile(wordsFile(folder, rank));
}

}  // namespace

fs::path FolderStore::fileOf(std::string key) const {
  std::replace(key.begin(), key.end(), '/', '_');
  return folder_ / key;
}

Status FolderStore::set(const std::string& key, std::string_view value) {
  const fs::path open = fileOf(key).string() + ".open" + std::to_string(getpid());
  std::ofstream(open, std::ios::binary) << value << std::flush;
  fs::rename(open, fileOf(key));
  return {};
}

Result<std::string> FolderStore::get(const std::string& key, double timeout) {
  const auto until = Clock::now() + std::chrono::duration<double>(timeout);
  while (!fs::exists(fileOf(key))) {
    if (Clock::now() > until) return Error{ErrorCode::kTimeout, "the key did not come", key};
    std::this_thread::sleep_for(kPoll);
  }
  return wholeFile(fileOf(key));
}

Result<std::unique_ptr<Communicator>> Rank::join() {
  return backend("cuda").communicator(*device, spec, store);
}

void endWith(const std::string& words) {
  std::ofstream(wordsFile(variable("MUSTER_GPU_STORE"), std::atoi(variable("MUSTER_GPU_RANK").c_str())))
      << words << std::flush;
  _exit(0);
}

void playRole(const Roles& roles) {
  const int rank = std::atoi(variable("MUSTER_GPU_RANK").c_str());
  const int size = std::atoi(variable("MUSTER_GPU_RANKS").c_str());
  const fs::path folder = variable("MUSTER_GPU_STORE");
  std::string words;
  {
    Rank me = {rank, size, openGpu(), FolderStore(folder), specOf(rank, size)};
    words = roles.at(variable("MUSTER_GPU_ROLE"))(me);
  }
  std::ofstream(wordsFile(folder, rank)) << words << std::flush;
}

std::vector<std::string> play(const Stage& stage, const std::string& role, int ranks,
                              const std::map<int, std::map<std::string, std::string>>& variables,
                              double timeout) {
  std::string folder = (fs::temp_directory_path() / "muster-nccl-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return {"no folder for the ranks: " + folder};
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    std::map<std::string, std::string> own = {{"MUSTER_GPU_ROLE", role},
                                              {"MUSTER_GPU_RANK", std::to_string(rank)},
                                              {"MUSTER_GPU_RANKS", std::to_string(ranks)},
                                              {"MUSTER_GPU_STORE", folder}};
    if (variables.contains(rank)) own.insert(variables.at(rank).begin(), variables.at(rank).end());
    pids.push_back(start(stage, std::move(own)));
  }
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout));
  std::vector<std::string> words;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    const bool late = waitUntil(pids[static_cast<size_t>(rank)], end, status);
    words.push_back(wordsOfRank(folder, rank, status, late));
  }
  fs::remove_all(folder);
  return words;
}

}  // namespace muster::gpu

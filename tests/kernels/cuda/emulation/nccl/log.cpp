// SPDX-License-Identifier: Apache-2.0
// See log.h.
#include "tests/kernels/cuda/emulation/nccl/log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/kernels/cuda/emulation/nccl/scenario.h"

extern char** environ;

namespace muster::emulation {
namespace {

/// NCCL reads its environment once and keeps the file open.
FILE* logFile() {
  static FILE* file = [] {
    const char* level = std::getenv("NCCL_DEBUG");
    const char* path = std::getenv("NCCL_DEBUG_FILE");
    const bool wanted = level != nullptr && std::string(level) == "INFO" && path != nullptr;
    return wanted && !NcclScenario::get().silent ? std::fopen(path, "w") : nullptr;
  }();
  return file;
}

void say(const std::string& level, const std::string& line) {
  if (logFile() == nullptr) return;
  std::fprintf(logFile(), "fake-node:%d:%d [0] NCCL %s %s\n", getpid(), getpid(), level.c_str(),
               line.c_str());
  std::fflush(logFile());
}

}  // namespace

void ncclInfo(const std::string& line) {
  say("INFO", line);
}
void ncclWarn(const std::string& line) {
  say("WARN", line);
}

bool ncclSaysTuning() {
  static const bool says = [] {
    const char* subsystems = std::getenv("NCCL_DEBUG_SUBSYS");
    return subsystems != nullptr && std::string(subsystems).find("TUNING") != std::string::npos;
  }();
  return says;
}

void ncclSayEnvironment() {
  static bool said = false;
  if (std::exchange(said, true)) return;
  ncclInfo("NCCL version 2.28.9+cuda13.0");
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string variable = *one;
    const size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    if (!name.starts_with("NCCL_") || name.starts_with("NCCL_DEBUG")) continue;
    const auto taken = NcclScenario::get().takes.find(name);
    ncclInfo(name + " set by environment to " +
             (taken == NcclScenario::get().takes.end() ? variable.substr(equals + 1) : taken->second));
  }
  ncclInfo("Using network Socket");
  for (const std::string& line : NcclScenario::get().says) ncclInfo(line);
}

}  // namespace muster::emulation

// SPDX-License-Identifier: Apache-2.0
// Reads host name, boot id and environment variables.
#include "runner/app/process/environment.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr std::array kPrefixes = {"NCCL_",        "UCX_",          "OMP_",           "MKL_NUM_",
                                  "OPENBLAS_",    "DNNL_",         "CUDA_VISIBLE",   "CUDA_DEVICE_",
                                  "GLOO_SOCKET",  "FI_",           "SLURM_JOB_ID",   "SLURM_ARRAY_",
                                  "SLURM_NODEID", "SLURM_STEP_ID", "SLURM_PROCID",   "JOB_COMPLETION_INDEX",
                                  "LD_PRELOAD",   "LD_AUDIT",      "LD_LIBRARY_PATH"};
// Names that carry a secret in spite of their prefix.
constexpr std::array kSecretWords = {"TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL"};

bool isRecorded(std::string_view name) {
  for (const char* word : kSecretWords)
    if (name.find(word) != std::string_view::npos) return false;
  for (const char* prefix : kPrefixes)
    if (name.substr(0, std::strlen(prefix)) == prefix) return true;
  return false;
}

std::string& tokenTaken() {
  static std::string token;
  return token;
}

}  // namespace

std::string hostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return validUtf8(name.data());
}

std::string bootId() {
  const auto text = readFile("/proc/sys/kernel/random/boot_id", 4096);
  return text.ok() ? std::string(trim(*text)) : std::string();
}

std::map<std::string, std::string> recordedEnvironment() {
  std::map<std::string, std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || !isRecorded(line.substr(0, equals))) continue;
    kept.emplace(line.substr(0, equals), validUtf8(line.substr(equals + 1)));
  }
  return kept;
}

void takeToken() {
  constexpr std::string_view kName = "MUSTER_TOKEN=";
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    if (!line.starts_with(kName)) continue;
    tokenTaken() = line.substr(kName.size());
    explicit_bzero(*entry + kName.size(), line.size() - kName.size());
  }
  unsetenv("MUSTER_TOKEN");
}

const std::string& runToken() {
  return tokenTaken();
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Which settings there may be, and what NCCL's log says of them.
#include "kernels/cuda/nccl/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runner/core/text.h"

namespace muster::cuda {
namespace {

/// Prefixes of what NCCL and its network plugins read. Of the libraries below them only single names: they
/// read more than tuning (UCX_GDB_COMMAND runs a program).
constexpr std::array<std::string_view, 5> kPrefixes = {"NCCL_", "FI_EFA_", "OFI_NCCL_", "MLX5_", "FASTRAK_"};
constexpr std::array<std::string_view, 6> kNames = {
    "FI_PROVIDER", "IBV_FORK_SAFE", "RDMAV_FORK_SAFE", "RDMAV_HUGEPAGES_SAFE", "UCX_NET_DEVICES", "UCX_TLS"};
/// Words of names whose values are files, directories or commands.
constexpr std::array<std::string_view, 11> kFileWords = {"CONF", "CONFIG", "COMMAND", "DIR",  "DUMP",  "EXEC",
                                                         "FILE", "FILES",  "LOG",     "PATH", "SCRIPT"};
/// Muster reads the log itself, and ends calls that hang: group.h says how.
constexpr std::array<std::string_view, 5> kOwn = {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS",
                                                  "NCCL_COMM_BLOCKING", "NCCL_COMM_SPLIT_SHARE_RESOURCES"};

bool isName(std::string_view name) {
  return name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
         std::string_view::npos;
}

bool isKnown(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// A library is loaded from a value with a slash; without one, from where the operator has put libraries.
bool namesFile(const std::string& name, const std::string& value) {
  const std::vector<std::string> words = split(name, '_');
  return value.find('/') != std::string::npos ||
         std::any_of(words.begin(), words.end(), [](const std::string& word) {
           return std::find(kFileWords.begin(), kFileWords.end(), word) != kFileWords.end();
         });
}

}  // namespace

Status checkSettings(const Settings& settings) {
  for (const auto& [name, value] : settings) {
    if (!isKnown(name) || !isName(name))
      return Error{ErrorCode::kUsage,
                   fmt::format("\"{}\" is not a setting of NCCL or a network plugin; expected a name that "
                               "begins with {}, or one of {}",
                               printable(name, 64), fmt::join(kPrefixes, ", "), fmt::join(kNames, ", ")),
                   "settings"};
    if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end())
      return Error{ErrorCode::kUsage,
                   name +
                       " is Muster's own: it reads NCCL's log to prove transport and settings, and forms its "
                       "communicators so that a hanging call ends at its deadline; leave it out",
                   "settings"};
    if (namesFile(name, value))
      return Error{
          ErrorCode::kUsage,
          name +
              " names a file, a directory or a command, which a plan may not; the operator sets it in "
              "the environment of the run or in /etc/nccl.conf",
          "settings"};
    if (value.find_first_of(std::string_view("\n\0", 2)) != std::string::npos)
      return Error{ErrorCode::kUsage, "the value of " + name + " has a line break or a zero byte",
                   "settings"};
  }
  return {};
}

SettingsProof proveSettings(const Settings& settings, const NcclLog& log) {
  SettingsProof proof;
  for (const auto& [name, value] : settings) {
    const auto said = log.environment.find(name);
    if (said == log.environment.end())
      proof.unsaid.push_back(name);
    else if (said->second == printable(value, 400))
      proof.taken.push_back(name + "=" + value);
    else
      proof.changed.push_back(name + " is " + said->second + ", expected " + printable(value, 400));
  }
  return proof;
}

}  // namespace muster::cuda

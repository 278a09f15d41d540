// SPDX-License-Identifier: Apache-2.0
// Which settings there may be, and what NCCL's log says of them.
#include "kernels/cuda/nccl/settings.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "runner/core/text.h"

namespace muster::cuda {
namespace {

/// Prefixes of what NCCL, its network plugins and the libraries below them read.
constexpr std::array<std::string_view, 9> kPrefixes = {"NCCL_", "FI_",  "OFI_",   "UCX_",    "RDMAV_",
                                                       "MLX5_", "IBV_", "SHARP_", "FASTRAK_"};
/// Muster reads the log itself, and ends calls that hang: group.h says how.
constexpr std::array<std::string_view, 5> kOwn = {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS",
                                                  "NCCL_COMM_BLOCKING", "NCCL_COMM_SPLIT_SHARE_RESOURCES"};

bool isName(std::string_view name) {
  return name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
         std::string_view::npos;
}

}  // namespace

Status checkSettings(const Settings& settings) {
  for (const auto& [name, value] : settings) {
    const bool known = std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                   [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (!known || !isName(name))
      return Error{
          ErrorCode::kUsage,
          "\"" + printable(name, 64) +
              "\" is not a setting of NCCL or a network plugin; expected a name that begins with NCCL_, FI_, "
              "OFI_, UCX_, RDMAV_, MLX5_, IBV_, SHARP_ or FASTRAK_",
          "settings"};
    if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end())
      return Error{ErrorCode::kUsage,
                   name +
                       " is Muster's own: it reads NCCL's log to prove transport and settings, and forms its "
                       "communicators so that a hanging call ends at its deadline; leave it out",
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

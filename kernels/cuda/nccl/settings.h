// SPDX-License-Identifier: Apache-2.0
// Settings of NCCL and of its network plugins: environment variables, put in place before NCCL reads them,
// and proven by its log to have been taken.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/nccl/log.h"
#include "runner/core/result.h"

namespace muster::cuda {

using Settings = std::map<std::string, std::string>;

/// kUsage for a name that is no setting of NCCL's or a network plugin's, for one that Muster needs itself,
/// and for what names a file, a directory or a command: a plan is data, and NCCL loads libraries and writes
/// files.
Status checkSettings(const Settings& settings);

/// What became of each setting.
struct SettingsProof {
  std::vector<std::string> taken;    ///< NCCL said that it took them, with that value
  std::vector<std::string> unsaid;   ///< NCCL's log does not name them: unknown to it, or not yet needed
  std::vector<std::string> changed;  ///< NCCL says another value: "NCCL_X is 5, expected 4"
};
SettingsProof proveSettings(const Settings& settings, const NcclLog& log);

}  // namespace muster::cuda

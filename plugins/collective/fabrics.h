// SPDX-License-Identifier: Apache-2.0
// NCCL's environment for the fabrics that clusters have, as their operators publish it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::collective {

/// The detected NICs decide: fabric_choice.h.
inline constexpr const char* kAutoFabric = "auto";

/// Names that a plan may give; "none" sets nothing, nor does "auto" before the NICs are known.
std::vector<std::string> fabricNames();

/// The settings of a fabric; kUsage lists the names.
Result<std::map<std::string, std::string>> fabricSettings(const std::string& name);

}  // namespace muster::collective

// SPDX-License-Identifier: Apache-2.0
// NCCL's environment for the fabrics that clusters have, as their operators publish it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::collective {

/// Names that a plan may give; "none" sets nothing.
std::vector<std::string> fabricNames();

/// The settings of a fabric; kUsage lists the names.
Result<std::map<std::string, std::string>> fabricSettings(const std::string& name);

}  // namespace muster::collective

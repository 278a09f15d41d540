// SPDX-License-Identifier: Apache-2.0
// Slurm host lists: "gpu[001-003,7]-ib,login".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace muster {

constexpr size_t kMaxHosts = 65536;

/// Expands a host list in the order it is written. kUsage (with the column) for brackets that do not match,
/// bad ranges, or more than kMaxHosts names.
Result<std::vector<std::string>> expandHostList(std::string_view list);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Lists of node names: what users give becomes names, names become Slurm's short form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace muster::slurm {

/// "node[001-003],login" as names, each once, in the order given. kUsage for a list that cannot be read and
/// for names that Slurm cannot have (they become file names and script text).
Result<std::vector<std::string>> nodeNames(std::string_view list);

/// The same names, short: "login,node[001-003]". Sorted, each once.
std::string shortList(std::vector<std::string> names);

}  // namespace muster::slurm

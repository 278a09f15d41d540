// SPDX-License-Identifier: Apache-2.0
// What every folder of a run needs, whichever program started the run: a lock, JSON files, results set aside.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/system/files.h"

namespace muster {

/// kUsage for a directory that holds anything; one that is missing passes.
Status requireEmpty(const std::filesystem::path& folder);
/// Creates `inputs` in the directory of a new run. kUsage if another process was faster, whose run it is
/// then.
Status claimEmpty(const std::filesystem::path& folder);

/// Locks the run until the descriptor is closed. kUsage while another process holds it.
Result<Fd> lockRun(const std::filesystem::path& folder);

/// Reads a file of the run's owner, see readOwnFile().
Result<Json> readOwnJson(const std::filesystem::path& path);
Status writeJson(const std::filesystem::path& path, const Json& json);

/// Moves those of `parts` that exist into the directory `to`, in their order.
Status moveInto(const std::filesystem::path& to,
                const std::vector<std::pair<std::filesystem::path, const char*>>& parts);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Takes named files out of a tar archive.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::train {

/// Writes those members of a (maybe gzipped) ustar archive whose last path component is in `names` into
/// `folder`, under that name: no member can reach outside of it. All must be there.
Status extractFiles(const std::filesystem::path& archive, const std::vector<std::string>& names,
                    const std::filesystem::path& folder);

}  // namespace muster::train

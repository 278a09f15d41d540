// SPDX-License-Identifier: Apache-2.0
// SHA-256 of files that are too large to be read at once.
#pragma once

#include <filesystem>
#include <string>

#include "runner/core/result.h"

namespace muster::train {

/// SHA-256 of a file's content as 64 lower-case hexadecimal digits.
Result<std::string> sha256OfFile(const std::filesystem::path& path);

}  // namespace muster::train

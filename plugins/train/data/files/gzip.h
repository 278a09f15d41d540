// SPDX-License-Identifier: Apache-2.0
// Reads files that may be compressed with gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runner/core/result.h"

namespace muster::train {

/// The content of a file, decompressed where it is a gzip file. Errors name the file and, where it is damaged
/// or cut short, the offset in its content: up to which byte it was good. `limit` bounds the content.
Result<std::string> readMaybeGzip(const std::filesystem::path& path, uint64_t limit);

}  // namespace muster::train

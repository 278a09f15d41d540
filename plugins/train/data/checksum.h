// SPDX-License-Identifier: Apache-2.0
// MD5 of files: what the publishers of these data sets give. It finds damage; against malice https stands.
#pragma once

#include <filesystem>
#include <string>

#include "runner/core/result.h"

namespace muster::train {

/// MD5 (RFC 1321) of a file's content as 32 lower-case hexadecimal digits.
Result<std::string> md5OfFile(const std::filesystem::path& path);

}  // namespace muster::train

// SPDX-License-Identifier: Apache-2.0
// Reads the data of one exported symbol from an ELF shared library without loading it.
#pragma once

#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

/// The first `bytes` bytes of the object that the 64-bit shared library behind `fd` exports as `symbol`, as
/// they stand in the file. Every offset is checked against the file, so a hostile file gives an error and
/// never more than a bounded amount of work. Errors name `path` and say what is wrong with it.
Result<std::string> readElfSymbol(int fd, const std::string& path, std::string_view symbol, size_t bytes);

}  // namespace muster

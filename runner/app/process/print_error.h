// SPDX-License-Identifier: Apache-2.0
// How errors reach a person: the one place where `muster` writes to standard error.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "runner/core/text.h"

namespace muster {

/// Prints `text`, a mistake per line. Errors quote records, file names and what programs say: no control
/// character of theirs reaches the terminal, and no line is endless.
inline void printError(const std::string& text) {
  constexpr size_t kLongestLine = 4000;
  for (const std::string& line : split(text, '\n')) fmt::print(stderr, "{}\n", printable(line, kLongestLine));
}

}  // namespace muster

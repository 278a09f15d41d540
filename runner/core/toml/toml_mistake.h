// SPDX-License-Identifier: Apache-2.0
// Plain words for what a TOML parser refuses: which statement, what was found, what is expected.
#pragma once

#include <string>
#include <string_view>

namespace muster {

struct TextPosition;

/// Explains why `text`, which stands in `file`, is not valid TOML, given where the parser stopped (`at`,
/// moved to the statement or value that is wrong) and its own words. Names the place of the first definition
/// of a key that is defined twice, and where a text or list begins that is never closed.
std::string explainTomlMistake(std::string_view text, const std::string& file, TextPosition& at,
                               std::string_view parserSaid);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Text in columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// `text` in lines of at most `width` columns, broken at spaces; a longer word is broken where it must be.
/// Never empty. One code point counts as one column.
std::vector<std::string> wrapText(std::string_view text, int width);

}  // namespace muster

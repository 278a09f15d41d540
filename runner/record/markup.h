// SPDX-License-Identifier: Apache-2.0
// Foreign text in HTML and XML: escaped, valid UTF-8, with controls made visible.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// `text` for elements and quoted attributes of HTML and XML 1.0. Markup is escaped, invalid UTF-8 becomes
/// U+FFFD, control characters become their pictures (U+2400 ff.) and characters that reorder text become
/// "[U+202E]"; newlines and tabs stay.
std::string escapeMarkup(std::string_view text);

/// The same for XML attributes, where plain newlines and tabs would turn into spaces.
std::string escapeAttribute(std::string_view text);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Whether a file's bytes are text in UTF-8, and if not, what they seem to be.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// Why bytes are not UTF-8 text: the byte it shows at, and a message with the encoding that is likely and the
/// command that converts the file.
struct EncodingFault {
  size_t offset = 0;
  std::string message;
};

/// Nothing for valid UTF-8 without NUL bytes. Recognizes UTF-16 and UTF-32 (with or without a byte order
/// mark) and takes other invalid bytes for Latin-1 where the text around them is one. `file` is named in the
/// advice.
std::optional<EncodingFault> findEncodingFault(std::string_view text, const std::string& file);

}  // namespace muster

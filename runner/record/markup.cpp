// SPDX-License-Identifier: Apache-2.0
// Escapes text for HTML and XML.
#include "runner/record/markup.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster {
namespace {

const char* entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return nullptr;
  }
}

/// What replaces the three-byte sequence at `at`, or nothing: bidirectional overrides and isolates (they let
/// a name show as another) and the two non-characters that XML forbids.
std::string replacementOf(std::string_view text, size_t at) {
  if (at + 2 >= text.size()) return "";
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned code = (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
  const bool reorders = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                        code == 0x200e || code == 0x200f;
  if (reorders || code == 0xfffe || code == 0xffff) return fmt::format("\\u{:04x}", code);
  return "";
}

std::string escape(std::string_view raw, bool attribute) {
  const std::string text = validUtf8(raw);
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (const char* name = entity(c)) {
      out += name;
    } else if (c == '\n' || c == '\t') {
      if (attribute)
        out += c == '\n' ? "&#10;" : "&#9;";
      else
        out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (const std::string other = byte >= 0xe0 && byte < 0xf0 ? replacementOf(text, i) : "";
               !other.empty()) {
      out += other;
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string escapeMarkup(std::string_view text) {
  return escape(text, false);
}
std::string escapeAttribute(std::string_view text) {
  return escape(text, true);
}

}  // namespace muster

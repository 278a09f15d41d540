// SPDX-License-Identifier: Apache-2.0
// Escapes text for HTML and XML.
#include "runner/record/markup.h"

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

std::string escape(std::string_view raw, bool attribute) {
  const std::string text = validUtf8(raw);
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t at = 0; at < text.size();) {
    const auto [code, size, valid] = characterAt(text, at);
    const bool forbidden = code == 0xfffe || code == 0xffff;  // in XML
    if (const char* name = entity(text[at]))
      out += name;
    else if (code == '\n' || code == '\t')
      out += !attribute ? text.substr(at, size) : code == '\n' ? "&#10;" : "&#9;";
    else
      out += isHidden(code) || forbidden ? escaped(code) : text.substr(at, size);
    at += size;
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

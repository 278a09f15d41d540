// SPDX-License-Identifier: Apache-2.0
// Wraps texts at a width, counting UTF-8 characters.
#include "reports/terminal/wrap.h"

#include <algorithm>

#include "runner/core/text.h"

namespace muster {
namespace {

size_t columnsOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// The bytes of the first `columns` code points.
size_t bytesOf(std::string_view text, size_t columns) {
  size_t at = 0;
  for (size_t seen = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    if (seen++ == columns) break;
  }
  return at;
}

}  // namespace

std::vector<std::string> wrapText(std::string_view text, int width) {
  const size_t limit = static_cast<size_t>(std::max(width, 8));
  std::vector<std::string> lines(1);
  for (std::string word : split(text, ' ')) {
    std::string& line = lines.back();
    if (!line.empty() && columnsOf(line) + 1 + columnsOf(word) <= limit) {
      line.append(" ").append(word);
      continue;
    }
    if (!line.empty()) lines.emplace_back();
    while (columnsOf(word) > limit) {
      const size_t cut = bytesOf(word, limit);
      lines.back() = word.substr(0, cut);
      lines.emplace_back();
      word.erase(0, cut);
    }
    lines.back() = word;
  }
  return lines;
}

}  // namespace muster

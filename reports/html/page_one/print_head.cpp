// SPDX-License-Identifier: Apache-2.0
// The head of printed pages. CSS cannot take it from the page, so it is written into the style.
#include <fmt/format.h>

#include "reports/html/page_one/page_one.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kLongestName = 32;

/// A CSS string that stays one whatever `text` holds: everything but letters, digits and a few signs is
/// written as its code.
std::string cssString(const std::string& text) {
  std::string css = "\"";
  for (size_t at = 0; at < text.size();) {
    const Character c = characterAt(text, at);
    const bool plain = c.code < 0x80 && (isalnum(static_cast<int>(c.code)) != 0 || c.code == ' ' ||
                                         c.code == '.' || c.code == '-' || c.code == ':');
    css += plain ? std::string(1, static_cast<char>(c.code))
                 : fmt::format("\\{:06x}", c.valid ? c.code : 0xfffd);
    at += c.size;
  }
  return css + "\"";
}

}  // namespace

std::string printHead(const Record& record, const std::string& digest) {
  const std::string mark = record.simulated          ? "SIMULATED: no hardware was measured  "
                           : record.imported.empty() ? ""
                                                     : "IMPORTED  ";
  const std::string node = printable(record.node, kLongestName);
  const std::string run = printable(record.runId, kLongestName);
  return fmt::format(
      "\n@page simulated {{ @top-center {{ content: none; }} }}\n@page {{ @top-left {{ content: {}; }} "
      "@top-right {{ content: {}; }} }}\n",
      cssString(mark + node), cssString(fmt::format("run {}  record {}", run, digest.substr(0, 16))));
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Quotes words for a shell.
#include "runner/core/shell.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace muster {

std::string shellQuote(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:,=@+%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + "'";
}

std::string shellCommand(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + shellQuote(word);
  return line;
}

}  // namespace muster

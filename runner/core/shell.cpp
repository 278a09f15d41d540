// SPDX-License-Identifier: Apache-2.0
// Quotes words for a shell.
#include "runner/core/shell.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace muster {

/// Whether a shell takes it as it is.
static bool isPlain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./:,=@+%").find(c) != std::string_view::npos;
}

std::string shellQuote(const std::string& text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), isPlain)) return text;
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

std::optional<std::vector<std::string>> wordsOfCommand(const std::string& line) {
  std::vector<std::string> words;
  bool inWord = false, quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (!quoted && c == ' ') {
      if (!inWord) return std::nullopt;
      inWord = false;
      continue;
    }
    if (!inWord) words.emplace_back();
    inWord = true;
    if (c == '\'')
      quoted = !quoted;
    else if (quoted || isPlain(c))
      words.back() += c;
    else if (c == '\\' && i + 1 < line.size() && line[i + 1] == '\'')
      words.back() += line[++i];
    else
      return std::nullopt;
  }
  if (quoted || !inWord) return std::nullopt;
  return words;
}

}  // namespace muster

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

std::optional<std::vector<std::string>> wordsOfCommand(const std::string& line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\'')
      quoted = !quoted;
    else if (line[i] == ' ' && !quoted)
      words.emplace_back();
    else if (line[i] == '\\' && !quoted && i + 1 < line.size())
      words.back() += line[++i];
    else
      words.back() += line[i];
  }
  // Whatever else a shell would see in it, shellCommand() would have quoted.
  if (shellCommand(words) != line) return std::nullopt;
  return words;
}

}  // namespace muster

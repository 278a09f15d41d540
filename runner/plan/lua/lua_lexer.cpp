// SPDX-License-Identifier: Apache-2.0
// Splits Lua text into tokens.
#include "runner/plan/lua/lua_lexer.h"

#include <algorithm>

namespace muster {
namespace {

constexpr std::string_view kKeywords[] = {
    "and", "break", "do",  "else", "elseif", "end",    "false",  "for",  "function", "goto",  "if",
    "in",  "local", "nil", "not",  "or",     "repeat", "return", "then", "true",     "until", "while"};

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<LuaToken> read() {
    while (at_ < text_.size()) step();
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void step() {
    const char c = peek();
    if (c == '\n' || c == '\r') return newline();
    if (c == '-' && peek(1) == '-') return comment();
    if (c == '"' || c == '\'') return quoted(c);
    if (c == '[' && longBracketLevel() >= 0) return longText();
    if (isLetter(c)) return word();
    if (isDigit(c) || (c == '.' && isDigit(peek(1)))) return number();
    if (c > ' ') tokens_.push_back({text_.substr(at_, 1), at_, line_});
    ++at_;
  }

  /// \n, \r, \r\n and \n\r each end one line, as Lua counts.
  void newline() {
    const char first = peek();
    ++at_;
    if ((peek() == '\n' || peek() == '\r') && peek() != first) ++at_;
    ++line_;
  }

  void word() {
    const size_t start = at_;
    while (isLetter(peek()) || isDigit(peek())) ++at_;
    tokens_.push_back({text_.substr(start, at_ - start), start, line_});
  }

  /// As greedy as Lua: 0x1p-4, 1e+5, 3..2 is malformed there and never gets here.
  void number() {
    const bool hex = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    for (;; ++at_) {
      const char c = peek();
      const bool exponent = hex ? (c == 'p' || c == 'P') : (c == 'e' || c == 'E');
      if (exponent && (peek(1) == '+' || peek(1) == '-')) ++at_;
      if (!isDigit(c) && !isLetter(c) && c != '.') return;
    }
  }

  void comment() {
    at_ += 2;
    if (peek() == '[' && longBracketLevel() >= 0) return longText();
    while (at_ < text_.size() && peek() != '\n' && peek() != '\r') ++at_;
  }

  void quoted(char quote) {
    ++at_;
    while (at_ < text_.size() && peek() != quote) {
      if (peek() == '\n' || peek() == '\r') {
        newline();  // only after a backslash or \z
        continue;
      }
      at_ += peek() == '\\' && peek(1) != '\n' && peek(1) != '\r' ? 2 : 1;
    }
    ++at_;
  }

  /// Number of '=' in "[==[", or -1 when no long text starts here.
  [[nodiscard]] int longBracketLevel() const {
    size_t ahead = 1;
    while (peek(ahead) == '=') ++ahead;
    return peek(ahead) == '[' ? static_cast<int>(ahead) - 1 : -1;
  }

  void longText() {
    const auto level = static_cast<size_t>(longBracketLevel());
    at_ += level + 2;
    while (at_ < text_.size()) {
      if (peek() == ']' && closes(level)) {
        at_ += level + 2;
        return;
      }
      if (peek() == '\n' || peek() == '\r')
        newline();
      else
        ++at_;
    }
  }

  [[nodiscard]] bool closes(size_t level) const {
    for (size_t i = 1; i <= level; ++i)
      if (peek(i) != '=') return false;
    return peek(level + 1) == ']';
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<LuaToken> tokens_;
};

}  // namespace

bool LuaToken::isName() const {
  return !text.empty() && isLetter(text[0]);
}

bool isLuaKeyword(std::string_view word) {
  return std::find(std::begin(kKeywords), std::end(kKeywords), word) != std::end(kKeywords);
}

std::vector<LuaToken> luaTokens(std::string_view text) {
  return Lexer(text).read();
}

}  // namespace muster

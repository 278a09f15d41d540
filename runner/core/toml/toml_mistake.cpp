// SPDX-License-Identifier: Apache-2.0
// See toml_mistake.h. Everything before the parser's stop is valid, so a small scanner finds its way there.
#include "runner/core/toml/toml_mistake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "runner/core/text.h"
#include "runner/core/toml/toml_document.h"

namespace muster {
namespace {

using Path = std::vector<std::string>;

constexpr size_t kShown = 60;  ///< bytes of the file that a message quotes

/// Reads TOML up to a given end and keeps where each key was defined, and what was open at the end.
class Scanner {
 public:
  Scanner(std::string_view whole, size_t end) : text_(whole.substr(0, end)) {
    while (skipBlank(true) && statement()) {
    }
  }

  /// The key or table header that was read last: its absolute path, its own words, where it begins.
  [[nodiscard]] const Path& path() const { return path_; }
  [[nodiscard]] const std::string& words() const { return words_; }
  [[nodiscard]] size_t keyAt() const { return keyAt_; }
  [[nodiscard]] bool isHeader() const { return header_; }
  /// Where the value that was read last begins; npos before the first.
  [[nodiscard]] size_t valueAt() const { return valueAt_; }
  /// The innermost list, inline table or text that is not closed at the end; npos: none.
  [[nodiscard]] size_t openAt() const { return open_.empty() ? std::string_view::npos : open_.back(); }

  /// Where the last key, or what stands in its way, was defined first.
  [[nodiscard]] size_t firstDefinition() const {
    for (size_t parts = path_.size(); parts > 0; --parts) {
      const auto found = defined_.find(Path(path_.begin(), path_.begin() + static_cast<long>(parts)));
      if (found != defined_.end() && found->second != keyAt_) return found->second;
    }
    size_t first = std::string_view::npos;  // a table that its first key brought about
    for (const auto& [path, at] : defined_)
      if (at != keyAt_ && path.size() > path_.size() && std::equal(path_.begin(), path_.end(), path.begin()))
        first = std::min(first, at);
    return first;
  }

 private:
  [[nodiscard]] bool more() const { return at_ < text_.size(); }
  [[nodiscard]] bool is(char c) const { return more() && text_[at_] == c; }

  /// Skips blanks and, with `lines`, line ends and comments. False at the end.
  bool skipBlank(bool lines) {
    for (; more(); ++at_) {
      if (is('#') && lines)
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      else if (!(is(' ') || is('\t') || (lines && (is('\n') || is('\r')))))
        return true;
    }
    return false;
  }

  bool statement() {
    if (!is('[')) return keyValue(table_);
    keyAt_ = at_;
    header_ = true;
    const bool list = text_.substr(at_, 2) == "[[";
    at_ += list ? 2 : 1;
    Path path;
    if (!key(path, "]")) return false;
    words_ = std::string(text_.substr(keyAt_, at_ - keyAt_)) + (list ? "]]" : "]");
    at_ = std::min(at_ + (list ? 2 : 1), text_.size());
    path = placed(path);
    path_ = path;
    if (list) {
      // Each is a definition of its own; the list itself is where the first of them stands.
      defined_.emplace(path, keyAt_);
      path.push_back(std::to_string(items_[path]++));
    } else {
      defined_.emplace(path, keyAt_);
    }
    table_ = path;
    return true;
  }

  /// "stage.params" below the last [[stage]] as "stage.1.params".
  [[nodiscard]] Path placed(const Path& path) const {
    Path out;
    for (size_t i = 0; i < path.size(); ++i) {
      out.push_back(path[i]);
      const auto list = items_.find(out);
      if (i + 1 < path.size() && list != items_.end()) out.push_back(std::to_string(list->second - 1));
    }
    return out;
  }

  bool keyValue(const Path& below) {
    keyAt_ = at_;
    header_ = false;
    Path path = below;
    const size_t before = path.size();
    const bool whole = key(path, "=");
    words_ = std::string(trim(text_.substr(keyAt_, at_ - keyAt_)));
    path_ = path;
    if (path.size() > before) defined_.emplace(path, keyAt_);
    if (!whole) return false;
    ++at_;
    valueAt_ = at_;
    return skipBlank(false) && value(path);
  }

  /// The parts of a key up to `end`, which is not read. False where the text ends before it.
  bool key(Path& path, std::string_view end) {
    while (skipBlank(false)) {
      if (end.find(text_[at_]) != std::string_view::npos) return true;
      if (is('.')) {
        ++at_;
        continue;
      }
      const size_t begin = at_;
      if (is('"') || is('\'')) {
        if (!string()) return false;
        path.emplace_back(text_.substr(begin + 1, at_ - begin - 2));
        continue;
      }
      while (more() && std::string_view(" \t.=]\n").find(text_[at_]) == std::string_view::npos) ++at_;
      if (at_ == begin) return false;
      path.emplace_back(text_.substr(begin, at_ - begin));
    }
    return false;
  }

  bool value(const Path& path) {
    valueAt_ = at_;
    if (is('"') || is('\'')) return string();
    if (is('[')) return list(path);
    if (is('{')) return inlineTable(path);
    while (more() && std::string_view(",]}#\n").find(text_[at_]) == std::string_view::npos) ++at_;
    return true;
  }

  bool string() {
    open_.push_back(at_);
    const char quote = text_[at_];
    const std::string three(3, quote);
    const bool big = text_.substr(at_, 3) == three;
    at_ += big ? 3 : 1;
    for (; more(); ++at_) {
      if (is('\\') && quote == '"') {
        ++at_;
        continue;
      }
      if (!is(quote) || (big && text_.substr(at_, 3) != three)) continue;
      at_ += big ? 3 : 1;
      while (big && is(quote)) ++at_;  // up to two quotes may belong to the text
      open_.pop_back();
      return true;
    }
    at_ = text_.size();
    return false;
  }

  bool list(const Path& path) {
    open_.push_back(at_++);
    for (size_t i = 0; skipBlank(true); ++i) {
      if (is(']')) return close();
      if (is(',')) {
        ++at_;
        continue;
      }
      Path item = path;
      item.push_back(std::to_string(i));
      if (!value(item)) return false;
    }
    return false;
  }

  bool inlineTable(const Path& path) {
    open_.push_back(at_++);
    while (skipBlank(false)) {
      if (is('}')) return close();
      if (is(',')) {
        ++at_;
        continue;
      }
      if (!keyValue(path)) return false;
    }
    return false;
  }

  bool close() {
    ++at_;
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  Path table_;
  Path path_;
  std::string words_;
  size_t keyAt_ = 0;
  size_t valueAt_ = std::string_view::npos;
  bool header_ = false;
  std::vector<size_t> open_;
  std::map<Path, size_t> defined_;
  std::map<Path, size_t> items_;
};

size_t offsetOf(std::string_view text, TextPosition at) {
  size_t offset = 0;
  for (int line = 1; line < at.line && offset < text.size(); ++line)
    offset = std::min(text.find('\n', offset), text.size() - 1) + 1;
  for (int column = 1; column < at.column && offset < text.size() && text[offset] != '\n'; ++column) do
      ++offset;
    while (offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80);
  return offset;
}

/// How far to scan: of some keys and headers the parser says where they begin, not where it stopped.
size_t scanEnd(std::string_view text, size_t stop, std::string_view said) {
  if (said.find("as dotted") != std::string_view::npos) return std::min(text.find('=', stop), text.size());
  const size_t quote = said.find('\''), end = said.find('\'', quote + 1);
  if (!said.starts_with("Error while parsing table header: cannot") || end == std::string_view::npos)
    return stop;
  const size_t name = text.find_first_not_of("[ \t", stop);
  const bool begins = text.substr(stop).starts_with('[') && name != std::string_view::npos &&
                      text.substr(name).starts_with(said.substr(quote + 1, end - quote - 1));
  return begins ? std::min(text.find('\n', stop), text.size()) : stop;
}

class Explainer {
 public:
  Explainer(std::string_view text, const std::string& file, TextPosition& at, std::string_view said)
      : text_(text),
        file_(file),
        at_(at),
        said_(said),
        stop_(offsetOf(text, at)),
        seen_(text, scanEnd(text, stop_, said)) {}

  std::string message() {
    if (says("redefine existing") || says("existing inline table")) return definedTwice();
    if (says("nested value depth")) return "values nest too deeply; expected at most 32 levels";
    if (scope("string") || scope("literal string")) return inText();
    if (says("expected '='")) return noEquals();
    if (says("expected a comment or whitespace")) return afterEnd();
    if (scope("table header")) return moveTo(seen_.keyAt()), header();
    if (scope("array") || scope("inline table") || (said_.empty() && inBrackets())) return unclosed();
    if (said_.empty() || scope("root table") || scope("key"))
      return fmt::format("found {}; expected KEY = VALUE, [TABLE] or a comment", quoted(lineFrom(stop_)));
    if (seen_.valueAt() != std::string_view::npos) return noValue();
    return printable(trim(said_.substr(said_.find(": ") + 2)));
  }

 private:
  [[nodiscard]] bool says(std::string_view words) const {
    return said_.find(words) != std::string_view::npos;
  }
  [[nodiscard]] bool scope(std::string_view name) const {
    return said_.starts_with(fmt::format("Error while parsing {}: ", name));
  }
  void moveTo(size_t offset) { at_ = positionAt(text_, offset); }
  [[nodiscard]] std::string placeOf(size_t offset) const {
    const TextPosition at = positionAt(text_, offset);
    return fmt::format("{}:{}:{}", printable(file_), at.line, at.column);
  }
  static std::string quoted(std::string_view found) {
    return found.empty() ? "the end of the line" : "\"" + printable(found, kShown) + "\"";
  }
  /// The rest of a line, without its comment's or its own blanks.
  [[nodiscard]] std::string_view lineFrom(size_t offset) const {
    return trim(text_.substr(offset, std::min(text_.find('\n', offset), text_.size()) - offset));
  }
  [[nodiscard]] bool atLineEnd() const {
    return stop_ >= text_.size() || text_[stop_] == '\n' || text_[stop_] == '\r';
  }
  [[nodiscard]] std::string key() const { return printable(seen_.words(), kShown); }

  std::string definedTwice() {
    moveTo(seen_.keyAt());
    const size_t first = seen_.firstDefinition();
    const std::string place =
        first == std::string_view::npos ? "" : fmt::format(", first at {}", placeOf(first));
    if (!seen_.isHeader())
      return fmt::format("the key {} is defined twice{}; expected one definition", key(), place);
    const bool list = first != std::string_view::npos && text_.substr(first, 2) == "[[";
    return fmt::format("the table {} is defined twice{}; expected {}", key(), place,
                       list && !key().starts_with("[[") ? "[" + key() + "] for one more table of this list"
                                                        : "one definition");
  }

  std::string inText() {
    const bool ended = says("end-of-file") || (atLineEnd() && !longText());
    if (ended && seen_.openAt() != std::string_view::npos) {
      moveTo(seen_.openAt());
      return fmt::format("the text that begins here has no closing {}",
                         std::string(longText() ? 3 : 1, text_[seen_.openAt()]));
    }
    if (says("unknown escape"))
      return "found a backslash that begins no escape sequence; expected \\\\ for a backslash, or the text "
             "in "
             "single quotes";
    return "a text holds " + quoted(text_.substr(stop_, 1)) + "; expected no control characters";
  }
  [[nodiscard]] bool longText() const {
    const size_t open = seen_.openAt();
    return open != std::string_view::npos && text_.substr(open, 3) == std::string(3, text_[open]);
  }

  [[nodiscard]] bool inBrackets() const {
    const size_t open = seen_.openAt();
    return open != std::string_view::npos && (text_[open] == '[' || text_[open] == '{');
  }

  std::string noEquals() {
    moveTo(seen_.keyAt());
    return fmt::format("found {}; expected KEY = VALUE", quoted(lineFrom(seen_.keyAt())));
  }

  std::string afterEnd() {
    const std::string what = seen_.isHeader() ? key() : "the value of " + key();
    const std::string_view rest = lineFrom(stop_);
    const bool words = !rest.empty() && std::isalnum(static_cast<unsigned char>(rest.front())) != 0 &&
                       rest.find('=') == std::string_view::npos;
    const std::string hint = seen_.isHeader() || !words ? "" : inQuotes(lineFrom(seen_.valueAt()));
    return fmt::format("found {} after {}; expected the end of the line or a comment (#){}", quoted(rest),
                       what, hint);
  }

  /// How a text is written that lacks its quotes; empty where that is not what is wrong.
  [[nodiscard]] std::string inQuotes(std::string_view words) const {
    const auto first = static_cast<unsigned char>(words.empty() ? ' ' : words.front());
    if (words.find_first_of("\"'\\#[{") != std::string_view::npos ||
        (std::isalnum(first) == 0 && first < 0x80))
      return "";
    return fmt::format("; a text is written in quotes: {} = \"{}\"", key(), printable(words, kShown));
  }

  std::string header() {
    return fmt::format("found {}; expected [NAME] for a table or [[NAME]] for one of a list",
                       quoted(lineFrom(seen_.keyAt())));
  }

  std::string unclosed() {
    const bool table =
        seen_.openAt() == std::string_view::npos ? scope("inline table") : text_[seen_.openAt()] == '{';
    const std::string where = seen_.openAt() == std::string_view::npos
                                  ? ""
                                  : fmt::format(", which begins at {}", placeOf(seen_.openAt()));
    return fmt::format("found {} in {}{}; expected {}", quoted(lineFrom(stop_)),
                       table ? "an inline table" : "a list", where,
                       table ? "KEY = VALUE with commas between them and } on the same line"
                             : "values with commas between them, then ]");
  }

  /// The value as it is written, up to what ends one.
  [[nodiscard]] std::string_view valueWords() const {
    const size_t begin = text_.find_first_not_of(" \t", seen_.valueAt());
    if (begin == std::string_view::npos) return {};
    const size_t end = std::min(text_.find_first_of(",]}#\r\n", begin), text_.size());
    return trim(text_.substr(begin, end - begin));
  }

  std::string noValue() {
    const std::string_view found = valueWords();
    moveTo(found.empty() ? stop_ : static_cast<size_t>(found.data() - text_.data()));
    if (found.empty()) return fmt::format("{} has no value; expected {} = VALUE", key(), key());
    if (found == "True" || found == "False")
      return fmt::format("{}: found {}; expected {}", key(), found, found == "True" ? "true" : "false");
    if (found.starts_with("\u201C") || found.starts_with("\u2018"))
      return fmt::format("{}: found {}; expected straight quotes: \"", key(), printable(found, kShown));
    const bool number = says("prohibited") || says("not representable");  // the parser says why it is none
    const std::string why =
        number ? fmt::format(" ({})", printable(said_.substr(said_.find(": ") + 2), 80)) : "";
    return fmt::format(
        "{}: found {}{}; expected a text in quotes, a number, true, false, a list or a table{}", key(),
        printable(found, kShown), why, inQuotes(found));
  }

  std::string_view text_;
  const std::string& file_;
  TextPosition& at_;
  std::string_view said_;
  size_t stop_;
  Scanner seen_;
};

}  // namespace

std::string explainTomlMistake(std::string_view text, const std::string& file, TextPosition& at,
                               std::string_view parserSaid) {
  return Explainer(text, file, at, parserSaid).message();
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// A TOML file as JSON, by toml++; the only file that knows that library.
#include "runner/core/toml_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runner/core/text.h"

namespace muster {
namespace {

/// Thrown where the parser would have aborted.
struct ParserFault {};

/// Where a key begins with an odd character the parser itself goes on to say so; elsewhere it must stop.
bool parserGoesOn(std::string_view expression) {
  if (expression.find("is_bare_key_character") != std::string_view::npos) return true;
  throw ParserFault{};
}

}  // namespace
}  // namespace muster

// Deep nesting costs stack in the library's destructors, so it is bounded here and in refuseLongKeys().
#define TOML_MAX_NESTED_VALUES 32
// The library asserts what hostile text can break, such as the first character of a table's name, and would
// abort.
#define TOML_ASSERT(expression) static_cast<void>((expression) || muster::parserGoesOn(#expression))
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace muster {
namespace {

constexpr int kMaxKeyParts = 16;
constexpr int kMaxDepth = 32;
constexpr size_t kMaxKeys = 1000;

Error usageError(const std::string& file, TextPosition at, const std::string& message) {
  return {ErrorCode::kUsage, message, fmt::format("{}:{}:{}", file, at.line, at.column)};
}

TextPosition positionOf(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

/// Skips over strings and comments and counts the dots of each key: toml++ 3.3 nests "a.a.a..." without a
/// bound.
class KeyScanner {
 public:
  explicit KeyScanner(std::string_view text) : text_(text) {}

  /// Line of the first key with more than kMaxKeyParts parts, or 0.
  int longKeyLine() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '"' || c == '\'') {
        skipString(c);
        continue;
      }
      if (c == '#') skipTo('\n');
      if (at_ < text_.size()) count(text_[at_]);
      if (dots_ >= kMaxKeyParts) return line_;
      ++at_;
    }
    return 0;
  }

 private:
  void count(char c) {
    if (c == '\n') ++line_;
    if (c == '.') ++dots_;
    if (c == '\n' || c == ',' || c == '=' || c == '[' || c == '{') dots_ = 0;
  }

  void skipTo(char end) {
    while (at_ < text_.size() && text_[at_] != end) ++at_;
  }

  void skipString(char quote) {
    bool longString = text_.substr(at_, 3) == std::string(3, quote);
    at_ += longString ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == '\n' && !longString) return;  // torn: the parser will say so
      if (c == '\\' && quote == '"') {
        ++at_;
        continue;
      }
      if (c != quote || (longString && text_.substr(at_, 3) != std::string(3, quote))) continue;
      at_ += longString ? 3 : 1;
      return;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int dots_ = 0;
};

/// Walks the tree once; keeps the position of every key and list item.
class Converter {
 public:
  Converter(const std::string& file, std::map<std::string, TextPosition>& positions)
      : file_(file), positions_(positions) {}

  Result<Json> table(const toml::table& table, const std::string& pointer, int depth) {
    // Json finds a key by going through all of them, so a very large table would cost hours.
    if (table.size() > kMaxKeys)
      return usageError(file_, positionOf(table.source()),
                        fmt::format("a table has more than {} keys", kMaxKeys));
    Json out = Json::object();
    for (const Entry& entry : inFileOrder(table)) {
      std::string name(entry.key->str());
      std::string child = pointerTo(pointer, name);
      positions_[child] = positionOf(entry.key->source());
      MUSTER_TRY(out[name], value(*entry.node, child, depth + 1));
    }
    return out;
  }

 private:
  struct Entry {
    const toml::key* key;
    const toml::node* node;
  };

  static std::vector<Entry> inFileOrder(const toml::table& table) {
    std::vector<Entry> entries;
    for (auto&& [key, node] : table) entries.push_back({&key, &node});
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.key->source().begin < b.key->source().begin;
    });
    return entries;
  }

  Result<Json> list(const toml::array& array, const std::string& pointer, int depth) {
    Json out = Json::array();
    for (const toml::node& item : array) {
      std::string child = pointerTo(pointer, std::to_string(out.size()));
      positions_[child] = positionOf(item.source());
      MUSTER_TRY(Json element, value(item, child, depth + 1));
      out.push_back(std::move(element));
    }
    return out;
  }

  Result<Json> value(const toml::node& node, const std::string& pointer, int depth) {
    if (depth > kMaxDepth)
      return usageError(file_, positionOf(node.source()),
                        fmt::format("values nest deeper than {} levels", kMaxDepth));
    if (const auto* asTable = node.as_table()) return table(*asTable, pointer, depth);
    if (const auto* asArray = node.as_array()) return list(*asArray, pointer, depth);
    if (const auto* text = node.as_string()) return Json(text->get());
    if (const auto* number = node.as_integer()) return Json(number->get());
    if (const auto* number = node.as_floating_point()) return Json(number->get());
    if (const auto* flag = node.as_boolean()) return Json(flag->get());
    return usageError(file_, positionOf(node.source()), "found a date or time; write it as a text in quotes");
  }

  const std::string& file_;
  std::map<std::string, TextPosition>& positions_;
};

}  // namespace

Result<TomlDocument> TomlDocument::parse(std::string_view text, const std::string& file) {
  if (int line = KeyScanner(text).longKeyLine(); line > 0)
    return usageError(file, {line, 1}, fmt::format("a key has more than {} parts", kMaxKeyParts));
  std::optional<toml::parse_result> parsed;
  try {
    parsed.emplace(toml::parse(text));
  } catch (const ParserFault&) {
    return usageError(file, {1, 1}, "not valid TOML, and the parser cannot say where");
  }
  if (parsed->failed()) {
    const toml::parse_error& error = parsed->error();
    return usageError(file, positionOf(error.source()), "not valid TOML: " + printable(error.description()));
  }
  TomlDocument document;
  document.file_ = file;
  MUSTER_TRY(document.root_, Converter(document.file_, document.positions_).table(parsed->table(), "", 0));
  return document;
}

TextPosition TomlDocument::position(const std::string& pointer) const {
  for (std::string at = pointer; !at.empty(); at.resize(at.rfind('/'))) {
    auto found = positions_.find(at);
    if (found != positions_.end()) return found->second;
  }
  return {1, 1};
}

std::string TomlDocument::place(const std::string& pointer) const {
  TextPosition at = position(pointer);
  return fmt::format("{}:{}:{}", file_, at.line, at.column);
}

std::string pointerTo(const std::string& pointer, std::string_view key) {
  std::string out = pointer + "/";
  for (char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

}  // namespace muster

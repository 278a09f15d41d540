// SPDX-License-Identifier: Apache-2.0
// A TOML file as JSON, with the place of every key, so that readers can point at what they complain about.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster {

/// A place in a text file; line and column count from 1, 0 is unknown.
struct TextPosition {
  int line = 0;
  int column = 0;
};

/// Where the byte `offset` of `text` stands; columns count characters.
TextPosition positionAt(std::string_view text, size_t offset);

/// A parsed TOML file. Values are named by JSON pointers: "/stage/2/params/size".
class TomlDocument {
 public:
  /// Parses `text`, which stands in `file` (only named in messages). Errors are kUsage with file:line:column.
  /// Dates and times are refused: no file of Muster has a use for them.
  static Result<TomlDocument> parse(std::string_view text, const std::string& file);

  [[nodiscard]] const Json& root() const { return root_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Where the key (or list item) that `pointer` names stands; for one that is absent, its nearest parent.
  [[nodiscard]] TextPosition position(const std::string& pointer) const;
  /// "plan.toml:12:3" of position().
  [[nodiscard]] std::string place(const std::string& pointer) const;

 private:
  std::string file_;
  Json root_ = Json::object();
  std::map<std::string, TextPosition> positions_;
};

/// `pointer` + "/" + `key`, escaped as JSON pointers want it.
std::string pointerTo(const std::string& pointer, std::string_view key);

}  // namespace muster

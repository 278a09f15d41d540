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

  /// This document laid over `below`: tables merge, and what stands here wins; lists of tables, and the list
  /// `expect`, are appended to those below. Values keep their places. Fails where a table becomes too large.
  [[nodiscard]] Result<TomlDocument> over(const TomlDocument& below) const;
  /// Takes out one key of the top level.
  void drop(const std::string& key);

  [[nodiscard]] const Json& root() const { return root_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Where the key (or list item) that `pointer` names stands; for one that is absent, its nearest parent.
  [[nodiscard]] TextPosition position(const std::string& pointer) const;
  /// The file in which that is: of merged documents there are several.
  [[nodiscard]] const std::string& fileAt(const std::string& pointer) const;
  /// "plan.toml:12:3" of position().
  [[nodiscard]] std::string place(const std::string& pointer) const;

 private:
  friend class TomlMerger;
  struct Place {
    TextPosition at;
    size_t file = 0;  ///< in files_
  };
  [[nodiscard]] const Place* placeOf(const std::string& pointer) const;

  std::string file_;
  Json root_ = Json::object();
  std::map<std::string, Place> positions_;
  std::vector<std::string> files_;
};

/// `pointer` + "/" + `key`, escaped as JSON pointers want it.
std::string pointerTo(const std::string& pointer, std::string_view key);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Files that a plan or profile includes, and the one text that freezes them together.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace muster {

/// At most so many files may be included, and so many levels deep.
constexpr size_t kMostIncludes = 64;
constexpr size_t kDeepestInclude = 8;

/// A file that is included.
struct IncludedFile {
  std::string path;  ///< below the folder of the plan or profile: "common/limits.toml"
  std::string text;
  std::string sha256;
};

/// The text of a plan or profile with the files that it includes. As a frozen text it is kept in run folders
/// and records: the text as it was written, then a comment for each included file with its path and SHA-256,
/// followed by its lines as comments. So the digest of the frozen text is that of everything that was read,
/// and it gives the same plan or profile anywhere, without the files.
class InputText {
 public:
  enum class From {
    kDisk,    ///< files are read, unless the text is frozen
    kFrozen,  ///< nothing is read: only a frozen text includes anything
  };

  /// `path` is the file of `text`; Lua comments if it ends in .lua, else TOML's. `limit` bounds the frozen
  /// text in bytes. Fails for a frozen text that was changed.
  static Result<InputText> of(const std::string& text, const std::filesystem::path& path, uint64_t limit,
                              From from);

  /// The text as it was written.
  [[nodiscard]] const std::string& own() const { return own_; }
  [[nodiscard]] std::string frozen() const;
  [[nodiscard]] const std::deque<IncludedFile>& files() const { return files_; }
  /// How messages name one of the files; "" is the plan or profile itself.
  [[nodiscard]] std::string nameOf(const std::string& file) const;

  /// The path of what `file` ("": the text itself) includes as `name`: a path of plain names below its
  /// folder.
  static Result<std::string> pathOf(const std::string& file, const std::string& name);
  /// The file at `path`, as pathOf() gave it; read once.
  Result<const IncludedFile*> include(const std::string& path);
  /// The text of `path` if it is there already; nullptr: it is not.
  [[nodiscard]] const std::string* find(const std::string& path) const;
  /// Keeps a text that was read elsewhere as a file of this one.
  Status hold(const std::string& path, const std::string& text);
  [[nodiscard]] bool readsDisk() const { return from_ == From::kDisk && !wasFrozen_; }

 private:
  [[nodiscard]] Result<std::string> readBelow(const std::string& path) const;
  Status thaw(const std::string& text);
  Status add(IncludedFile file);

  std::filesystem::path path_;
  std::string comment_;
  uint64_t limit_ = 0;
  From from_ = From::kFrozen;
  bool wasFrozen_ = false;
  std::string own_;
  std::deque<IncludedFile> files_;
  uint64_t size_ = 0;  ///< of the frozen text
};

}  // namespace muster

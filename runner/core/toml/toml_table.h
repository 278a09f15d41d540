// SPDX-License-Identifier: Apache-2.0
// Strict reading of TOML tables: typed keys with bounds, every mistake collected, unknown keys refused.
#pragma once

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "runner/core/toml/toml_document.h"

namespace muster {

/// Every mistake found in one file, with its place.
class Complaints {
 public:
  explicit Complaints(const TomlDocument& document) : document_(document) {}
  void add(const std::string& pointer, const std::string& message);
  [[nodiscard]] bool empty() const { return found_.empty(); }
  /// kUsage with one line "file:line:column: message" per mistake, in file order (of merged documents, the
  /// first one's before those that it includes).
  [[nodiscard]] Status status() const;

 private:
  struct Complaint {
    std::string file;
    TextPosition at;
    std::string message;
  };
  const TomlDocument& document_;
  std::vector<Complaint> found_;
};

/// Bounds of a number, both included.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

/// One table of a document. Each reader leaves `out` as it is when the key is missing, and returns whether it
/// was there and good. Keys that nobody asked for are mistakes, told by finish().
class TomlTable {
 public:
  TomlTable(const TomlDocument& document, std::string pointer, Complaints& complaints);

  [[nodiscard]] bool has(const char* key);
  bool text(const char* key, std::string& out);
  bool texts(const char* key, std::vector<std::string>& out);
  bool flag(const char* key, bool& out);
  bool integer(const char* key, Range range, int& out);
  /// A number, or a text with a unit ("650 TFLOP/s"), in base unit `unit`.
  bool quantity(const char* key, const std::string& unit, Range range, double& out);
  /// Complains unless the key is there.
  void require(const char* key);
  /// The table at `key`; an empty one when it is missing.
  TomlTable table(const char* key);
  /// The tables of the list `key`.
  std::vector<TomlTable> tables(const char* key);
  /// Every key, for tables whose keys are free; none of them is unknown then.
  std::vector<std::string> keys();
  /// The value as it stands, or nullptr.
  const Json* raw(const char* key);

  void complain(const std::string& key, const std::string& message);
  [[nodiscard]] const std::string& pointer() const { return pointer_; }
  [[nodiscard]] const Json& json() const { return *json_; }
  void finish();

 private:
  const TomlDocument& document_;
  std::string pointer_;
  Complaints& complaints_;
  const Json* json_;
  std::set<std::string> known_;
};

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Strict reading of TOML tables: typed keys with bounds, every mistake collected, unknown keys refused.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/json_schema.h"
#include "runner/core/mistake.h"
#include "runner/core/toml/toml_document.h"

namespace muster {

/// A mistake with its place.
struct Complaint {
  std::string file;
  TextPosition at;
  Mistake mistake;
};

/// Every mistake found in one file.
class Complaints {
 public:
  explicit Complaints(const TomlDocument& document) : document_(document) {}
  void add(const std::string& pointer, Mistake mistake);
  [[nodiscard]] bool empty() const { return found_.empty(); }
  /// In file order: of merged documents, the first one's before those that it includes.
  [[nodiscard]] std::vector<Complaint> sorted() const;
  /// kUsage with one line "file:line:column: message" per mistake, in that order.
  [[nodiscard]] Status status() const;

 private:
  const TomlDocument& document_;
  std::vector<Complaint> found_;
};

using Range = NumberRange;

/// One table of a document. Each reader leaves `out` as it is when the key is missing, and returns whether it
/// was there and good. Keys that nobody asked for are mistakes, told by finish().
///
/// The code that reads a table also describes it (describeTable()): then there is no document, every key
/// counts as missing but for has(), and what is asked for becomes the schema.
class TomlTable {
 public:
  TomlTable(const TomlDocument& document, std::string pointer, Complaints& complaints,
            TableSchema* schema = nullptr);

  /// True if a schema is made and nothing is read.
  [[nodiscard]] bool describing() const { return schema_ != nullptr; }
  /// Whether the key is there; true while describing, so that what depends on it is described.
  [[nodiscard]] bool has(const char* key);
  bool text(const char* key, std::string& out);
  bool texts(const char* key, std::vector<std::string>& out);
  bool flag(const char* key, bool& out);
  bool integer(const char* key, Range range, int& out);
  /// A number, or a text with a unit ("650 TFLOP/s"), in base unit `unit`.
  bool quantity(const char* key, const std::string& unit, Range range, double& out);
  bool choice(const char* key, const std::vector<std::string>& allowed, std::string& out);
  /// The key `schema`, which must be there and 1, as in all files of Muster.
  void schemaVersion(const char* whose);
  /// Complains unless the key is there.
  void require(const char* key);
  /// The same where it depends on other keys; the schema does not have it.
  void requireHere(const char* key);
  /// Calls `read` with the value of `key`, one of `kinds`, on which the table's other keys depend.
  bool variants(const char* key, const std::vector<std::string>& kinds,
                const std::function<void(const std::string& kind)>& read);
  /// The table at `key`; an empty one when it is missing.
  TomlTable table(const char* key);
  /// The tables of the list `key`.
  std::vector<TomlTable> tables(const char* key);
  /// Every key, for tables whose keys are free; none of them is unknown then. For the schema: regular
  /// expressions of keys ("": any) with the schemas of their values.
  std::vector<std::string> keys(const std::vector<std::pair<std::string, Json>>& patterns);
  /// The value as it stands, or nullptr.
  const Json* raw(const char* key);
  /// For the schema: what the value at `key` may be, where its own reader checks that.
  void describe(const char* key, const Json& value);
  /// For the schema: what must hold of several keys; schema::when(), schema::hasOneOf().
  void describeRule(const Json& rule);

  void complain(const std::string& key, Mistake mistake);
  /// The same of a value that may be anywhere in the document.
  void complainAt(const std::string& pointer, Mistake mistake) {
    complaints_.add(pointer, std::move(mistake));
  }
  [[nodiscard]] const std::string& pointer() const { return pointer_; }
  [[nodiscard]] const Json& json() const { return *json_; }
  void finish();

 private:
  const TomlDocument& document_;
  std::string pointer_;
  Complaints& complaints_;
  const Json* json_;
  TableSchema* schema_;
  std::set<std::string> known_;
};

/// The schema of the table that `read` reads.
Json describeTable(const std::function<void(TomlTable& table)>& read);

}  // namespace muster

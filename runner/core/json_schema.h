// SPDX-License-Identifier: Apache-2.0
// JSON Schemas (draft-07) of the tables that people write, made by their readers.
#pragma once

#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/json.h"

namespace muster {

/// Bounds of a number, both included.
struct NumberRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

namespace schema {

Json text();       ///< a text that is not blank
Json plainName();  ///< isPlainName()
Json flag();
Json number(NumberRange range = {});
Json whole(NumberRange range = {});
/// A number, or a text with a unit. The range holds for numbers only: a schema cannot compute with "5 GiB".
Json quantity(const std::string& unit, NumberRange range = {});
Json choice(const std::vector<std::string>& allowed);
/// A list of at least `least` items.
Json list(Json item, size_t least = 1);
/// A value of one of these schemas.
Json anyOf(std::vector<Json> schemas);
/// `value` with a text that editors show.
Json described(Json value, const std::string& summary);
/// {"if": ..., "then": ...}
Json when(Json condition, Json then);
/// A table that has `key`, and there this value.
Json has(const std::string& key, Json value = true);
/// One of these keys is there.
Json hasOneOf(const std::vector<std::string>& keys);

}  // namespace schema

/// The schema of one table: its keys as its reader asks for them. Keys that it does not ask for are errors
/// after close().
class TableSchema {
 public:
  TableSchema() = default;
  TableSchema(const TableSchema&) = delete;  // its parts point at each other
  TableSchema& operator=(const TableSchema&) = delete;
  void add(const std::string& key, Json value);
  void require(const std::string& key);
  /// A text about `key` that editors show.
  void explain(const std::string& key, const std::string& summary);
  /// Keys that match this regular expression ("" matches all) have such a value.
  void addPattern(const std::string& pattern, Json value);
  /// What must hold beside the keys' own schemas: when(), hasOneOf().
  void addRule(Json rule);
  void close() { closed_ = true; }

  /// The table at `key`, and a table of the list of tables at `key`.
  TableSchema& table(const std::string& key);
  TableSchema& item(const std::string& key);
  /// The further keys of a table whose `key` has this value. Such a table takes no others.
  TableSchema& variant(const std::string& key, const std::string& value);

  [[nodiscard]] Json json() const;

 private:
  struct Property {
    std::string key;
    Json value;                    ///< of one without a schema of its own
    TableSchema* table = nullptr;  ///< the table, or one of a list of tables
    bool isList = false;
    std::string summary{};
  };
  struct Variant {
    std::string key;
    std::string value;
    TableSchema* schema;
  };
  [[nodiscard]] Property& at(const std::string& key);
  [[nodiscard]] static Json jsonOf(const Property& property);
  [[nodiscard]] Json base() const;
  [[nodiscard]] Json jsonOf(const Variant& variant) const;
  TableSchema& child(const std::string& key, bool isList);

  std::vector<Property> properties_;
  std::vector<std::string> required_;
  std::vector<std::pair<std::string, Json>> patterns_;
  std::vector<Json> rules_;
  std::deque<TableSchema> children_;
  std::vector<Variant> variants_;
  bool closed_ = false;
};

/// A whole schema document: `root` with its title.
Json schemaDocument(const std::string& title, const Json& root);

}  // namespace muster

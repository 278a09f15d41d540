// SPDX-License-Identifier: Apache-2.0
// Iterates over the columnar rows of a record's measurements or verdicts (runner/record/fold/columnar_rows.h)
// without copying shared fields.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "reports/fleet/read/dom_fields.h"

namespace muster::fleet {

/// Goes through the rows of one group: a plain object is a single row.
class ColumnarReader {
 public:
  /// A group whose columns are none, empty or of unequal length, or that says a thing twice, is a failure.
  ColumnarReader(const dom::object& group, Failures& failures) : group_(group) {
    requireUniqueKeys(group, failures);
    dom::element rows;
    if (group.at_key("rows").get(rows) == simdjson::SUCCESS) readColumns(rows, failures);
  }

  /// The field `key` of this row, or of the group.
  [[nodiscard]] simdjson::simdjson_result<dom::element> at_key(std::string_view key) const {
    for (const Column& column : columns_)
      if (column.key == key) {
        dom::element item = *column.at;
        if (item.is_null()) return simdjson::NO_SUCH_FIELD;
        return simdjson::simdjson_result<dom::element>(std::move(item));
      }
    return group_.at_key(key);
  }
  /// Calls `read(key, value)` for what this row alone has.
  template <typename F>
  void eachOwn(F read) const {
    for (const Column& column : columns_)
      if (const dom::element item = *column.at; !item.is_null()) read(column.key, item);
  }
  [[nodiscard]] bool hasColumn(std::string_view key) const {
    return std::any_of(columns_.begin(), columns_.end(), [&](const Column& c) { return c.key == key; });
  }
  /// Goes to the next row; false when there is none. Columns that do not end together are a failure.
  bool next(Failures& failures) {
    size_t ended = 0;
    for (Column& column : columns_)
      if (++column.at == column.end) ++ended;
    if (ended > 0 && ended < columns_.size()) failures.fail("rows", "has columns of unequal length");
    return ended == 0 && !columns_.empty();
  }

 private:
  struct Column {
    std::string_view key;
    dom::array::iterator at;
    dom::array::iterator end;
  };
  void readColumns(const dom::element& rows, Failures& failures) {
    dom::object columns;
    if (rows.get(columns) != simdjson::SUCCESS || columns.size() == 0)
      failures.fail("rows", "must be an object of columns");
    if (failures.ok()) requireUniqueKeys(columns, failures);
    if (!failures.ok()) return;
    for (const auto& [key, value] : columns) {
      dom::array column;
      if (value.get(column) != simdjson::SUCCESS || column.begin() == column.end())
        failures.fail("rows", "must hold lists of at least one row");
      if (!failures.ok()) return;
      columns_.push_back({key, column.begin(), column.end()});
    }
  }

  dom::object group_;
  std::vector<Column> columns_;
};

}  // namespace muster::fleet

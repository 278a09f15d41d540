// SPDX-License-Identifier: Apache-2.0
// Writes, reads and measures columnar rows.
#include "runner/record/fold/columnar_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr const char* kRows = "rows";
constexpr uint64_t kEntryBytes = 100;  ///< what an entry of a map takes in memory beside its text

constexpr size_t kMostFields = 64;  ///< of a row; real ones have 20, and finding one goes through all

using Group = std::vector<const Json*>;

Error damaged(const std::string& message, const std::string& path) {
  return {ErrorCode::kProtocol, message, path};
}

/// The fields of all rows, in the order in which they first appear.
std::vector<std::string> fieldsOf(const Group& rows) {
  std::vector<std::string> fields;
  for (const Json* row : rows)
    for (const auto& [key, value] : row->items())
      if (std::find(fields.begin(), fields.end(), key) == fields.end()) fields.push_back(key);
  return fields;
}

bool isShared(const Group& rows, const std::string& field) {
  const auto first = rows.front()->find(field);
  if (first == rows.front()->end()) return false;
  return std::all_of(rows.begin() + 1, rows.end(), [&](const Json* row) {
    const auto at = row->find(field);
    return at != row->end() && *at == *first;
  });
}

Json columnOf(const Group& rows, const std::string& field) {
  Json column = Json::array();
  for (const Json* row : rows) {
    const auto at = row->find(field);
    column.push_back(at == row->end() ? Json() : *at);
  }
  return column;
}

Json folded(const Group& rows) {
  if (rows.size() == 1) return *rows.front();
  Json shared = Json::object();
  Json columns = Json::object();
  const std::vector<std::string> fields = fieldsOf(rows);
  for (const std::string& field : fields) {
    if (isShared(rows, field))
      shared[field] = rows.front()->at(field);
    else
      columns[field] = columnOf(rows, field);
  }
  if (columns.empty() && !fields.empty()) {  // all the same: one column says how many they are
    columns[fields.front()] = columnOf(rows, fields.front());
    shared.erase(fields.front());
  }
  shared[kRows] = std::move(columns);
  return shared;
}

/// The common length of the columns of one group.
Result<size_t> rowCount(const Json& group, const Json& shared, const std::string& path) {
  const Json& columns = group[kRows];
  if (columns.size() + shared.size() > kMostFields)
    return damaged(
        fmt::format("has {} fields; at most {} are read", columns.size() + shared.size(), kMostFields), path);
  if (!columns.is_object() || columns.empty()) return damaged("must be an object of columns", path);
  size_t count = 0;
  for (const auto& [key, column] : columns.items()) {
    const std::string at = path + "." + printable(key, 80);
    if (!column.is_array() || column.empty()) return damaged("must be a list of at least one row", at);
    if (count != 0 && column.size() != count)
      return damaged(fmt::format("has {} rows, the column before {}", column.size(), count), at);
    if (shared.contains(key)) return damaged("is also outside the rows", at);
    count = column.size();
  }
  return count;
}

using Read = std::function<Status(const Json& object, const std::string& path)>;

Status readGroup(const Json& group, const std::string& path, const Read& read) {
  if (!group.is_object() || !group.contains(kRows)) return read(group, path);
  Json shared = group;
  shared.erase(kRows);
  MUSTER_TRY(const size_t count, rowCount(group, shared, path + "." + kRows));
  for (size_t i = 0; i < count; ++i) {
    Json row = shared;
    for (const auto& [key, column] : group[kRows].items())
      if (!column[i].is_null()) row[key] = column[i];
    MUSTER_CHECK_OK(read(row, fmt::format("{}.{}[{}]", path, kRows, i)));
  }
  return {};
}

}  // namespace

Json toColumnarRows(const std::vector<KeyedObject>& objects) {
  std::map<std::string_view, size_t> places;
  std::vector<Group> groups;
  for (const KeyedObject& keyed : objects) {
    const size_t place = places.emplace(keyed.key, groups.size()).first->second;
    if (place == groups.size()) groups.emplace_back();
    groups[place].push_back(&keyed.object);
  }
  Json list = Json::array();
  for (const Group& group : groups) list.push_back(folded(group));
  return list;
}

Status eachRow(const Json& list, const std::string& path, const Read& read) {
  if (!list.is_array()) return damaged("must be a list", path);
  for (size_t i = 0; i < list.size(); ++i)
    MUSTER_CHECK_OK(readGroup(list[i], fmt::format("{}[{}]", path, i), read));
  return {};
}

namespace {

/// Entries of objects and elements of lists, at any depth.
uint64_t entriesOf(const Json& value) {
  uint64_t count = value.is_structured() ? value.size() : 0;
  if (count > 0)
    for (const Json& part : value) count += entriesOf(part);
  return count;
}

}  // namespace

size_t rowsOf(const Json& group) {
  const auto rows = group.is_object() ? group.find(kRows) : group.end();
  if (rows == group.end() || !rows->is_object()) return 1;
  size_t count = 0;
  for (const Json& column : *rows) count = std::max(count, column.size());
  return count;
}

size_t rowCount(const Json& list) {
  size_t count = 0;
  if (list.is_array())
    for (const Json& group : list) count += rowsOf(group);
  return count;
}

uint64_t heldBytes(const Json& value) {
  return dumpJson(value).size() + kEntryBytes * entriesOf(value);
}

uint64_t expandedBytes(const Json& list) {
  uint64_t bytes = 0;
  if (!list.is_array()) return bytes;
  for (const Json& group : list) {
    const auto rows = group.is_object() ? group.find(kRows) : group.end();
    if (rows == group.end() || !rows->is_object()) continue;
    bytes += dumpJson(*rows).size() + rowsOf(group) * (heldBytes(group) - heldBytes(*rows));
  }
  return bytes;
}

}  // namespace muster

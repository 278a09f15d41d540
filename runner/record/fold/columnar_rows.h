// SPDX-License-Identifier: Apache-2.0
// Columnar rows: a list of like objects as a table; shared fields are written once, the others as columns.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runner/core/json.h"

namespace muster {

/// An object with the key by which it is grouped.
struct KeyedObject {
  std::string key;
  Json object;
};

/// Groups objects of equal key. A single one stays as it is; several become one object that holds what all of
/// them have in common, and under "rows" one list for each field that differs, with null where an object
/// lacks it:
///   {"metric": "env.power", "unit": "W", "rows": {"rank": [0, 1], "device": ["gpu0", "gpu1"]}}
/// Groups stand in the order of their first object, objects inside a group in theirs.
Json toColumnarRows(const std::vector<KeyedObject>& objects);

/// Calls `read(object, path)` for every object that toColumnarRows wrote, in order; stops at the first error.
/// Columns of unequal length, without rows, or of a field that is shared too are errors. What is shared is
/// copied into each row: ask expandedBytes before reading what strangers wrote.
Status eachRow(const Json& list, const std::string& path,
               const std::function<Status(const Json& object, const std::string& path)>& read);

/// How many objects a group unfolds to: its longest column; a plain object is one row.
size_t rowsOf(const Json& group);

/// How many objects `list` unfolds to.
size_t rowCount(const Json& list);

/// About how many bytes a value takes in memory: its text, and what each entry needs, however short it is.
uint64_t heldBytes(const Json& value);

/// About how many bytes the rows of `list` unfold to, in memory.
uint64_t expandedBytes(const Json& list);

/// Puts items of equal key beside each other, in the order of toColumnarRows.
template <typename T, typename Key>
void groupRows(std::vector<T>& items, Key keyOf) {
  std::map<std::string, size_t> places;
  std::vector<std::vector<T>> groups;
  for (T& item : items) {
    const size_t place = places.emplace(keyOf(item), groups.size()).first->second;
    if (place == groups.size()) groups.emplace_back();
    groups[place].push_back(std::move(item));
  }
  items.clear();
  for (auto& group : groups)
    for (T& item : group) items.push_back(std::move(item));
}

}  // namespace muster

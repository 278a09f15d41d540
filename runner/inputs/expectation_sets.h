// SPDX-License-Identifier: Apache-2.0
// Named sets of expectations ([expectations.peers]), used by `expect = ["peers"]` and `set = "peers"`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/mistake.h"
#include "runner/metrics/expectation_reader.h"

namespace muster {

/// One expectation as readExpectation() takes it: about one metric, with the fields that a set gives it.
struct ExpectationTable {
  Json table = Json::object();
  std::map<std::string, std::string> places;  ///< key -> JSON pointer of its value, in the use or in a set
  std::string pointer;                        ///< of the item of `expect` that asks for it
  size_t number = 0;                          ///< of that item, from 1

  /// Where a mistake of `key` stands ("min", "where.dtype", "" for the table as a whole).
  [[nodiscard]] std::string placeOf(const std::string& key) const;
  /// Where the limit stands: in the set, unless the use states one of its own.
  [[nodiscard]] std::string limitPlace() const;
};

/// Who uses the sets of a document.
struct ExpectationUser {
  /// Whether it measures a metric; empty: whatever there is. Of a set's metrics only these are meant.
  std::function<bool(const std::string& metric)> measures;
  std::string name;  ///< for messages: "compute.gemm"; with `measures`
  /// Told each mistake with the JSON pointer of what it concerns.
  std::function<void(const std::string& pointer, const Mistake& mistake)> complain;
};

/// The expectations that the list at `pointer` of `root` asks for. Its items are tables, or names of sets. A
/// table's `set` names the set whose fields it takes where it has none of its own; a set may use others, but
/// not itself. A `metric` that is a list stands for one expectation about each. Empty after a mistake in an
/// item, of that item.
std::vector<ExpectationTable> expandExpectations(const Json& root, const std::string& pointer,
                                                 const ExpectationUser& user);

/// Checks the sets of a document, whether they are used or not: names, tables, keys.
void checkExpectationSets(
    const Json& root,
    const std::function<void(const std::string& pointer, const Mistake& mistake)>& complain);

}  // namespace muster

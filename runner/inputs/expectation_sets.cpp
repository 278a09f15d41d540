// SPDX-License-Identifier: Apache-2.0
// See expectation_sets.h.
#include "runner/inputs/expectation_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runner/core/text.h"
#include "runner/core/toml/toml_document.h"
#include "runner/metrics/expectation_reader.h"

namespace muster {
namespace {

constexpr const char* kSets = "expectations";
/// Of the tables of a list, which are copied twice: as many as it may have, with four of the longest texts.
constexpr size_t kMostMebibytes = 32;

std::string shown(const Json& value) {
  return printable(dumpJson(value), 60);
}

std::vector<std::string> namesOf(const Json& sets) {
  std::vector<std::string> names;
  for (const auto& item : sets.items()) names.push_back(item.key());
  return names;
}

/// The tables of one set with their pointers: it is one table, or a list of them.
std::vector<std::pair<const Json*, std::string>> tablesOf(const Json& set, const std::string& pointer) {
  if (!set.is_array()) return {{&set, pointer}};
  std::vector<std::pair<const Json*, std::string>> tables;
  for (size_t i = 0; i < set.size(); ++i) tables.emplace_back(&set[i], pointerTo(pointer, std::to_string(i)));
  return tables;
}

class Expander {
 public:
  Expander(const Json& root, const ExpectationUser& user) : user_(user) {
    static const Json kNone = Json::object();
    const auto found = root.find(kSets);
    sets_ = found != root.end() && found->is_object() ? &*found : &kNone;
  }

  /// What one item of a list asks for; nothing after a mistake in it.
  std::vector<ExpectationTable> expandItem(const Json& item, const std::string& pointer, size_t number) {
    item_ = pointer;
    failed_ = false;
    std::vector<ExpectationTable> all = byMetric(expand(item, pointer));
    if (!failed_ && (made_ += all.size()) > kMostExpectations) tooMany();
    if (failed_) return {};
    for (ExpectationTable& one : all) {
      one.pointer = pointer;
      one.number = number;
    }
    return all;
  }

 private:
  void fail(const std::string& pointer, const Mistake& mistake) {
    failed_ = true;
    user_.complain(pointer, mistake);
  }

  /// False, and told once, where there are more than a list may ask for.
  bool spend() {
    if (left_ > 0) {
      --left_;
      return true;
    }
    tooMany();
    return false;
  }

  /// Each use copies: false, and told, of a text that its reader refuses, and where the tables of this list
  /// come to more bytes than it may take.
  bool mayCopy(const std::string& key, const Json& value, const std::string& place) {
    if (value.is_string() && key != "predicate" &&
        value.get_ref<const std::string&>().size() > kMostExpectationText)
      fail(place, fmt::format("`{}` is longer than {} bytes", printable(key, 80), kMostExpectationText));
    else if ((copied_ += place.size() + dumpJson(value).size()) > kMostMebibytes << 20)
      fail(place,
           fmt::format("with it the expectations of this list take more than {} MiB; shorten its sets, or "
                       "use them less often",
                       kMostMebibytes));
    return !failed_;
  }

  void tooMany() {
    if (!std::exchange(spent_, true))
      fail(item_, fmt::format("found more than {} expectations; expected at most {}", kMostExpectations,
                              kMostExpectations));
    failed_ = true;
  }

  std::vector<ExpectationTable> expand(const Json& item, const std::string& pointer) {
    if (item.is_string()) return uses(item.get<std::string>(), pointer);
    if (!item.is_object()) {
      fail(pointer, Mistake::value(shown(item), fmt::format("a table, or the name of a set of [{}]", kSets)));
      return {};
    }
    const auto set = item.find("set");
    if (set == item.end()) {
      if (!spend()) return {};
      return {overlaid({}, item, pointer)};
    }
    if (!set->is_string()) {
      fail(pointerTo(pointer, "set"),
           Mistake::value(shown(*set), fmt::format("the name of a set of [{}]", kSets)).within("set: "));
      return {};
    }
    std::vector<ExpectationTable> all = uses(set->get<std::string>(), pointerTo(pointer, "set"));
    for (ExpectationTable& one : all) one = overlaid(std::move(one), item, pointer);
    return all;
  }

  /// The tables of the set `name`, which stands at `pointer`.
  std::vector<ExpectationTable> uses(const std::string& name, const std::string& pointer) {
    if (!spend()) return {};  // an empty one, too: sets that use sets double what is read
    const auto set = sets_->find(name);
    if (set == sets_->end()) {
      const std::vector<std::string> known = namesOf(*sets_);
      Mistake mistake =
          Mistake::name(fmt::format("no set \"{}\" among [{}]", printable(name, 80), kSets), name, known);
      if (mistake.suggestion.empty())
        mistake = mistake.then(known.empty() ? "; there is none"
                                             : "; there are " + printable(join(known, ", "), 300));
      fail(pointer, mistake);
      return {};
    }
    const bool again = std::find(open_.begin(), open_.end(), name) != open_.end();
    open_.push_back(name);
    std::vector<ExpectationTable> all;
    if (again) {
      fail(pointer, fmt::format("the set \"{}\" uses itself: {}", printable(name, 80), join(open_, " -> ")));
    } else {
      for (const auto& [table, at] : tablesOf(*set, pointerTo(std::string("/") + kSets, name))) {
        if (failed_) break;
        for (ExpectationTable& one : expand(*table, at)) all.push_back(std::move(one));
      }
    }
    open_.pop_back();
    return all;
  }

  /// `own` over what a set gave; `set` itself is used up.
  ExpectationTable overlaid(ExpectationTable below, const Json& own, const std::string& pointer) {
    for (const auto& [key, value] : own.items()) {
      if (key == "set") continue;
      const std::string place = pointerTo(pointer, key);
      if (failed_ || !mayCopy(key, value, place)) return {};
      below.table[key] = value;
      below.places[key] = place;
    }
    return below;
  }

  /// One table for each metric of a list; of a set's metrics those that its user measures.
  std::vector<ExpectationTable> byMetric(std::vector<ExpectationTable> all) {
    std::vector<ExpectationTable> kept;
    std::vector<std::string> left;  // metrics of sets that the user does not measure
    for (ExpectationTable& one : all) {
      const auto metric = one.table.find("metric");
      if (metric == one.table.end() || (!metric->is_array() && !ofSet(one))) {
        kept.push_back(std::move(one));
        continue;
      }
      const bool isList = metric->is_array();
      const Json list = isList ? std::exchange(*metric, Json()) : Json::array({*metric});
      const std::string at = one.places["metric"];
      if (list.empty()) fail(at, "metric: found an empty list; expected at least one metric");
      std::set<std::string> seen;
      for (size_t i = 0; i < list.size() && !failed_; ++i) {
        const std::string place = isList ? pointerTo(at, std::to_string(i)) : at;
        const std::string name = list[i].is_string() ? list[i].get<std::string>() : "";
        if (!name.empty() && !seen.insert(name).second)
          fail(place,
               fmt::format("metric: \"{}\" stands twice in this list; once is enough", printable(name, 80)));
        if (ofSet(one) && user_.measures && !name.empty() && !user_.measures(name)) {
          left.push_back(name);
          continue;
        }
        if (!spend() || !mayCopy("metric", one.table, place)) return {};
        kept.push_back(one);
        kept.back().table["metric"] = list[i];
        kept.back().places["metric"] = place;
      }
    }
    if (kept.empty() && !failed_ && !left.empty())
      fail(item_, fmt::format("no metric of this set is measured by {}; the set is about {}", user_.name,
                              printable(join(left, ", "), 300)));
    return kept;
  }

  static bool ofSet(const ExpectationTable& one) {
    const auto place = one.places.find("metric");
    return place != one.places.end() && place->second.starts_with(std::string("/") + kSets + "/");
  }

  const ExpectationUser& user_;
  const Json* sets_ = nullptr;
  std::vector<std::string> open_;  ///< sets that are being read
  std::string item_;
  size_t made_ = 0;
  size_t copied_ = 0;                    ///< bytes
  size_t left_ = 3 * kMostExpectations;  ///< uses of sets, their tables, then one for each metric
  bool spent_ = false;
  bool failed_ = false;
};

}  // namespace

std::string ExpectationTable::placeOf(const std::string& key) const {
  const size_t dot = key.find('.');
  const auto place = places.find(key.substr(0, dot));
  if (place == places.end()) return key.empty() ? pointer : pointerTo(pointer, key.substr(0, dot));
  return dot == std::string::npos ? place->second : pointerTo(place->second, key.substr(dot + 1));
}

std::string ExpectationTable::limitPlace() const {
  for (const std::string& key : expectationChecks())
    if (const auto place = places.find(key); place != places.end())
      return place->second.substr(0, place->second.rfind('/'));
  return pointer;
}

std::vector<ExpectationTable> expandExpectations(const Json& root, const std::string& pointer,
                                                 const ExpectationUser& user) {
  std::vector<ExpectationTable> all;
  const Json& list = root.at(Json::json_pointer(pointer));
  Expander expander(root, user);
  for (size_t i = 0; i < list.size(); ++i)
    for (ExpectationTable& one : expander.expandItem(list[i], pointerTo(pointer, std::to_string(i)), i + 1))
      all.push_back(std::move(one));
  return all;
}

void checkExpectationSets(
    const Json& root,
    const std::function<void(const std::string& pointer, const Mistake& mistake)>& complain) {
  const auto sets = root.find(kSets);
  if (sets == root.end()) return;
  const std::string top = std::string("/") + kSets;
  if (!sets->is_object())
    return complain(
        top, fmt::format("{}: found {}; expected a table of sets: [{}.NAME]", kSets, shown(*sets), kSets));
  std::vector<std::string> keys = expectationKeys();
  keys.emplace_back("set");
  for (const auto& [name, set] : sets->items()) {
    const std::string at = pointerTo(top, name);
    if (!isPlainName(name))
      complain(at,
               fmt::format(
                   "{}: found \"{}\"; expected a name of letters, digits, '_', '-' and '.', at most 64 long",
                   kSets, printable(name, 80)));
    if (set.is_array() && set.empty())
      complain(at, fmt::format("{}.{}: found an empty list; expected at least one table", kSets,
                               printable(name, 80)));
    for (const auto& [table, pointer] : tablesOf(set, at)) {
      if (!table->is_object()) {
        complain(pointer,
                 fmt::format("{}.{}: found {}; expected a table", kSets, printable(name, 80), shown(*table)));
        continue;
      }
      for (const auto& [key, value] : table->items())
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
          complain(pointerTo(pointer, key),
                   Mistake::name(fmt::format("unknown key \"{}\" in an expectation", printable(key, 80)), key,
                                 keys));
    }
  }
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Strict reading of TOML tables.
#include "runner/core/toml/toml_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "runner/core/mistake.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

const Json kEmptyTable = Json::object();

std::string shown(const Json& value) {
  return printable(dumpJson(value), 60);
}

std::string rangeText(Range range, const std::string& unit) {
  auto number = [&](double value) {
    return unit.empty() ? fmt::format("{}", value) : formatQuantity(value, unit);
  };
  if (std::isinf(range.max)) return "at least " + number(range.min);
  if (std::isinf(range.min)) return "at most " + number(range.max);
  return number(range.min) + " to " + number(range.max);
}

Mistake tableMistake(const Json& found) {
  Mistake mistake("expected a table, found " + shown(found));
  mistake.found = shown(found);
  mistake.required = "a table";
  return mistake;
}

Mistake versionMistake(const char* whose, int version) {
  Mistake mistake(fmt::format("this Muster reads {} of schema 1, found {}", whose, version));
  mistake.found = std::to_string(version);
  mistake.required = "1";
  return mistake;
}

/// "`key` must be REQUIRED, found VALUE"
Mistake mustBe(const std::string& key, const std::string& required, const Json& value) {
  Mistake mistake(fmt::format("`{}` must be {}, found {}", key, required, shown(value)));
  mistake.found = shown(value);
  mistake.required = required;
  return mistake;
}

}  // namespace

void Complaints::add(const std::string& pointer, Mistake mistake) {
  found_.push_back({document_.fileAt(pointer), document_.position(pointer), std::move(mistake)});
}

std::vector<Complaint> Complaints::sorted() const {
  std::vector<Complaint> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&own = document_.file()](const Complaint& a, const Complaint& b) {
                     const bool aIncluded = a.file != own, bIncluded = b.file != own;
                     return std::tie(aIncluded, a.file, a.at.line, a.at.column) <
                            std::tie(bIncluded, b.file, b.at.line, b.at.column);
                   });
  return sorted;
}

Status Complaints::status() const {
  if (found_.empty()) return {};
  std::vector<std::string> lines;
  for (const Complaint& c : sorted())
    lines.push_back(fmt::format("{}:{}:{}: {}", c.file, c.at.line, c.at.column, c.mistake.message));
  return Error{ErrorCode::kUsage, join(lines, "\n"), ""};
}

TomlTable::TomlTable(const TomlDocument& document, std::string pointer, Complaints& complaints,
                     TableSchema* schema)
    : document_(document),
      pointer_(std::move(pointer)),
      complaints_(complaints),
      json_(&kEmptyTable),
      schema_(schema) {
  if (describing()) return;
  const Json::json_pointer at(pointer_);
  if (!document.root().contains(at)) return;
  const Json& found = document.root().at(at);
  if (found.is_object())
    json_ = &found;
  else
    complaints_.add(pointer_, tableMistake(found));
}

void TomlTable::complain(const std::string& key, Mistake mistake) {
  complaints_.add(key.empty() ? pointer_ : pointerTo(pointer_, key), std::move(mistake));
}

void TomlTable::describe(const char* key, const Json& value) {
  if (describing()) schema_->add(key, value);
}

void TomlTable::describeRule(const Json& rule) {
  if (describing()) schema_->addRule(rule);
}

const Json* TomlTable::raw(const char* key) {
  known_.insert(key);
  describe(key, true);
  auto found = json_->find(key);
  return found == json_->end() ? nullptr : &*found;
}

bool TomlTable::has(const char* key) {
  return raw(key) != nullptr || describing();
}

void TomlTable::schemaVersion(const char* whose) {
  int version = 0;
  require("schema");
  if (integer("schema", {}, version) && version != 1) complain("schema", versionMistake(whose, version));
  describe("schema", {{"const", 1}});
}

void TomlTable::require(const char* key) {
  if (describing()) schema_->require(key);
  requireHere(key);
}

void TomlTable::requireHere(const char* key) {
  if (!has(key)) complain("", fmt::format("`{}` is missing", key));
}

bool TomlTable::text(const char* key, std::string& out) {
  if (describing()) describe(key, schema::text());
  const Json* value = raw(key);
  if (value == nullptr) return false;
  if (!value->is_string() || trim(value->get<std::string>()).empty()) {
    complain(key, mustBe(key, "a text that is not empty", *value));
    return false;
  }
  out = value->get<std::string>();
  return true;
}

bool TomlTable::choice(const char* key, const std::vector<std::string>& allowed, std::string& out) {
  std::string found;
  if (!text(key, found)) {
    if (describing()) describe(key, schema::choice(allowed));
    return false;
  }
  if (contains(allowed, found)) {
    out = found;
    return true;
  }
  complain(key, Mistake::choice(key, found, allowed));
  return false;
}

bool TomlTable::variants(const char* key, const std::vector<std::string>& kinds,
                         const std::function<void(const std::string& kind)>& read) {
  std::string kind;
  if (!describing()) {
    if (!choice(key, kinds, kind)) return false;
    read(kind);
    return true;
  }
  choice(key, kinds, kind);
  TableSchema* const own = schema_;
  for (const std::string& each : kinds) {
    schema_ = &own->variant(key, each);
    read(each);
  }
  schema_ = own;
  return true;
}

bool TomlTable::texts(const char* key, std::vector<std::string>& out) {
  if (describing()) describe(key, schema::list({{"type", "string"}, {"minLength", 1}}));
  const Json* value = raw(key);
  if (value == nullptr) return false;
  auto isGood = [](const Json& item) { return item.is_string() && !item.get<std::string>().empty(); };
  if (!value->is_array() || value->empty() || !std::all_of(value->begin(), value->end(), isGood)) {
    complain(key, mustBe(key, "a list of texts", *value));
    return false;
  }
  out = value->get<std::vector<std::string>>();
  return true;
}

bool TomlTable::flag(const char* key, bool& out) {
  if (describing()) describe(key, schema::flag());
  const Json* value = raw(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) {
    complain(key, mustBe(key, "true or false", *value));
    return false;
  }
  out = value->get<bool>();
  return true;
}

bool TomlTable::integer(const char* key, Range range, int& out) {
  range.min = std::max(range.min, static_cast<double>(std::numeric_limits<int>::min()));
  range.max = std::min(range.max, static_cast<double>(std::numeric_limits<int>::max()));
  if (describing()) describe(key, schema::whole(range));
  const Json* value = raw(key);
  if (value == nullptr) return false;
  double number = value->is_number_integer() ? value->get<double>() : std::nan("");
  if (!(number >= range.min && number <= range.max)) {
    complain(key, mustBe(key, "a whole number, " + rangeText(range, ""), *value));
    return false;
  }
  out = static_cast<int>(number);
  return true;
}

bool TomlTable::quantity(const char* key, const std::string& unit, Range range, double& out) {
  if (describing()) describe(key, schema::quantity(unit, range));
  const Json* value = raw(key);
  if (value == nullptr) return false;
  double number = value->is_number() ? value->get<double>() : std::nan("");
  if (value->is_string()) {
    auto parsed = parseAs(value->get<std::string>(), unit);
    if (!parsed.ok()) {
      Mistake mistake(fmt::format("`{}`: {}", key, parsed.error().message));
      mistake.found = shown(*value);
      mistake.required = rangeText(range, unit);
      complain(key, mistake);
      return false;
    }
    number = *parsed;
  }
  if (!std::isfinite(number) || number < range.min || number > range.max) {
    complain(key, mustBe(key, rangeText(range, unit), *value));
    return false;
  }
  out = number;
  return true;
}

TomlTable TomlTable::table(const char* key) {
  raw(key);
  return {document_, pointerTo(pointer_, key), complaints_, describing() ? &schema_->table(key) : nullptr};
}

std::vector<TomlTable> TomlTable::tables(const char* key) {
  const Json* list = raw(key);
  std::vector<TomlTable> out;
  if (describing()) out.emplace_back(document_, pointerTo(pointer_, key), complaints_, &schema_->item(key));
  if (list == nullptr) return out;
  if (!list->is_array()) {
    complain(key, mustBe(key, fmt::format("a list of tables, written [[{}]]", key), *list));
    return out;
  }
  std::string here = pointerTo(pointer_, key);
  for (size_t i = 0; i < list->size(); ++i)
    out.emplace_back(document_, pointerTo(here, std::to_string(i)), complaints_);
  return out;
}

std::vector<std::string> TomlTable::keys(const std::vector<std::pair<std::string, Json>>& patterns) {
  std::vector<std::string> out;
  if (describing())
    for (const auto& [pattern, value] : patterns) schema_->addPattern(pattern, value);
  for (const auto& [key, value] : json_->items()) out.push_back(key);
  known_.insert(out.begin(), out.end());
  return out;
}

void TomlTable::finish() {
  if (describing()) schema_->close();
  std::vector<std::string> known(known_.begin(), known_.end());
  for (const auto& [key, value] : json_->items()) {
    if (known_.count(key) == 0)
      complain(key, Mistake::name(fmt::format("unknown key \"{}\"", printable(key)), key, known));
  }
}

Json describeTable(const std::function<void(TomlTable& table)>& read) {
  const TomlDocument none;
  Complaints ignored(none);
  TableSchema schema;
  TomlTable table(none, "", ignored, &schema);
  read(table);
  return schema.json();
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Reads typed values of a plan document and reports errors with their place.
#include "runner/plan/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runner/core/text.h"

namespace muster {

SourcePosition PlanDocument::at(const std::string& pointer) const {
  for (std::string here = pointer;; here.resize(here.rfind('/'))) {
    if (const auto found = places.find(here); found != places.end()) return found->second;
    if (here.empty()) return {file, 1, lua ? 0 : 1};
  }
}

const Json* valueAt(const Json& root, const std::string& pointer) {
  // The library's own lookup throws on an odd pointer; ours come from pointerTo() alone.
  const Json::json_pointer where(pointer);
  return root.contains(where) ? &root.at(where) : nullptr;
}

std::string shown(const Json& value) {
  if (value.is_object()) return "a table";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return fmt::format("{}", value.get<double>());
  return printable(dumpJson(value), 80);
}

TableReader::TableReader(const PlanDocument& document, std::string pointer, std::string what,
                         Diagnostics& diagnostics)
    : document_(&document), pointer_(std::move(pointer)), what_(std::move(what)), diagnostics_(&diagnostics) {
  const Json* value = valueAt(document_->root, pointer_);
  if (value != nullptr && value->is_object())
    table_ = value;
  else
    fail(Mistake::value(value == nullptr ? "nothing" : shown(*value), "a table"));
}

TableReader::TableReader(TableSchema& schema) : schema_(&schema) {}

void TableReader::describe(const char* key, const Json& value) {
  if (schema_ != nullptr) schema_->add(key, value);
}

const Json* TableReader::find(const char* key) const {
  if (table_ == nullptr) return nullptr;
  const auto found = table_->find(key);
  return found == table_->end() ? nullptr : &*found;
}

void TableReader::refuseUnknown(const std::vector<Key>& known,
                                const std::function<std::string(const std::string&)>& hint) {
  if (schema_ != nullptr) {
    for (const Key& key : known) schema_->explain(key.name, key.summary);
    schema_->close();
  }
  if (table_ == nullptr) return;
  std::vector<std::string> names;
  for (const Key& key : known) names.push_back(key.name);
  for (const auto& item : table_->items()) {
    if (diagnostics_->full()) return;
    const std::string& key = item.key();
    if (contains(names, key)) continue;
    const std::string sentence = fmt::format("{}unknown key \"{}\"", prefix(), printable(key, 80));
    const std::string help = hint ? hint(key) : "";
    ok_ = false;
    if (help.empty())
      diagnostics_->error(document_->at(this->pointer(key)), Mistake::oneOf(sentence, key, names));
    else
      diagnostics_->error(document_->at(this->pointer(key)), sentence + help);
  }
}

void TableReader::text(const char* key, std::string& out) {
  describe(key, {{"type", "string"}});
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_string()) return fail(key, Mistake::value(shown(*value), "a text"));
  out = value->get<std::string>();
}

void TableReader::flag(const char* key, bool& out) {
  describe(key, schema::flag());
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(key, Mistake::value(shown(*value), "true or false"));
  out = value->get<bool>();
}

void TableReader::whole(const char* key, int& out, int least, int most) {
  describe(key, schema::whole({static_cast<double>(least), static_cast<double>(most)}));
  const Json* value = find(key);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : least - 1.0;
  const bool fits = number >= least && number <= most && number == static_cast<int>(number);
  if (!fits)
    return fail(key, Mistake::value(shown(*value), fmt::format("a whole number from {} to {}", least, most)));
  out = static_cast<int>(number);
}

bool TableReader::choice(const char* key, std::string& out, const std::vector<std::string>& known) {
  describe(key, schema::choice(known));
  const Json* value = find(key);
  if (value == nullptr) return false;
  const std::string found = value->is_string() ? value->get<std::string>() : "";
  if (!found.empty() && std::find(known.begin(), known.end(), found) != known.end()) {
    out = found;
    return true;
  }
  fail(key,
       Mistake::value(shown(*value), "one of " + join(known, ", "), nearestName(found, known).value_or("")));
  return false;
}

bool TableReader::name(const char* key, std::string& out) {
  describe(key, schema::plainName());
  if (schema_ != nullptr) schema_->require(key);
  const Json* value = find(key);
  if (value == nullptr) {
    missing(key, "a name");
    return false;
  }
  const std::string found = value->is_string() ? value->get<std::string>() : "";
  out = found;
  if (isPlainName(found)) return true;
  fail(key, Mistake::value(shown(*value), "a name of letters, digits, '_', '-' and '.', at most 64 long"));
  return false;
}

const Json* TableReader::list(const char* key, const std::string& wanted) {
  static const Json kEmpty = Json::array();
  const Json* value = find(key);
  if (value == nullptr || value->is_array()) return value;
  if (document_->lua && value->is_object() && value->empty()) return &kEmpty;
  fail(key, Mistake::value(shown(*value), wanted));
  return nullptr;
}

void TableReader::fail(std::string_view key, const Mistake& mistake) {
  if (schema_ != nullptr) return;
  ok_ = false;
  diagnostics_->error(document_->at(pointer(key)),
                      mistake.within(fmt::format("{}{}: ", prefix(), printable(key, 80))));
}

void TableReader::fail(const Mistake& mistake) {
  if (schema_ != nullptr) return;
  ok_ = false;
  diagnostics_->error(document_->at(pointer_), mistake.within(prefix()));
}

void TableReader::missing(const char* key, const std::string& wanted) {
  Mistake mistake(fmt::format("{} is missing; expected {}", key, wanted));
  mistake.required = wanted;
  fail(mistake);
}

}  // namespace muster

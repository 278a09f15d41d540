// SPDX-License-Identifier: Apache-2.0
// See json.h.
#include "runner/core/json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "runner/core/text.h"

namespace muster {
namespace {

Error badJson(const std::string& problem) {
  return {ErrorCode::kProtocol, "not valid JSON: " + problem, ""};
}

/// Deepest nesting of brackets outside strings. Checked before parsing, so hostile depth costs no memory.
int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      if (c == '\\') ++i;
      if (c == '"') inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

/// The library's message without its "[json.exception...]" head, printable.
std::string reason(const char* what) {
  std::string_view text(what);
  const size_t head = text.find("] ");
  if (text.starts_with("[json.exception") && head != std::string_view::npos) text.remove_prefix(head + 2);
  return printable(text);
}

std::string found(const Json& value) {
  const std::string text = dumpJson(value);
  return value.is_primitive() ? printable(text, 80) : std::string(value.is_array() ? "a list" : "an object");
}

}  // namespace

Result<Json> parseJson(std::string_view text, int maxDepth) {
  // The parser takes a NUL for the end of its input and would not see what follows.
  if (text.find('\0') != std::string_view::npos) return badJson("it contains a NUL byte");
  if (nesting(text) > maxDepth) return badJson(fmt::format("nested more than {} levels deep", maxDepth));
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const std::exception& e) {
    return badJson(reason(e.what()));
  }
}

std::string dumpJson(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json numberToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

bool numberFromJson(const Json& json, double& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) {
    value = json.get<double>();
  } else if (json.is_null() || json == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (json == "inf" || json == "-inf") {
    value = json == "inf" ? kInfinity : -kInfinity;
  } else {
    return false;
  }
  return true;
}

JsonReader::JsonReader(const Json& object, std::string path) : json_(object), path_(std::move(path)) {
  if (!json_.is_object())
    fail(Error{ErrorCode::kProtocol, "found " + found(json_) + "; wanted an object", path_});
}

bool JsonReader::has(const char* key) const {
  return json_.is_object() && json_.contains(key);
}

void JsonReader::fail(Error error) {
  if (status_.ok()) status_ = std::move(error);
}

void JsonReader::fail(const char* key, const std::string& problem) {
  fail(Error{ErrorCode::kProtocol, problem, path_ + "." + key});
}

const Json* JsonReader::find(const char* key, const char* wanted) {
  if (!ok()) return nullptr;
  const auto at = json_.find(key);
  if (at != json_.end()) return &*at;
  fail(key, fmt::format("is missing; wanted {}", wanted));
  return nullptr;
}

void JsonReader::read(const char* key, std::string& out) {
  const Json* value = find(key, "a text");
  if (value == nullptr) return;
  if (!value->is_string()) return fail(key, "found " + found(*value) + "; wanted a text");
  out = value->get<std::string>();
}

void JsonReader::read(const char* key, double& out) {
  const Json* value = find(key, "a number");
  if (value == nullptr) return;
  double number = 0;
  if (!numberFromJson(*value, number)) return fail(key, "found " + found(*value) + "; wanted a number");
  out = number;
}

void JsonReader::read(const char* key, bool& out) {
  const Json* value = find(key, "true or false");
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(key, "found " + found(*value) + "; wanted true or false");
  out = value->get<bool>();
}

void JsonReader::read(const char* key, int64_t& out) {
  const Json* value = find(key, "a whole number");
  if (value == nullptr) return;
  const bool tooLarge = value->is_number_unsigned() &&
                        value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value->is_number_integer() || tooLarge)
    return fail(key, "found " + found(*value) + "; wanted a whole number of 64 bits");
  out = value->get<int64_t>();
}

void JsonReader::read(const char* key, uint64_t& out) {
  const Json* value = find(key, "a whole number");
  if (value == nullptr) return;
  const bool negative =
      value->is_number_integer() && !value->is_number_unsigned() && value->get<int64_t>() < 0;
  if (!value->is_number_integer() || negative)
    return fail(key, "found " + found(*value) + "; wanted a whole number from 0 up");
  out = value->get<uint64_t>();
}

void JsonReader::read(const char* key, int& out) {
  int64_t wide = 0;
  read(key, wide);
  if (!ok()) return;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    return fail(key, fmt::format("found {}; wanted a whole number of 32 bits", wide));
  out = static_cast<int>(wide);
}

void JsonReader::read(const char* key, std::vector<double>& out) {
  const Json* list = array(key);
  if (list == nullptr) return;
  std::vector<double> numbers(list->size());
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!numberFromJson((*list)[i], numbers[i]))
      return fail(key, fmt::format("item {}: found {}; wanted a number", i, found((*list)[i])));
  out = std::move(numbers);
}

void JsonReader::read(const char* key, std::vector<std::string>& out) {
  const Json* list = array(key);
  if (list == nullptr) return;
  std::vector<std::string> texts;
  for (const auto& item : *list) {
    if (!item.is_string())
      return fail(key, fmt::format("item {}: found {}; wanted a text", texts.size(), found(item)));
    texts.push_back(item.get<std::string>());
  }
  out = std::move(texts);
}

void JsonReader::read(const char* key, std::map<std::string, std::string>& out) {
  const Json* table = object(key);
  if (table == nullptr) return;
  std::map<std::string, std::string> texts;
  for (const auto& [name, item] : table->items()) {
    if (!item.is_string())
      return fail(key, fmt::format("\"{}\": found {}; wanted a text", printable(name, 80), found(item)));
    texts[name] = item.get<std::string>();
  }
  out = std::move(texts);
}

const Json* JsonReader::object(const char* key) {
  const Json* value = find(key, "an object");
  if (value == nullptr || value->is_object()) return value;
  fail(key, "found " + found(*value) + "; wanted an object");
  return nullptr;
}

const Json* JsonReader::array(const char* key) {
  const Json* value = find(key, "a list");
  if (value == nullptr || value->is_array()) return value;
  fail(key, "found " + found(*value) + "; wanted a list");
  return nullptr;
}

}  // namespace muster

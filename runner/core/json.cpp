// SPDX-License-Identifier: Apache-2.0
// Parses and writes JSON, and reads typed fields.
#include "runner/core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "runner/core/text.h"

namespace muster {
namespace {

Error badJson(const std::string& problem) {
  return {ErrorCode::kProtocol, "not valid JSON: " + problem, ""};
}

/// The library's message without its "[json.exception...]" head, printable.
std::string reason(const char* what) {
  std::string_view text(what);
  const size_t head = text.find("] ");
  if (text.starts_with("[json.exception") && head != std::string_view::npos) text.remove_prefix(head + 2);
  return printable(text);
}

constexpr size_t kMostKeys = 20'000;  ///< of one object; looking one up goes through all
/// Values of a document. Its text says little about the memory that it takes: "{}," is 3 bytes and 80 parsed.
constexpr size_t kMostValues = 4'000'000;

/// Builds the document value by value, and gives up where it is too deep, too wide or says something twice:
/// the library's own parser takes the last of two equal keys, other readers the first.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(size_t maxDepth) : maxDepth_(maxDepth) {}

  Result<Json> take() {
    if (error_) return std::move(*error_);
    return std::move(root_);
  }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("it holds binary data"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override {
    open_.back().value.get_ref<Json::array_t&>().shrink_to_fit();
    return close();
  }
  bool key(string_t& name) override {
    Open& object = open_.back();
    const auto& members = object.value.get_ref<const Json::object_t&>();
    if (members.size() >= kMostKeys) return refuse(fmt::format("an object has more than {} keys", kMostKeys));
    if (isKnown(object, members, name))
      return refuse(fmt::format("the key \"{}\" is defined twice in one object", printable(name, 80)));
    object.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    return refuse(reason(error.what()));
  }

 private:
  /// An object or list that has not ended.
  struct Open {
    Json value;
    std::string key = {};             ///< of the member that comes next
    std::set<std::string> keys = {};  ///< of an object with many
  };

  bool refuse(const std::string& problem) {
    if (!error_) error_ = badJson(problem);
    return false;
  }

  bool open(Json value) {
    if (open_.size() >= maxDepth_) return refuse(fmt::format("nested more than {} levels deep", maxDepth_));
    open_.push_back({std::move(value)});
    return true;
  }

  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  bool add(Json value) {
    if (++values_ > kMostValues) return refuse(fmt::format("it holds more than {} values", kMostValues));
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Open& parent = open_.back();
    if (parent.value.is_array())
      parent.value.get_ref<Json::array_t&>().push_back(std::move(value));
    else
      parent.value.get_ref<Json::object_t&>().emplace_back(std::move(parent.key), std::move(value));
    return true;
  }

  static bool isKnown(Open& object, const Json::object_t& members, const std::string& name) {
    constexpr size_t kFew = 32;
    if (members.size() < kFew)
      return std::any_of(members.begin(), members.end(), [&](const auto& m) { return m.first == name; });
    if (object.keys.empty())
      for (const auto& member : members) object.keys.insert(member.first);
    return !object.keys.insert(name).second;
  }

  size_t maxDepth_;
  size_t values_ = 0;
  Json root_;
  std::vector<Open> open_;
  std::optional<Error> error_;
};

std::string found(const Json& value) {
  const std::string text = dumpJson(value);
  return value.is_primitive() ? printable(text, 80) : std::string(value.is_array() ? "a list" : "an object");
}

}  // namespace

Result<Json> parseJson(std::string_view text, int maxDepth) {
  // The parser takes a NUL for the end of its input and would not see what follows.
  if (text.find('\0') != std::string_view::npos) return badJson("it contains a NUL byte");
  Builder builder(static_cast<size_t>(std::max(maxDepth, 0)));
  try {
    Json::sax_parse(text.begin(), text.end(), &builder);
  } catch (const std::exception& e) {
    return badJson(reason(e.what()));
  }
  return builder.take();
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
    fail(Error{ErrorCode::kProtocol, "found " + found(json_) + "; expected an object", path_});
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
  fail(key, fmt::format("is missing; expected {}", wanted));
  return nullptr;
}

void JsonReader::read(const char* key, std::string& out) {
  const Json* value = find(key, "a text");
  if (value == nullptr) return;
  if (!value->is_string()) return fail(key, "found " + found(*value) + "; expected a text");
  out = value->get<std::string>();
}

void JsonReader::read(const char* key, double& out) {
  const Json* value = find(key, "a number");
  if (value == nullptr) return;
  double number = 0;
  if (!numberFromJson(*value, number)) return fail(key, "found " + found(*value) + "; expected a number");
  out = number;
}

void JsonReader::read(const char* key, bool& out) {
  const Json* value = find(key, "true or false");
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(key, "found " + found(*value) + "; expected true or false");
  out = value->get<bool>();
}

void JsonReader::read(const char* key, int64_t& out) {
  const Json* value = find(key, "a whole number");
  if (value == nullptr) return;
  const bool tooLarge = value->is_number_unsigned() &&
                        value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value->is_number_integer() || tooLarge)
    return fail(key, "found " + found(*value) + "; expected a whole number of 64 bits");
  out = value->get<int64_t>();
}

void JsonReader::read(const char* key, uint64_t& out) {
  const Json* value = find(key, "a whole number");
  if (value == nullptr) return;
  const bool negative =
      value->is_number_integer() && !value->is_number_unsigned() && value->get<int64_t>() < 0;
  if (!value->is_number_integer() || negative)
    return fail(key, "found " + found(*value) + "; expected a whole number, 0 or more");
  out = value->get<uint64_t>();
}

void JsonReader::read(const char* key, int& out) {
  int64_t wide = 0;
  read(key, wide);
  if (!ok()) return;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    return fail(key, fmt::format("found {}; expected a whole number of 32 bits", wide));
  out = static_cast<int>(wide);
}

void JsonReader::read(const char* key, std::vector<double>& out) {
  const Json* list = array(key);
  if (list == nullptr) return;
  std::vector<double> numbers(list->size());
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!numberFromJson((*list)[i], numbers[i]))
      return fail(key, fmt::format("item {}: found {}; expected a number", i, found((*list)[i])));
  out = std::move(numbers);
}

void JsonReader::read(const char* key, std::vector<std::string>& out) {
  const Json* list = array(key);
  if (list == nullptr) return;
  std::vector<std::string> texts;
  for (const auto& item : *list) {
    if (!item.is_string())
      return fail(key, fmt::format("item {}: found {}; expected a text", texts.size(), found(item)));
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
      return fail(key, fmt::format("\"{}\": found {}; expected a text", printable(name, 80), found(item)));
    texts[name] = item.get<std::string>();
  }
  out = std::move(texts);
}

const Json* JsonReader::object(const char* key) {
  const Json* value = find(key, "an object");
  if (value == nullptr || value->is_object()) return value;
  fail(key, "found " + found(*value) + "; expected an object");
  return nullptr;
}

const Json* JsonReader::array(const char* key) {
  const Json* value = find(key, "a list");
  if (value == nullptr || value->is_array()) return value;
  fail(key, "found " + found(*value) + "; expected a list");
  return nullptr;
}

Json toJson(const Error& error) {
  return {{"code", static_cast<int>(error.code)}, {"message", error.message}, {"where", error.where}};
}

std::optional<Error> errorFromJson(const Json& json) {
  int code = 0;
  Error error;
  JsonReader reader(json, "error");
  reader.read("code", code);
  reader.read("message", error.message);
  reader.read("where", error.where);
  if (!reader.ok()) return std::nullopt;
  error.code = static_cast<ErrorCode>(code);
  return error;
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Typed fields of parsed JSON: the first one that is missing or of another type becomes the error.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "runner/core/names.h"
#include "runner/core/result.h"
#include "runner/core/text.h"

namespace muster::fleet {

namespace dom = simdjson::dom;

/// What stands in place of a list or object that cannot be read. One that simdjson default-constructs points
/// at no document: going through it is a crash.
template <typename T>
T nothing() {
  if constexpr (std::is_same_v<T, dom::array> || std::is_same_v<T, dom::object>) {
    static dom::parser parser;
    static const T kEmpty = parser.parse(std::is_same_v<T, dom::array> ? "[]" : "{}", 2).value();
    return kEmpty;
  } else {
    return T{};
  }
}

/// `key` == `name`, compiled to a comparison of words.
template <size_t N>
bool isKey(std::string_view key, const char (&name)[N]) {
  return key.size() == N - 1 && std::memcmp(key.data(), name, N - 1) == 0;
}

/// Names of metrics, cases and the like: thousands of rows share one.
inline constexpr size_t kMostNameBytes = 1'000;

/// Collects the first failure of a record, so that a reader is a list of statements.
class Failures {
 public:
  /// What is read now: "run", "stages[3]"; stands before the key in errors.
  void at(std::string place) { place_ = std::move(place); }
  void fail(std::string_view key, const std::string& problem) {
    if (failure_) return;
    const std::string where =
        place_.empty() ? std::string(key) : place_ + (key.empty() ? "" : ".") + std::string(key);
    failure_ = Error{ErrorCode::kProtocol, printable(where, 120) + ": " + problem, ""};
  }
  [[nodiscard]] bool ok() const { return !failure_.has_value(); }
  [[nodiscard]] const Error& error() const { return *failure_; }
  void clear() {
    failure_.reset();
    place_.clear();
  }

 private:
  std::optional<Error> failure_;
  std::string place_;
};

/// A number, or one of the texts by which JSON names those that it lacks; nothing where it is neither.
inline std::optional<double> numberOf(const dom::element& element) {
  double value = 0;
  if (element.get_double().get(value) == simdjson::SUCCESS) return value;
  std::string_view text;
  if (element.get_string().get(text) != simdjson::SUCCESS) return std::nullopt;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

/// An object that says something twice says one thing to this reader and another to the next: a failure.
inline void requireUniqueKeys(const dom::object& object, Failures& failures) {
  constexpr size_t kMostKeys = 64;  // an object of the schema has at most thirty
  std::array<std::string_view, kMostKeys> keys;
  size_t count = 0;
  for (const auto& [key, value] : object) {
    if (count == kMostKeys) return failures.fail("", fmt::format("holds more than {} fields", kMostKeys));
    if (std::find(keys.begin(), keys.begin() + count, key) != keys.begin() + count)
      return failures.fail(key, "is defined twice in one object");
    keys[count++] = key;
  }
}

/// The fields of one object. A required one that is missing or of another type is a failure and gives an
/// empty value, which may be used like any other.
class Fields {
 public:
  Fields(const dom::object& object, Failures& failures) : object_(object), failures_(&failures) {
    requireUniqueKeys(object, failures);
  }

  [[nodiscard]] bool has(std::string_view key) const {
    return object_.at_key(key).error() == simdjson::SUCCESS;
  }

  std::string_view text(std::string_view key) { return get<std::string_view>(key, "a text"); }
  /// A value by one of its names.
  template <Named E>
  E named(std::string_view key) {
    const std::string_view name = text(key);
    const std::optional<E> value = fromName<E>(name);
    if (!value) failures_->fail(key, noneOf<E>(name));
    return value.value_or(E());
  }
  bool flag(std::string_view key) { return get<bool>(key, "true or false"); }
  dom::object object(std::string_view key) { return get<dom::object>(key, "an object"); }
  dom::array array(std::string_view key) { return get<dom::array>(key, "a list"); }

  /// A whole number of zero or more, below 2^31.
  int count(std::string_view key) {
    const auto value = get<int64_t>(key, "a whole number");
    if (value < 0 || value > std::numeric_limits<int>::max()) failures_->fail(key, "is out of range");
    return static_cast<int>(value);
  }
  /// Seconds since 1970 or a duration: finite, zero or more.
  double seconds(std::string_view key) {
    dom::element element;
    if (object_.at_key(key).get(element) != simdjson::SUCCESS) {
      failures_->fail(key, "is missing");
      return 0;
    }
    const std::optional<double> value = numberOf(element);
    if (!value || !std::isfinite(*value) || *value < 0)
      failures_->fail(key, "is not a number of zero or more");
    return value.value_or(0);
  }

 private:
  template <typename T>
  T get(std::string_view key, const char* wanted) {
    T value = nothing<T>();
    dom::element element;
    if (object_.at_key(key).get(element) != simdjson::SUCCESS)
      failures_->fail(key, "is missing");
    else if (element.get(value) != simdjson::SUCCESS)
      failures_->fail(key, fmt::format("must be {}", wanted));
    return value;
  }

  dom::object object_;
  Failures* failures_;
};

/// `text` cut at a border of UTF-8 and without control characters: what a record says ends up in reports.
inline std::string bounded(std::string_view text, size_t limit) {
  return printable(text, limit);
}

}  // namespace muster::fleet

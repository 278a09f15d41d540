// SPDX-License-Identifier: Apache-2.0
// The parameters of a test, each declared once: describe() and the reading of a case both follow from that.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster::sdk {

/// Bounds of a parameter, both included; an empty one does not bound: {0, 100}, {"1 B", "1 GiB"}, {1}, {}.
template <typename T>
struct Range {
  std::optional<T> min = {};
  std::optional<T> max = {};
};

using Names = std::vector<std::string>;

template <typename T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;
template <typename T>
concept QuantityField = std::same_as<T, double> || std::same_as<T, uint64_t>;

/// Goes through the rows of a struct of parameters, to describe them or to read a case into its fields. A row
/// is a call: name, field, default, range or choices, summary. The field's type is the parameter's; a unit
/// before the default makes it a quantity, which arrives in that unit.
///   void Params::declare(sdk::ParamTable& param) {
///     param("size", size, 2048, {1, 131072}, "rows and columns");
///     param("duration", duration, "s", "1m", {"0s", "1h"}, "how long to measure");
///   }
/// Rows that several tests share are a function that takes the table. The host has checked range and choice
/// of every value before run(); the table checks that each is there, of its type, and fits into its field.
class ParamTable {
 public:
  ParamTable() = default;
  explicit ParamTable(JsonReader& reader) : reader_(&reader) {}

  /// A whole number.
  template <WholeNumber T>
  void operator()(const char* name, T& field, WholeNumber auto standard, const Range<int64_t>& range,
                  const char* summary) {
    if (reader_ != nullptr) return reader_->read(name, field);
    addBounds(add(name, "int", standard, summary), range);
  }
  void operator()(const char* name, double& field, double standard, const Range<double>& range,
                  const char* summary) {
    if (reader_ != nullptr) return reader_->read(name, field);
    addBounds(add(name, "float", standard, summary), range);
  }
  void operator()(const char* name, bool& field, std::same_as<bool> auto standard, const char* summary) {
    if (reader_ != nullptr) return reader_->read(name, field);
    add(name, "bool", standard, summary);
  }
  void operator()(const char* name, std::string& field, const char* standard, const char* summary) {
    (*this)(name, field, standard, Names(), summary);
  }
  void operator()(const char* name, std::string& field, const char* standard, const Names& oneOf,
                  const char* summary) {
    if (reader_ != nullptr) return reader_->read(name, field);
    addChoices(add(name, "string", standard, summary), oneOf);
  }
  void operator()(const char* name, Names& field, const Names& standard, const char* summary) {
    (*this)(name, field, standard, Names(), summary);
  }
  void operator()(const char* name, Names& field, const Names& standard, const Names& oneOf,
                  const char* summary) {
    if (reader_ != nullptr) return reader_->read(name, field);
    Json& row = add(name, "list", standard, summary);
    row["items"] = "string";
    addChoices(row, oneOf);
  }

  /// A quantity. A field of whole numbers takes it without its fraction.
  template <QuantityField T>
  void operator()(const char* name, T& field, const char* unit, const char* standard,
                  const Range<const char*>& range, const char* summary) {
    if (reader_ != nullptr) return readQuantity(name, field);
    Json& row = add(name, "quantity", standard, summary);
    row["unit"] = unit;
    addBounds(row, range);
  }

  /// A text that `convert` makes the field's value or a Result of it: an enumerator, say.
  template <typename T, typename Convert>
  requires std::is_scalar_v<T>
  void operator()(const char* name, T& field, const char* standard, const Names& oneOf, Convert convert,
                  const char* summary) {
    std::string text;
    (*this)(name, text, standard, oneOf, summary);
    if (reading()) take(text, convert, field);
  }
  /// The same of each item of a list.
  template <typename T, typename Convert>
  void operator()(const char* name, std::vector<T>& field, const Names& standard, const Names& oneOf,
                  Convert convert, const char* summary) {
    Names texts;
    (*this)(name, texts, standard, oneOf, summary);
    field.clear();
    for (size_t i = 0; i < texts.size() && reading(); ++i) take(texts[i], convert, field.emplace_back());
  }

  /// What was declared: the JSON of `params` in describe().
  [[nodiscard]] std::string described() const { return dumpJson(rows_); }

 private:
  [[nodiscard]] bool reading() const { return reader_ != nullptr && reader_->ok(); }

  template <typename T, typename Convert>
  void take(const std::string& text, Convert convert, T& field) {
    Result<T> value = convert(text);
    if (!value.ok()) return reader_->fail(std::move(value).error());
    field = *std::move(value);
  }

  void readQuantity(const char* name, double& field) { reader_->read(name, field); }
  void readQuantity(const char* name, uint64_t& field) {
    constexpr double kTooLarge = 18446744073709551616.0;
    double value = 0;
    reader_->read(name, value);
    if (value >= 0 && value < kTooLarge)
      field = static_cast<uint64_t>(value);
    else
      reader_->fail(name, "found " + dumpJson(numberToJson(value)) + "; expected a number from 0 to 2^64");
  }

  Json& add(const char* name, const char* type, const auto& standard, const char* summary) {
    rows_.push_back({{"name", name}, {"type", type}, {"default", standard}, {"summary", summary}});
    return rows_.back();
  }
  static void addBounds(Json& row, const auto& range) {
    if (range.min) row["min"] = *range.min;
    if (range.max) row["max"] = *range.max;
  }
  static void addChoices(Json& row, const Names& oneOf) {
    if (!oneOf.empty()) row["one_of"] = oneOf;
  }

  JsonReader* reader_ = nullptr;  ///< of the case; null: the rows are described
  Json rows_ = Json::array();
};

/// The `params` of a test, from the struct that declares them.
template <typename Params>
std::string describeParams() {
  Params params;
  ParamTable table;
  params.declare(table);
  return table.described();
}

/// The parameters of a case. `Status Params::complete()`, where it exists, comes last: it computes what
/// follows from the fields, and says which do not fit together.
template <typename Params>
Result<Params> readParams(const Json& json) {
  Params params;
  JsonReader reader(json, "params");
  ParamTable table(reader);
  params.declare(table);
  MUSTER_CHECK_OK(reader.status());
  if constexpr (requires { params.complete(); }) MUSTER_CHECK_OK(params.complete());
  return params;
}

/// The text of describe(). Of each test: its JSON object as plugins/abi/README.md describes it, without
/// `params`, and these.
inline std::string describe(const std::vector<std::pair<std::string, std::string>>& tests) {
  std::string list;
  for (const auto& [test, params] : tests)
    list += (list.empty() ? "" : ",") + ("{\"params\":" + params) + "," + test.substr(1);
  return "{\"tests\":[" + list + "]}";
}

}  // namespace muster::sdk

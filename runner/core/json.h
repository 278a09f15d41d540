// SPDX-License-Identifier: Apache-2.0
// JSON with Results in place of exceptions: parsing hostile text, reading typed fields with a path in the
// error.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/names.h"
#include "runner/core/result.h"

namespace muster {

/// Keys keep the order in which they were written, so records read as they were meant.
using Json = nlohmann::ordered_json;

/// Parses `text`; refuses more than `maxDepth` nested levels (hostile input), invalid UTF-8, trailing bytes.
Result<Json> parseJson(std::string_view text, int maxDepth = 64);

/// `value` as text; invalid UTF-8 inside strings is replaced, never thrown. indent < 0: one line.
std::string dumpJson(const Json& value, int indent = -1);

/// A number as JSON; JSON knows no NaN and no infinity, so these become the texts "nan", "inf" and "-inf".
Json numberToJson(double value);
/// Reads what numberToJson wrote, and null as NaN. False when it is anything else.
bool numberFromJson(const Json& json, double& value);

/// For another process. What is no such error is nullopt.
Json toJson(const Error& error);
std::optional<Error> errorFromJson(const Json& json);

/// Reads typed fields of one object and collects the first failure, so a reader is a list of statements:
///   JsonReader r(json, "record.stages[2]");
///   r.read("name", s.name);
///   r.optional("unit", s.unit);
///   return r.status();
/// Errors have code kProtocol and say the path, what was found and wanted. Missing keys fail in read().
class JsonReader {
 public:
  JsonReader(const Json& object, std::string path);

  void read(const char* key, std::string& out);
  void read(const char* key, double& out);  ///< see numberFromJson
  void read(const char* key, bool& out);
  void read(const char* key, int& out);
  void read(const char* key, int64_t& out);
  void read(const char* key, uint64_t& out);
  void read(const char* key, std::vector<double>& out);
  void read(const char* key, std::vector<std::string>& out);
  void read(const char* key, std::map<std::string, std::string>& out);
  /// By one of its names.
  template <Named E>
  void read(const char* key, E& out) {
    std::string name;
    read(key, name);
    if (!ok()) return;
    if (const std::optional<E> value = fromName<E>(name))
      out = *value;
    else
      fail(key, noneOf<E>(name));
  }

  /// Like read(), but a missing key leaves `out` as it is.
  template <typename T>
  void optional(const char* key, T& out) {
    if (has(key)) read(key, out);
  }
  /// Calls `element(item, path)` for each item of the array `key`; stops at the first Status that is not ok.
  template <typename F>
  void each(const char* key, F element) {
    const Json* list = array(key);
    if (list == nullptr) return;
    for (size_t i = 0; i < list->size() && ok(); ++i) {
      Status status = element((*list)[i], path_ + "." + key + "[" + std::to_string(i) + "]");
      if (!status.ok()) fail(status.error());
    }
  }
  /// The object at `key`, or nullptr (and a failure) when it is missing or not an object.
  const Json* object(const char* key);
  const Json* array(const char* key);
  [[nodiscard]] bool has(const char* key) const;
  void fail(const char* key, const std::string& problem);
  void fail(Error error);
  [[nodiscard]] bool ok() const { return status_.ok(); }
  [[nodiscard]] Status status() const { return status_; }

 private:
  const Json* find(const char* key, const char* wanted);
  const Json& json_;
  std::string path_;
  Status status_;
};

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// A plan file as JSON with the place of its values, whichever language it was written in.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/json_schema.h"
#include "runner/core/toml/toml_document.h"
#include "runner/plan/diagnostics.h"

namespace muster {

/// What validation works on: the table that the file says, values named by JSON pointers
/// ("/stage/2/params/size").
struct PlanDocument {
  std::string file;
  bool lua = false;
  Json root = Json::object();
  std::map<std::string, SourcePosition> places;
  std::set<std::string> functions;  ///< Lua only: values that are functions; the JSON holds their source text

  /// Where the value stands; for one without a place of its own, its nearest parent.
  [[nodiscard]] SourcePosition at(const std::string& pointer) const;
};

/// A key that a table may have, and what it is for, in one line.
struct Key {
  std::string name;
  std::string summary;
};

/// Reads one table of a document, telling each mistake with its place. `what` names the table in messages
/// ("stage \"gemm\""); empty: the top level.
class TableReader {
 public:
  TableReader(const PlanDocument& document, std::string pointer, std::string what, Diagnostics& diagnostics);
  /// Reads nothing: what is asked for becomes the schema, as with TomlTable.
  explicit TableReader(TableSchema& schema);

  /// Whether it is a table at all; told when not. Everything else reads an absent table as empty.
  [[nodiscard]] bool isTable() const { return table_ != nullptr; }
  [[nodiscard]] const Json* find(const char* key) const;
  [[nodiscard]] std::string pointer(std::string_view key) const { return pointerTo(pointer_, key); }
  /// Tells every key that is not among `known`. `hint` may add a word about one of them. The schema explains
  /// those that are.
  void refuseUnknown(const std::vector<Key>& known,
                     const std::function<std::string(const std::string&)>& hint = {});

  /// For the schema: what the value at `key` may be, where its own reader checks that.
  void describe(const char* key, const Json& value);

  void text(const char* key, std::string& out);
  void flag(const char* key, bool& out);
  void whole(const char* key, int& out, int least, int most);
  /// A text that is one of `known`; false when it is absent or wrong.
  bool choice(const char* key, std::string& out, const std::vector<std::string>& known);
  /// A plain name that must be there; false when it is not.
  bool name(const char* key, std::string& out);
  /// The list at `key`, or nullptr when it is absent or (told) no list. In Lua an empty table is an empty
  /// list too.
  [[nodiscard]] const Json* list(const char* key, const std::string& wanted);

  /// Tells a mistake of the value at `key`: "stage "gemm": repeat: message".
  void fail(std::string_view key, const Mistake& mistake);
  /// Tells a mistake of the table as a whole.
  void fail(const Mistake& mistake);
  void missing(const char* key, const std::string& wanted);
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  [[nodiscard]] std::string prefix() const { return what_.empty() ? "" : what_ + ": "; }

  const PlanDocument* document_ = nullptr;
  std::string pointer_;
  std::string what_;
  Diagnostics* diagnostics_ = nullptr;
  const Json* table_ = nullptr;
  TableSchema* schema_ = nullptr;  ///< while describing; then there is no document
  bool ok_ = true;
};

/// The value at `pointer`, or nullptr.
const Json* valueAt(const Json& root, const std::string& pointer);

/// A value as messages show it: short, on one line, safe on a terminal; "a table", "a list of 3".
std::string shown(const Json& value);

}  // namespace muster

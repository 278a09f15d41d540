// SPDX-License-Identifier: Apache-2.0
// A Lua plan as a document: starts the child that evaluates it and reads its message.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "runner/core/text.h"
#include "runner/plan/loader.h"
#include "runner/plan/lua/lua_child.h"
#include "runner/plan/lua/lua_plan.h"

namespace muster {
namespace {

constexpr int kDeepestMessage = 80;

/// Reads the message; anything that the child cannot have written by itself ends the reading.
class MessageReader {
 public:
  MessageReader(const std::string& file, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    document_.file = file;
    document_.lua = true;
  }

  std::optional<PlanDocument> read(std::string_view text) {
    auto parsed = parseJson(text, kDeepestMessage);
    if (!parsed.ok() || !parsed->is_object()) return broken();
    Json message = std::move(*parsed);
    if (!readProblems(message["problems"])) return broken();
    if (!message.contains("root")) return toldAny_ ? std::nullopt : broken();
    if (!message["root"].is_object()) return broken();
    document_.root = std::move(message["root"]);
    if (!readLines(message["lines"]) || !readFunctions(message["functions"]) ||
        !readNumbers(message["numbers"]))
      return broken();
    return std::move(document_);
  }

 private:
  std::optional<PlanDocument> broken() {
    diagnostics_.error({document_.file, 0, 0},
                       "its evaluation did not return a plan; please report this as a bug in Muster");
    return std::nullopt;
  }

  static bool isPair(const Json& entry, bool (Json::*first)() const noexcept,
                     bool (Json::*second)() const noexcept) {
    return entry.is_array() && entry.size() == 2 && (entry[0].*first)() && (entry[1].*second)();
  }

  static int lineOf(const Json& value) {
    const auto line = value.get<int64_t>();
    return line > 0 && line < std::numeric_limits<int>::max() ? static_cast<int>(line) : 0;
  }

  bool readProblems(const Json& list) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      if (!isPair(entry, &Json::is_number_integer, &Json::is_string)) return false;
      diagnostics_.error({document_.file, lineOf(entry[0]), 0}, printable(entry[1].get<std::string>(), 600));
      toldAny_ = true;
    }
    return true;
  }

  bool readLines(const Json& list) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      if (!isPair(entry, &Json::is_string, &Json::is_number_integer)) return false;
      document_.places[entry[0].get<std::string>()] = {document_.file, lineOf(entry[1]), 0};
    }
    return true;
  }

  bool readFunctions(const Json& list) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      if (!entry.is_string()) return false;
      document_.functions.insert(entry.get<std::string>());
    }
    return true;
  }

  /// JSON has no NaN and no infinity; they stand beside the table and are put back.
  bool readNumbers(const Json& list) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      double number = 0;
      if (!isPair(entry, &Json::is_string, &Json::is_string) || !numberFromJson(entry[1], number))
        return false;
      const auto pointer = entry[0].get<std::string>();
      if (!isPointer(pointer) || valueAt(document_.root, pointer) == nullptr) return false;
      document_.root[Json::json_pointer(pointer)] = number;
    }
    return true;
  }

  /// The library throws on anything else.
  static bool isPointer(const std::string& text) {
    if (!text.starts_with('/')) return false;
    for (size_t at = text.find('~'); at != std::string::npos; at = text.find('~', at + 1))
      if (at + 1 >= text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) return false;
    return true;
  }

  Diagnostics& diagnostics_;
  PlanDocument document_;
  bool toldAny_ = false;
};

}  // namespace

std::optional<PlanDocument> readLuaMessage(std::string_view message, const std::string& file,
                                           Diagnostics& diagnostics) {
  return MessageReader(file, diagnostics).read(message);
}

std::optional<PlanDocument> loadLua(std::string_view text, const std::string& file, const LuaLimits& limits,
                                    Diagnostics& diagnostics) {
  const ChildEnd child =
      runInChild(limits, [&](volatile int* line) { return evaluateLuaPlan(text, limits, line); });
  if (!child.problem.empty()) {
    diagnostics.error({file, child.line, 0}, "the plan " + child.problem);
    return std::nullopt;
  }
  return readLuaMessage(child.output, file, diagnostics);
}

}  // namespace muster

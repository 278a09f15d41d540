// SPDX-License-Identifier: Apache-2.0
// The table that a Lua plan returned, as JSON with the lines of its parts.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runner/core/json.h"
#include "runner/plan/lua/lua_plan.h"
#include "runner/plan/lua/lua_sandbox.h"

namespace muster {

/// Which function of a plan made a table.
enum class MadeBy { kNothing, kPlan, kStage, kExpect };
const char* madeByName(MadeBy made);

/// What is remembered of such a table.
struct Made {
  MadeBy by = MadeBy::kNothing;
  int line = 0;
};

void rememberMade(lua_State* lua, int index, Made made);
Made recallMade(lua_State* lua, int index);

/// Reads the table on top of a sandbox's stack; `text` is the plan's source, out of which predicates are cut.
class LuaTableReader {
 public:
  LuaTableReader(LuaSandbox& sandbox, std::string_view text, const LuaFiles& files, const LuaLimits& limits)
      : sandbox_(sandbox), lua_(sandbox.state()), text_(text), files_(files), limits_(limits) {}

  /// The message that lua_plan.h describes.
  Json read();

 private:
  /// What a table is for; a plan may list its stages, and a stage its expectations, without a key.
  enum class Role { kPlan, kStages, kStage, kExpects, kOther };
  struct Place {
    std::string pointer;
    int line = 0;
    int depth = 0;
    Role role = Role::kOther;
  };
  struct Predicate {
    std::string source;
    std::string problem;
    int line = 0;
  };
  struct Keys {
    std::vector<std::string> names;  ///< sorted
    lua_Integer items = 0;           ///< keys that are whole numbers
    lua_Integer last = 0;            ///< the largest of them
  };

  Json table(int index, Place place);
  Json value(int index, const Place& place);
  Json number(int index, const Place& place);
  Json text(int index, const Place& place);
  Json predicate(int index, const Place& place);
  /// The source of the function at `index` and what is wrong with it, if anything.
  const Predicate& cutPredicate(int index);
  Predicate checkedSource(const std::string& chunk, int firstLine, int lastLine);
  Keys keysOf(int index, const Place& place);
  Json items(int index, const Place& place, lua_Integer count, MadeBy wanted);
  void namedItems(int index, const Place& place, const Keys& keys, Json& out);
  void unnamedItems(int index, const Place& place, const Keys& keys, Json& out);
  Place child(const Place& place, const std::string& key, Role role) const;
  void problem(const Place& place, const std::string& message);
  bool spend(size_t bytes, const Place& place);

  LuaSandbox& sandbox_;
  lua_State* lua_;
  std::string_view text_;
  const LuaFiles& files_;
  const LuaLimits& limits_;
  size_t values_ = 0;
  size_t bytes_ = 0;
  bool stopped_ = false;
  std::map<std::tuple<std::string, int, int>, Predicate>
      predicates_;  ///< by chunk, first and last line: loops make the same one often
  Json lines_ = Json::array();
  Json functions_ = Json::array();
  Json numbers_ = Json::array();
  Json problems_ = Json::array();
};

}  // namespace muster

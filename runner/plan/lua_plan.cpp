// SPDX-License-Identifier: Apache-2.0
// See lua_plan.h: the functions plan, stage and expect, and the run of the plan's text.
#include "runner/plan/lua_plan.h"

#include <fmt/format.h>

#include "runner/plan/lua_sandbox.h"
#include "runner/plan/lua_table.h"

namespace muster {
namespace {

/// Notes which function made the table, and on which line it was called; hands the table back.
int noteTable(lua_State* lua, MadeBy made, const char* example) {
  if (lua_type(lua, 1) != LUA_TTABLE)
    return luaL_error(lua, "%s: found a %s; expected a table, for example %s", madeByName(made),
                      luaL_typename(lua, 1), example);
  lua_Debug caller{};
  int line = 0;
  if (lua_getstack(lua, 1, &caller) != 0 && lua_getinfo(lua, "l", &caller) != 0) line = caller.currentline;
  rememberMade(lua, 1, {made, line});
  lua_settop(lua, 1);
  return 1;
}

int makePlan(lua_State* lua) {
  return noteTable(lua, MadeBy::kPlan, "plan{ schema = 1, name = \"node\", stage{ ... } }");
}
int makeStage(lua_State* lua) {
  return noteTable(lua, MadeBy::kStage, "stage{ name = \"gemm\", plugin = \"compute\", test = \"gemm\" }");
}
int makeExpect(lua_State* lua) {
  return noteTable(lua, MadeBy::kExpect,
                   "expect{ metric = \"compute.gemm_throughput\", min = \"650 TFLOP/s\" }");
}

/// `repeat` is a key of stages and a word of Lua.
std::string hintFor(const std::string& message) {
  if (message.find("near 'repeat'") == std::string::npos) return "";
  return "; repeat is a word of Lua itself, so as a key it is written [\"repeat\"] = 3";
}

Json problemsOnly(int line, const std::string& problem) {
  return {{"problems", Json::array({Json::array({line, problem})})}};
}

Json evaluate(std::string_view text, const LuaLimits& limits, volatile int* line) {
  LuaSandbox sandbox(limits, line);
  sandbox.define("plan", makePlan, nullptr);
  sandbox.define("stage", makeStage, nullptr);
  sandbox.define("expect", makeExpect, nullptr);
  auto failure = sandbox.compile(text);
  if (!failure) failure = sandbox.call(0, 1);
  if (failure) return problemsOnly(failure->line, failure->message + hintFor(failure->message));
  if (lua_type(sandbox.state(), -1) != LUA_TTABLE)
    return problemsOnly(
        *line,
        fmt::format("the plan returns {}; expected a table: end it with return plan{{ schema = 1, ... }}",
                    lua_isnil(sandbox.state(), -1) ? "nothing" : luaL_typename(sandbox.state(), -1)));
  return LuaTableReader(sandbox, text, limits).read();
}

}  // namespace

std::string evaluateLuaPlan(std::string_view text, const LuaLimits& limits, volatile int* line) {
  return dumpJson(evaluate(text, limits, line));
}

}  // namespace muster

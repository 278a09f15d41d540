// SPDX-License-Identifier: Apache-2.0
// See lua_plan.h: the functions plan, stage and expect, and the run of the plan's text.
#include "runner/plan/lua/lua_plan.h"

#include <fmt/format.h>

#include <map>

#include "runner/core/text.h"
#include "runner/plan/lua/lua_lexer.h"
#include "runner/plan/lua/lua_sandbox.h"
#include "runner/plan/lua/lua_table.h"

namespace muster {
namespace {

/// Notes which function made the table, and on which line it was called; hands the table back.
int noteTable(lua_State* lua, MadeBy made, const char* example) {
  if (lua_type(lua, 1) != LUA_TTABLE)
    return luaL_error(lua, "%s: found a %s; expected a table, for example %s", madeByName(made),
                      luaL_typename(lua, 1), example);
  // The line of the plan, also where a function of an included file makes the table.
  int line = 0;
  lua_Debug caller{};
  for (int level = 1; line == 0 && lua_getstack(lua, level, &caller) != 0; ++level)
    if (lua_getinfo(lua, "Sl", &caller) != 0 && std::string_view(caller.source) == kPlanChunk)
      line = caller.currentline;
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

/// A key that stands twice in one table constructor, of which Lua would silently take the last. Only of keys
/// that are names: the words of the text hold no others.
std::optional<LuaFailure> keyDefinedTwice(std::string_view text) {
  struct Scope {
    bool table = false;
    std::map<std::string_view, int> keys;  ///< with the line of each
  };
  const std::vector<LuaToken> tokens = luaTokens(text);
  std::vector<Scope> scopes;
  const auto word = [&](size_t i) { return i < tokens.size() ? tokens[i].text : std::string_view(); };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view here = word(i);
    if (here == "{" || here == "function" || here == "if" || here == "do" || here == "repeat")
      scopes.push_back({here == "{", {}});
    else if ((here == "}" || here == "end" || here == "until") && !scopes.empty())
      scopes.pop_back();
    const bool begins = i > 0 && (word(i - 1) == "{" || word(i - 1) == "," || word(i - 1) == ";");
    if (scopes.empty() || !scopes.back().table || !begins || !tokens[i].isName() || isLuaKeyword(here) ||
        word(i + 1) != "=" || word(i + 2) == "=")
      continue;
    const auto [first, fresh] = scopes.back().keys.emplace(here, tokens[i].line);
    if (!fresh)
      return LuaFailure{
          tokens[i].line,
          fmt::format("the key {} is defined twice in one table, first in line {}; expected one "
                      "definition",
                      printable(here, 60), first->second)};
  }
  return std::nullopt;
}

/// The function `include "lib.lua"`: runs the file once and hands back what it returns.
class Includer {
 public:
  explicit Includer(const LuaFiles& files) : files_(files) {}

  static int call(lua_State* lua) {
    return static_cast<Includer*>(lua_touserdata(lua, lua_upvalueindex(1)))->include(lua);
  }

 private:
  int include(lua_State* lua) {
    if (lua_type(lua, 1) != LUA_TSTRING)
      return luaL_error(lua, "include: found a %s; expected a path in quotes", luaL_typename(lua, 1));
    lua_Debug caller{};
    const bool known = lua_getstack(lua, 1, &caller) != 0 && lua_getinfo(lua, "S", &caller) != 0;
    const std::string source = known ? caller.source : kPlanChunk;
    const auto path = files_.paths.find({source == kPlanChunk ? "" : source.substr(1), lua_tostring(lua, 1)});
    if (path == files_.paths.end())
      return luaL_error(
          lua, "include: the path must stand in quotes behind the word include, as in include \"lib.lua\"");
    const auto text = files_.texts.find(path->second);
    if (text == files_.texts.end()) return 0;  // TOML: it lies beneath the plan
    const std::string key = "muster.include " + path->second;
    if (lua_getfield(lua, LUA_REGISTRYINDEX, key.c_str()) != LUA_TNIL) return 1;
    const std::string chunk = "=" + path->second;
    if (luaL_loadbufferx(lua, text->second.data(), text->second.size(), chunk.c_str(), "t") != LUA_OK)
      return lua_error(lua);
    if (const auto failure = keyDefinedTwice(text->second))
      return luaL_error(lua, "%s:%d: %s", path->second.c_str(), failure->line, failure->message.c_str());
    lua_call(lua, 0, 1);
    if (lua_isnil(lua, -1))
      return luaL_error(lua, "include: %s returns nothing; end it with return { ... }", path->second.c_str());
    lua_pushvalue(lua, -1);
    lua_setfield(lua, LUA_REGISTRYINDEX, key.c_str());
    return 1;
  }

  const LuaFiles& files_;
};

Json evaluate(std::string_view text, const LuaFiles& files, const LuaLimits& limits, volatile int* line) {
  LuaSandbox sandbox(limits, line);
  Includer includer(files);
  sandbox.define("include", Includer::call, &includer);
  sandbox.define("plan", makePlan, nullptr);
  sandbox.define("stage", makeStage, nullptr);
  sandbox.define("expect", makeExpect, nullptr);
  auto failure = sandbox.compile(text);
  if (!failure) failure = keyDefinedTwice(text);
  if (!failure) failure = sandbox.call(0, 1);
  if (failure) return problemsOnly(failure->line, failure->message + hintFor(failure->message));
  if (lua_type(sandbox.state(), -1) != LUA_TTABLE)
    return problemsOnly(
        *line,
        fmt::format("the plan returns {}; expected a table: end it with return plan{{ schema = 1, ... }}",
                    lua_isnil(sandbox.state(), -1) ? "nothing" : luaL_typename(sandbox.state(), -1)));
  return LuaTableReader(sandbox, text, files, limits).read();
}

}  // namespace

std::string evaluateLuaPlan(std::string_view text, const LuaFiles& files, const LuaLimits& limits,
                            volatile int* line) {
  return dumpJson(evaluate(text, files, limits, line));
}

}  // namespace muster

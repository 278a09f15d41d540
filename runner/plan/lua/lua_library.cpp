// SPDX-License-Identifier: Apache-2.0
// What Lua code in the sandbox may call. Left out: everything that reaches files, processes, other code or
// bytecode (io, os, package, debug, require, load, loadfile, dofile, string.dump); what hides or outlives an
// error (pcall, coroutines, metatables with their finalizers); what differs from run to run (random numbers,
// addresses, the order of pairs, the pivots of table.sort), since all nodes and a resumed run must see the
// same plan; and C loops that no bound on instructions ends (table.move).
#include <algorithm>
#include <new>
#include <tuple>
#include <utility>

#include "runner/core/text.h"
#include "runner/plan/lua/lua_sandbox.h"

namespace muster {
namespace {

const std::vector<std::string> kBase = {"assert", "error", "ipairs", "select", "tonumber", "type"};
const std::vector<std::string> kModules = {"math", "string", "table", "utf8"};
const std::vector<std::string> kForbidden = {
    "collectgarbage", "coroutine",    "debug",      "dofile", "getmetatable", "io",
    "load",           "loadfile",     "loadstring", "next",   "os",           "package",
    "pcall",          "print",        "rawequal",   "rawget", "rawlen",       "rawset",
    "require",        "setmetatable", "warn",       "xpcall", "_G",           "_VERSION"};

/// A key of a table as pairs() orders it: numbers, then texts, then false and true.
struct SortKey {
  int kind = 0;
  double number = 0;
  lua_Integer integer = 0;  ///< exact, where `number` is rounded
  std::string text;
  lua_Integer slot = 0;

  bool operator<(const SortKey& other) const {
    return std::tie(kind, number, integer, text) <
           std::tie(other.kind, other.number, other.integer, other.text);
  }
};

SortKey sortKey(lua_State* lua, int index, lua_Integer slot) {
  switch (lua_type(lua, index)) {
    case LUA_TNUMBER:
      return {0, lua_tonumber(lua, index), lua_tointeger(lua, index), "", slot};
    case LUA_TSTRING: {
      size_t size = 0;
      const char* text = lua_tolstring(lua, index, &size);
      return {1, 0, 0, std::string(text, size), slot};
    }
    case LUA_TBOOLEAN:
      return {2, 0, lua_toboolean(lua, index), "", slot};
    default:
      luaL_error(lua, "pairs: a key is a %s; expected keys that are numbers or texts",
                 luaL_typename(lua, index));
      return {};
  }
}

/// The iterator of pairs(). Upvalues: the sorted keys, the last slot used.
int nextPair(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);  // the plan may call it, too
  lua_Integer slot = lua_tointeger(lua, lua_upvalueindex(2));
  for (;;) {
    lua_settop(lua, 1);
    lua_rawgeti(lua, lua_upvalueindex(1), ++slot);
    if (lua_isnil(lua, -1)) return 1;
    lua_pushvalue(lua, -1);
    if (lua_rawget(lua, 1) != LUA_TNIL) break;  // else it was removed while we walked
  }
  lua_pushinteger(lua, slot);
  lua_replace(lua, lua_upvalueindex(2));
  return 2;
}

int pairs(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  lua_newtable(lua);  // 2: the keys as lua_next gives them
  std::vector<SortKey> keys;
  for (lua_pushnil(lua); lua_next(lua, 1) != 0;) {
    lua_pop(lua, 1);
    keys.push_back(sortKey(lua, -1, static_cast<lua_Integer>(keys.size()) + 1));
    lua_pushvalue(lua, -1);
    lua_rawseti(lua, 2, keys.back().slot);
  }
  std::sort(keys.begin(), keys.end());
  lua_createtable(lua, static_cast<int>(keys.size()), 0);  // 3: sorted
  for (size_t i = 0; i < keys.size(); ++i) {
    lua_rawgeti(lua, 2, keys[i].slot);
    lua_rawseti(lua, 3, static_cast<lua_Integer>(i) + 1);
  }
  lua_pushinteger(lua, 0);
  lua_pushcclosure(lua, nextPair, 2);
  lua_pushvalue(lua, 1);
  return 2;
}

/// Tables and functions become their type's name: Lua's own text holds an address.
int toString(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (lua_type(lua, 1) == LUA_TTABLE || lua_type(lua, 1) == LUA_TFUNCTION)
    lua_pushstring(lua, luaL_typename(lua, 1));
  else
    luaL_tolstring(lua, 1, nullptr);
  return 1;
}

/// Whether a format asks for an address.
bool asksForAddress(std::string_view format) {
  for (size_t at = 0; at + 1 < format.size(); ++at) {
    if (format[at] != '%') continue;
    const size_t end = format.find_first_not_of("-+ #.0123456789", at + 1);
    if (end == std::string_view::npos) return false;
    if (format[end] == 'p') return true;
    at = end;
  }
  return false;
}

/// string.format without addresses. Upvalue: Lua's own.
int format(lua_State* lua) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  if (asksForAddress({text, size})) return luaL_error(lua, "string.format: %%p is not available in a plan");
  const int count = lua_gettop(lua);
  for (int i = 2; i <= count; ++i)
    if (lua_type(lua, i) == LUA_TTABLE || lua_type(lua, i) == LUA_TFUNCTION)
      return luaL_error(lua, "string.format: argument %d is a %s; expected a text or a number", i,
                        luaL_typename(lua, i));
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, count, 1);
  return 1;
}

/// string.rep with a bound: Lua's own repeats an empty text for hours. Upvalue: Lua's own.
int repeat(lua_State* lua) {
  constexpr lua_Integer kMost = lua_Integer{64} << 20;
  size_t size = 0;
  size_t separator = 0;
  luaL_checklstring(lua, 1, &size);
  const lua_Integer count = luaL_checkinteger(lua, 2);
  luaL_optlstring(lua, 3, "", &separator);
  const auto piece = static_cast<lua_Integer>(std::max<size_t>(1, size + separator));
  if (count > kMost / piece) return luaL_error(lua, "string.rep: the text would be longer than 64 MiB");
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, 1);
  return 1;
}

/// Whether value `b` of the table at `values` comes before value `a`: by the function at 2, if there is one.
bool isBefore(lua_State* lua, int values, lua_Integer b, lua_Integer a) {
  const bool function = !lua_isnil(lua, 2);
  if (function) lua_pushvalue(lua, 2);
  lua_rawgeti(lua, values, b);
  lua_rawgeti(lua, values, a);
  if (!function) {
    const bool less = lua_compare(lua, -2, -1, LUA_OPLT) != 0;
    lua_pop(lua, 2);
    return less;
  }
  lua_call(lua, 2, 1);
  const bool less = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 1);
  return less;
}

/// table.sort by merging: Lua's own takes pivots by the time. Stable, and an order that is none leaves some
/// order.
int sort(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  if (!lua_isnil(lua, 2)) luaL_checktype(lua, 2, LUA_TFUNCTION);
  const lua_Integer size = luaL_len(lua, 1);
  lua_newtable(lua);
  lua_newtable(lua);
  int from = 3, to = 4;  // of equal size, on the stack
  const auto copy = [&](int source, lua_Integer at, int target, lua_Integer place) {
    lua_rawgeti(lua, source, at);
    lua_rawseti(lua, target, place);
  };
  for (lua_Integer i = 1; i <= size; ++i) copy(1, i, from, i);
  for (lua_Integer width = 1; width < size; width *= 2) {
    for (lua_Integer low = 1; low <= size; low += 2 * width) {
      const lua_Integer middle = std::min(low + width, size + 1), high = std::min(low + 2 * width, size + 1);
      lua_Integer a = low, b = middle;
      for (lua_Integer place = low; place < high; ++place) {
        const bool second = a == middle || (b < high && isBefore(lua, from, b, a));
        copy(from, second ? b++ : a++, to, place);
      }
    }
    std::swap(from, to);
  }
  for (lua_Integer i = 1; i <= size; ++i) copy(from, i, 1, i);
  return 0;
}

/// Called for a global that is not there.
int unknownName(lua_State* lua) {
  const std::string name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : luaL_typename(lua, 2);
  if (std::find(kForbidden.begin(), kForbidden.end(), name) != kForbidden.end())
    return luaL_error(
        lua, "\"%s\" is not available: a plan can compute, but not reach files, processes or other code",
        name.c_str());
  std::vector<std::string> known;
  for (lua_pushnil(lua); lua_next(lua, 1) != 0; lua_pop(lua, 1))
    if (lua_type(lua, -2) == LUA_TSTRING) known.emplace_back(lua_tostring(lua, -2));
  std::sort(known.begin(), known.end());
  return luaL_error(lua, "unknown name \"%s\"%s", printable(name, 80).c_str(),
                    didYouMean(name, known).c_str());
}

void remove(lua_State* lua, const char* module, const std::vector<const char*>& names) {
  lua_getglobal(lua, module);
  for (const char* name : names) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, name);
  }
  lua_pop(lua, 1);
}

/// Puts `function` in the place of string.`name`, which becomes its upvalue.
void wrap(lua_State* lua, const char* name, lua_CFunction function) {
  lua_getglobal(lua, "string");
  lua_getfield(lua, -1, name);
  lua_pushcclosure(lua, function, 1);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 1);
}

void openModules(lua_State* lua) {
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
  luaL_requiref(lua, LUA_UTF8LIBNAME, luaopen_utf8, 1);
  lua_settop(lua, 0);
  remove(lua, "math", {"random", "randomseed"});
  remove(lua, "string", {"dump", "pack", "packsize", "unpack"});
  remove(lua, "table", {"move"});
  wrap(lua, "format", format);
  wrap(lua, "rep", repeat);
  lua_getglobal(lua, "table");
  lua_pushcfunction(lua, sort);
  lua_setfield(lua, -2, "sort");
  lua_pop(lua, 1);
}

/// A table that holds what is allowed and nothing else takes the place of the globals.
void replaceGlobals(lua_State* lua) {
  lua_newtable(lua);
  for (const auto* names : {&kBase, &kModules})
    for (const std::string& name : *names) {
      lua_getglobal(lua, name.c_str());
      lua_setfield(lua, 1, name.c_str());
    }
  lua_pushcfunction(lua, pairs);
  lua_setfield(lua, 1, "pairs");
  lua_pushcfunction(lua, toString);
  lua_setfield(lua, 1, "tostring");
  lua_newtable(lua);
  lua_pushcfunction(lua, unknownName);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, 1);
  lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

/// Texts find their methods (`s:upper()`) in a table of their own metatable: already the reduced one.
int open(lua_State* lua) {
  openModules(lua);
  replaceGlobals(lua);
  return 0;
}

}  // namespace

void openSandboxLibrary(lua_State* lua) {
  lua_pushcfunction(lua, open);
  if (lua_pcall(lua, 0, 0, 0) != LUA_OK) throw std::bad_alloc();
}

}  // namespace muster

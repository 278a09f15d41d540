// SPDX-License-Identifier: Apache-2.0
// Converts the table of a Lua plan to JSON.
#include "runner/plan/lua/lua_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/text.h"
#include "runner/core/toml/toml_document.h"
#include "runner/plan/lua/lua_source.h"

namespace muster {
namespace {

constexpr int kMostLevels = 32;
constexpr size_t kMostKeys = 1000;    ///< named keys of one table
constexpr size_t kLongestKey = 1000;  ///< bytes; all keys of a table are copied, at every level
constexpr size_t kMostProblems = 200;
const char kMadeKey = 0;  ///< its address names the registry's table

}  // namespace

const char* madeByName(MadeBy made) {
  switch (made) {
    case MadeBy::kNothing:
      return "a table";
    case MadeBy::kPlan:
      return "plan";
    case MadeBy::kStage:
      return "stage";
    case MadeBy::kExpect:
      return "expect";
  }
  return "a table";
}

void rememberMade(lua_State* lua, int index, Made made) {
  index = lua_absindex(lua, index);
  if (lua_rawgetp(lua, LUA_REGISTRYINDEX, &kMadeKey) != LUA_TTABLE) {
    lua_pop(lua, 1);
    lua_newtable(lua);
    lua_pushvalue(lua, -1);
    lua_rawsetp(lua, LUA_REGISTRYINDEX, &kMadeKey);
  }
  lua_pushvalue(lua, index);
  lua_pushinteger(lua, static_cast<lua_Integer>(made.line) * 4 + static_cast<int>(made.by));
  lua_rawset(lua, -3);
  lua_pop(lua, 1);
}

Made recallMade(lua_State* lua, int index) {
  index = lua_absindex(lua, index);
  Made made;
  if (lua_rawgetp(lua, LUA_REGISTRYINDEX, &kMadeKey) == LUA_TTABLE) {
    lua_pushvalue(lua, index);
    lua_rawget(lua, -2);
    const lua_Integer note = lua_tointeger(lua, -1);
    made = {static_cast<MadeBy>(note % 4), static_cast<int>(note / 4)};
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return made;
}

Json LuaTableReader::read() {
  Json root = table(lua_gettop(lua_), {"", 1, 0, Role::kPlan});
  Json message = Json::object();
  if (!stopped_) message["root"] = std::move(root);
  message["lines"] = std::move(lines_);
  message["functions"] = std::move(functions_);
  message["numbers"] = std::move(numbers_);
  message["problems"] = std::move(problems_);
  return message;
}

void LuaTableReader::problem(const Place& place, const std::string& message) {
  if (problems_.size() < kMostProblems) problems_.push_back(Json::array({place.line, message}));
}

/// Counts one value of so many bytes; a plan that is too large is told once and read no further.
bool LuaTableReader::spend(size_t bytes, const Place& place) {
  bytes_ += bytes + place.pointer.size();
  ++values_;
  if (stopped_) return false;
  if (values_ > limits_.values)
    problem(place, fmt::format("the plan's table holds more than {} values", limits_.values));
  else if (bytes_ > limits_.output)
    problem(place, fmt::format("the plan's table holds more than {} bytes", limits_.output));
  else if (place.depth > kMostLevels)
    problem(place, fmt::format("tables nest deeper than {} levels; does one hold itself?", kMostLevels));
  else if (lua_checkstack(lua_, 8) == 0)
    problem(place, "the plan needs too much memory");
  else
    return true;
  stopped_ = true;
  return false;
}

LuaTableReader::Place LuaTableReader::child(const Place& place, const std::string& key, Role role) const {
  return {pointerTo(place.pointer, key), place.line, place.depth + 1, role};
}

Json LuaTableReader::value(int index, const Place& place) {
  switch (lua_type(lua_, index)) {
    case LUA_TTABLE:
      return table(index, place);
    case LUA_TSTRING:
      return text(index, place);
    case LUA_TNUMBER:
      return number(index, place);
    case LUA_TBOOLEAN:
      return lua_toboolean(lua_, index) != 0;
    case LUA_TFUNCTION:
      return predicate(index, place);
    default:
      problem(place, fmt::format("found a {}; expected a text, a number, true, false or a table",
                                 luaL_typename(lua_, index)));
      return nullptr;
  }
}

Json LuaTableReader::text(int index, const Place& place) {
  size_t size = 0;
  const char* bytes = lua_tolstring(lua_, index, &size);
  if (!spend(size, place)) return nullptr;
  std::string result(bytes, size);
  if (validUtf8(result) != result || result.find('\0') != std::string::npos)
    problem(place, fmt::format("found the text \"{}\"; expected valid UTF-8 without NUL bytes",
                               printable(result, 80)));
  return result;
}

Json LuaTableReader::number(int index, const Place& place) {
  if (!spend(8, place)) return nullptr;
  if (lua_isinteger(lua_, index) != 0) return static_cast<int64_t>(lua_tointeger(lua_, index));
  const double number = lua_tonumber(lua_, index);
  if (std::isfinite(number)) return number;
  numbers_.push_back(
      Json::array({place.pointer, fmt::format("{}", std::isnan(number) ? std::nan("") : number)}));
  return 0;
}

Json LuaTableReader::predicate(int index, const Place& place) {
  if (!spend(64, place)) return nullptr;
  if (!place.pointer.ends_with("/predicate")) {
    problem(place, fmt::format("{}: found a function; only `predicate` of an expectation takes one",
                               place.pointer.substr(place.pointer.rfind('/') + 1)));
    return nullptr;
  }
  const Predicate& found = cutPredicate(index);
  if (!found.problem.empty()) {
    Place at = place;
    if (found.line > 0) at.line = found.line;
    problem(at, "predicate: " + found.problem);
  }
  if (!spend(found.source.size(), place)) return nullptr;
  functions_.push_back(place.pointer);
  // A bad one is told already; its place is kept, so that validation does not miss it as well.
  return found.source.empty() ? "function(m) end" : found.source;
}

const LuaTableReader::Predicate& LuaTableReader::cutPredicate(int index) {
  lua_Debug info{};
  lua_pushvalue(lua_, index);
  lua_getinfo(lua_, ">Su", &info);
  const std::string chunk = info.source;
  const auto [at, fresh] = predicates_.try_emplace({chunk, info.linedefined, info.lastlinedefined});
  Predicate& found = at->second;
  if (!fresh) return found;
  if (info.what[0] == 'C')
    found.problem = "found a library function; expected function(m) ... end";
  else if (info.nparams == 0 && info.isvararg == 0)
    found.problem = "the function ignores the measurement; expected function(m) ... end";
  else
    found = checkedSource(chunk, info.linedefined, info.lastlinedefined);
  if (chunk == kPlanChunk) found.line = info.linedefined;
  return found;
}

LuaTableReader::Predicate LuaTableReader::checkedSource(const std::string& chunk, int firstLine,
                                                        int lastLine) {
  const auto included = files_.texts.find(chunk.substr(1));
  auto source = cutFunction(chunk == kPlanChunk || included == files_.texts.end() ? text_ : included->second,
                            firstLine, lastLine);
  if (!source.ok()) return {"", source.error().message, 0};
  // A sandbox as predicates are evaluated in: without plan, stage and expect.
  volatile int line = 0;
  LuaSandbox bare(limits_, &line);
  const auto outside = namesFromOutside(bare, *source);
  if (!outside.ok()) return {*source, outside.error().message, 0};
  if (outside->empty()) return {*source, "", 0};
  return {*source,
          fmt::format("it uses \"{}\" from outside; a predicate is stored as text and evaluated alone, so "
                      "write the value into it",
                      join(*outside, "\", \"")),
          0};
}

Json LuaTableReader::table(int index, Place place) {
  if (!spend(16, place)) return nullptr;
  index = lua_absindex(lua_, index);
  const Made made = recallMade(lua_, index);
  if (made.by != MadeBy::kNothing) {
    place.line = made.line;
    lines_.push_back(Json::array({place.pointer, made.line}));
  }
  const Keys keys = keysOf(index, place);
  if (keys.last != keys.items) {
    problem(place, fmt::format("a list has {} items and the last is number {}: an item between them is nil; "
                               "is a name misspelled?",
                               keys.items, keys.last));
    return Json::array();
  }
  const bool lists = place.role == Role::kPlan || place.role == Role::kStage;
  if (keys.items > 0 && keys.names.empty() && !lists)
    return items(index, place, keys.items, MadeBy::kNothing);
  Json out = Json::object();
  namedItems(index, place, keys, out);
  if (keys.items > 0) unnamedItems(index, place, keys, out);
  return out;
}

LuaTableReader::Keys LuaTableReader::keysOf(int index, const Place& place) {
  Keys keys;
  for (lua_pushnil(lua_); lua_next(lua_, index) != 0; lua_pop(lua_, 1)) {
    if (lua_type(lua_, -2) == LUA_TSTRING) {
      size_t size = 0;
      const char* name = lua_tolstring(lua_, -2, &size);
      if (size > kLongestKey)
        problem(place, fmt::format("a table has a key of {} bytes; expected at most {}", size, kLongestKey));
      else if (keys.names.size() < kMostKeys)
        keys.names.emplace_back(name, size);
      else if (keys.names.size() == kMostKeys) {
        keys.names.emplace_back();
        problem(place, fmt::format("a table holds more than {} keys", kMostKeys));
      }
    } else if (lua_isinteger(lua_, -2) != 0 && lua_tointeger(lua_, -2) > 0) {
      ++keys.items;
      keys.last = std::max(keys.last, lua_tointeger(lua_, -2));
    } else {
      problem(place, fmt::format("a table has a key that is a {}; expected names, or a list from 1 up",
                                 lua_isinteger(lua_, -2) != 0 ? "number below 1" : luaL_typename(lua_, -2)));
    }
  }
  if (keys.names.size() > kMostKeys) keys.names.pop_back();
  std::sort(keys.names.begin(), keys.names.end());
  return keys;
}

void LuaTableReader::namedItems(int index, const Place& place, const Keys& keys, Json& out) {
  for (const std::string& name : keys.names) {
    if (stopped_) return;
    if (validUtf8(name) != name) {
      problem(place, fmt::format("found the key \"{}\"; expected valid UTF-8", printable(name, 80)));
      continue;
    }
    Role role = Role::kOther;
    if (place.role == Role::kPlan && name == "stage") role = Role::kStages;
    if (place.role == Role::kStage && name == "expect") role = Role::kExpects;
    lua_pushlstring(lua_, name.data(), name.size());
    lua_rawget(lua_, index);
    out[name] = value(lua_gettop(lua_), child(place, name, role));
    lua_pop(lua_, 1);
  }
}

/// plan{ ..., stage{...}, stage{...} } and stage{ ..., expect{...} }: the list is the value of `stage` or
/// `expect`.
void LuaTableReader::unnamedItems(int index, const Place& place, const Keys& keys, Json& out) {
  if (place.role != Role::kPlan && place.role != Role::kStage)
    return problem(place, "a table mixes a list with named keys; expected one of the two");
  const bool isPlan = place.role == Role::kPlan;
  const std::string name = isPlan ? "stage" : "expect";
  if (out.contains(name))
    return problem(place,
                   fmt::format("{} is defined both as a key and as {}{{ ... }} entries; keep one of the two",
                               name, name));
  out[name] = items(index, child(place, name, isPlan ? Role::kStages : Role::kExpects), keys.items,
                    isPlan ? MadeBy::kStage : MadeBy::kExpect);
}

Json LuaTableReader::items(int index, const Place& place, lua_Integer count, MadeBy wanted) {
  Json out = Json::array();
  for (lua_Integer i = 1; i <= count && !stopped_; ++i) {
    lua_rawgeti(lua_, index, i);
    const int item = lua_gettop(lua_);
    const bool isTable = lua_type(lua_, item) == LUA_TTABLE;
    if (wanted != MadeBy::kNothing && (!isTable || recallMade(lua_, item).by != wanted))
      problem(place, fmt::format("entry {} without a key is a {}; expected {}{{ ... }}, or a key before it",
                                 i, luaL_typename(lua_, item), madeByName(wanted)));
    out.push_back(value(item, child(place, std::to_string(i - 1),
                                    place.role == Role::kStages ? Role::kStage : Role::kOther)));
    lua_pop(lua_, 1);
  }
  return out;
}

}  // namespace muster

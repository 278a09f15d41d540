// SPDX-License-Identifier: Apache-2.0
// Creates the limited Lua state and runs code in it.
#include "runner/plan/lua/lua_sandbox.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <new>

#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

constexpr int kHookStep = 1000;
constexpr int kDeepCalls = 10000;  ///< nested calls that no plan needs
const std::string kEndlessRecursion =
    fmt::format("calls nest deeper than {} levels; does a function call itself endlessly?", kDeepCalls);
/// Lua puts the chunk's name before each message; this one is taken off again.
constexpr const char* kChunkName = "=plan";  // kPlanChunk of lua_plan.h
constexpr std::string_view kChunkPrefix = "plan:";

LuaSandbox* selfOf(lua_State* lua) {
  return *static_cast<LuaSandbox**>(lua_getextraspace(lua));
}

/// "plan:12: message" as line and message.
LuaFailure splitMessage(std::string_view text) {
  LuaFailure failure{0, printable(text, 400)};
  if (!text.starts_with(kChunkPrefix)) return failure;
  const char* digits = text.data() + kChunkPrefix.size();
  const char* end = text.data() + text.size();
  int line = 0;
  const auto [stop, error] = std::from_chars(digits, end, line);
  if (error != std::errc() || end - stop < 2 || stop[0] != ':' || stop[1] != ' ') return failure;
  return {line, printable(text.substr(static_cast<size_t>(stop + 2 - text.data())), 400)};
}

}  // namespace

LuaSandbox::LuaSandbox(const LuaLimits& limits, volatile int* line) : limits_(limits), line_(line) {
  lua_ = lua_newstate(allocate, this);
  if (lua_ == nullptr) throw std::bad_alloc();
  *static_cast<LuaSandbox**>(lua_getextraspace(lua_)) = this;
  lua_sethook(lua_, hook, LUA_MASKCOUNT | LUA_MASKLINE, kHookStep);
  openSandboxLibrary(lua_);
}

LuaSandbox::~LuaSandbox() {
  lua_close(lua_);
}

void* LuaSandbox::allocate(void* self, void* block, size_t before, size_t after) {
  auto* sandbox = static_cast<LuaSandbox*>(self);
  if (block == nullptr) before = 0;  // then it is a type, not a size
  if (after == 0) {
    std::free(block);
    sandbox->memory_ -= before;
    return nullptr;
  }
  if (after > before && after - before > sandbox->limits_.memory - sandbox->memory_) {
    // The calls are gone when the failure is told: whether it was they that used the memory is seen here.
    lua_Debug deepest;
    sandbox->deep_ = sandbox->lua_ != nullptr && lua_getstack(sandbox->lua_, kDeepCalls, &deepest) != 0;
    return nullptr;
  }
  void* fresh = std::realloc(block, after);
  if (fresh != nullptr) sandbox->memory_ += after - before;
  return fresh;
}

void LuaSandbox::hook(lua_State* lua, lua_Debug* activation) {
  LuaSandbox* self = selfOf(lua);
  if (activation->event == LUA_HOOKLINE) {
    *self->line_ = activation->currentline;
    return;
  }
  self->instructions_ += kHookStep;
  if (!self->exhausted()) return;
  // Without a place of its own: luaL_error would name the caller's line, line_ knows the one that runs.
  lua_pushfstring(lua, "still running after %I instructions; does it contain an endless loop?",
                  static_cast<LUAI_UACINT>(self->limits_.instructions));
  lua_error(lua);
}

void LuaSandbox::define(const char* name, lua_CFunction function, void* self) {
  lua_pushglobaltable(lua_);
  lua_pushlightuserdata(lua_, self);
  lua_pushcclosure(lua_, function, 1);
  lua_setfield(lua_, -2, name);
  lua_pop(lua_, 1);
}

std::vector<std::string> LuaSandbox::globals() const {
  std::vector<std::string> names;
  lua_pushglobaltable(lua_);
  for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1))
    if (lua_type(lua_, -2) == LUA_TSTRING) names.emplace_back(lua_tostring(lua_, -2));
  lua_pop(lua_, 1);
  return names;
}

std::optional<LuaFailure> LuaSandbox::compile(std::string_view text) {
  const int status = luaL_loadbufferx(lua_, text.data(), text.size(), kChunkName, "t");
  if (status == LUA_OK) return std::nullopt;
  return takeFailure(status);
}

std::optional<LuaFailure> LuaSandbox::call(int arguments, int results) {
  const int status = lua_pcall(lua_, arguments, results, 0);
  if (status == LUA_OK) return std::nullopt;
  return takeFailure(status);
}

LuaFailure LuaSandbox::takeFailure(int status) {
  LuaFailure failure;
  if (status == LUA_ERRMEM && deep_)
    failure.message = kEndlessRecursion;
  else if (status == LUA_ERRMEM)
    failure.message = fmt::format("needs more than {} of memory; a plan may use no more",
                                  formatQuantity(static_cast<double>(limits_.memory), "B"));
  else if (status < 0)  // a C++ exception of ours, which leaves no message
    failure.message = "ran out of memory";
  else if (lua_type(lua_, -1) == LUA_TSTRING)
    failure = splitMessage(lua_tostring(lua_, -1));
  else
    failure.message = fmt::format("error() was called with a {}; expected a text", luaL_typename(lua_, -1));
  if (failure.message == "stack overflow") failure.message = kEndlessRecursion;
  if (failure.message.find("C stack overflow") != std::string::npos) failure.message = "nests too deeply";
  if (failure.line == 0) failure.line = *line_;
  lua_settop(lua_, 0);
  return failure;
}

}  // namespace muster

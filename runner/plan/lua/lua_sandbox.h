// SPDX-License-Identifier: Apache-2.0
// A Lua state that can do nothing but compute: bounded memory and instructions, harmless library functions
// only.
#pragma once

#include <lua.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/plan/lua/lua_limits.h"

namespace muster {

/// Why Lua code could not be compiled or run to its end. Line 0: unknown.
struct LuaFailure {
  int line = 0;
  std::string message;
};

/// One sandbox. Built on the Lua library that throws C++ exceptions, so C++ objects in functions called from
/// Lua are destroyed when an error passes them. What memory and instructions cannot bound (C functions that
/// run long) is left to the process around it: see limited_child.h.
class LuaSandbox {
 public:
  /// `line` is kept at the line that runs; it may lie in memory shared with the parent process.
  LuaSandbox(const LuaLimits& limits, volatile int* line);
  ~LuaSandbox();
  LuaSandbox(const LuaSandbox&) = delete;
  LuaSandbox& operator=(const LuaSandbox&) = delete;

  [[nodiscard]] lua_State* state() const { return lua_; }
  /// Makes a function of ours a global of the sandbox, with `self` as its first upvalue.
  void define(const char* name, lua_CFunction function, void* self);
  /// Names that code in the sandbox can use.
  [[nodiscard]] std::vector<std::string> globals() const;

  /// Compiles source text (bytecode is refused) and pushes it as a function. `text` may be hostile.
  std::optional<LuaFailure> compile(std::string_view text);
  /// Calls the function below its `arguments` on the stack; afterwards there are `results` values.
  std::optional<LuaFailure> call(int arguments, int results);
  /// Whether the instruction bound ended a call; every later call fails at once.
  [[nodiscard]] bool exhausted() const { return instructions_ > limits_.instructions; }

 private:
  static void* allocate(void* self, void* block, size_t before, size_t after);
  static void hook(lua_State* lua, lua_Debug* activation);
  LuaFailure takeFailure(int status);

  LuaLimits limits_;
  volatile int* line_;
  size_t memory_ = 0;
  uint64_t instructions_ = 0;
  bool deep_ = false;  ///< calls were nested deeply when memory ran out
  lua_State* lua_ = nullptr;
};

/// Gives a fresh state the library of the sandbox; see lua_library.cpp for what is left out and why.
void openSandboxLibrary(lua_State* lua);

}  // namespace muster

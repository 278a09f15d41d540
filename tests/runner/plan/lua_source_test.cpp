// SPDX-License-Identifier: Apache-2.0
// Cutting a function out of a Lua file, and finding what it takes from around it.
#include "runner/plan/lua/lua_source.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

std::string cut(const std::string& file, int first, int last) {
  const auto source = cutFunction(file, first, last);
  return source.ok() ? *source : "error: " + source.error().message;
}

TEST(LuaSource, CutsAtTheMatchingEnd) {
  EXPECT_EQ(cut("x = function(m) return m.cv < 1 end, 3", 1, 1), "function(m) return m.cv < 1 end");
  EXPECT_EQ(cut("\nx = function(m)\n for i = 1, 2 do if i then f() end end\n while a do b() end\n repeat c() "
                "until d\n "
                "return function() end\nend -- end",
                2, 7),
            "function(m)\n for i = 1, 2 do if i then f() end end\n while a do b() end\n repeat c() until d\n "
            "return "
            "function() end\nend");
}

TEST(LuaSource, IsNotFooledByTextsAndComments) {
  const std::string function =
      "function(m) local s = 'end' --[[ end ]] .. \"en\\\"d end\" .. [==[ ]] end ]==] return s end";
  EXPECT_EQ(cut("x = " + function + " y = 'function'", 1, 1), function);
  EXPECT_EQ(cut("--[[ function\n]] x = function(m) -- end\n return 'a\\\nend' end", 2, 4),
            "function(m) -- end\n return 'a\\\nend' end");
  EXPECT_EQ(cut("x = 0x1p-4 .. 3e+5\r\ny = function(m) return m.endpoint end", 2, 2),
            "function(m) return m.endpoint end");
}

TEST(LuaSource, TakesTheNameOffANamedFunction) {
  EXPECT_EQ(cut("local function steady(m) return true end", 1, 1), "function(m) return true end");
  EXPECT_EQ(cut("function a.b.c(m) return true end", 1, 1), "function(m) return true end");
  EXPECT_EQ(cut("function a:b(m) return true end", 1, 1),
            "error: the predicate is a method; expected function(m) ... end");
}

TEST(LuaSource, AsksForALineOfItsOwnIfAmbiguous) {
  EXPECT_EQ(cut("a = function(m) end b = function(m) end", 1, 1),
            "error: line 1 holds 2 functions that could be the predicate; write it on a line of its own");
  EXPECT_EQ(cut("a = 3", 1, 1),
            "error: line 1 holds 0 functions that could be the predicate; write it on a line of its own");
  // Only one of the two ends on line 2.
  EXPECT_EQ(cut("a = function() end b = function(m)\nend", 1, 2), "function(m)\nend");
}

std::vector<std::string> outside(const std::string& function) {
  volatile int line = 0;
  LuaSandbox sandbox({}, &line);
  auto names = namesFromOutside(sandbox, function);
  EXPECT_TRUE(names.ok()) << function;
  return names.ok() ? *names : std::vector<std::string>{"error"};
}

TEST(LuaSource, FindsOnlyTheNamesThatLuaWouldLookForOutside) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(outside("function(m) local a = m.b return math.abs(a) < 1 end"), Names{});
  EXPECT_EQ(outside("function(m) return m.limit < limit end"), Names{"limit"});
  EXPECT_EQ(outside("function(m) do local x = 1 end return x end"), Names{"x"});
  EXPECT_EQ(outside("function(m) for i = 1, k do local t = { j = i } end return true end"), Names{"k"});
  EXPECT_EQ(outside("function(m) y = 1 return function() return z end end"), (Names{"y", "z"}));
  std::string many = "function(m) return 0";
  for (int i = 0; i < 120; ++i) many += " + v" + std::to_string(i);
  EXPECT_EQ(outside(many + " end").size(), 120u);
}

}  // namespace
}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// What Lua code of a plan must not be able to do, attempt by attempt, and what ends it when it does not end.
#include "runner/plan/lua/lua_sandbox.h"

#include "runner/plan/loader.h"
#include "tests/runner/plan/plan_support.h"

namespace muster::testing {
namespace {

std::optional<PlanDocument> evaluated(const std::string& text, Diagnostics& diagnostics) {
  auto input = InputText::of(text, "plan.lua", kLargestPlan, InputText::From::kFrozen);
  return input.ok() ? loadLua(*input, LuaLimits{}, diagnostics) : std::nullopt;
}

/// The problem of evaluating `code`; empty when it ran to its end and returned an empty plan.
std::string problemOf(const std::string& code) {
  Diagnostics diagnostics;
  const auto document = evaluated(code + "\nreturn {}", diagnostics);
  EXPECT_EQ(document.has_value(), !diagnostics.hasErrors());
  return diagnostics.hasErrors() ? diagnostics.sorted()[0].text() : "";
}

void expectRefused(const std::string& code, const std::string& part) {
  const std::string problem = problemOf(code);
  EXPECT_NE(problem.find(part), std::string::npos) << code << "\n" << problem;
}

TEST(LuaSandbox, HasNothingThatReachesOutOfIt) {
  for (const std::string name :
       {"io",         "os",     "package",  "debug",  "require",        "load",         "loadfile",
        "loadstring", "dofile", "pcall",    "xpcall", "coroutine",      "getmetatable", "setmetatable",
        "rawget",     "rawset", "rawequal", "rawlen", "collectgarbage", "print",        "warn",
        "next",       "_G",     "_VERSION"}) {
    expectRefused("local x = " + name, "plan.lua:1: \"" + name + "\" is not available: a plan can compute");
    expectRefused("local x = _ENV[\"" + name + "\"]", "is not available");
  }
}

TEST(LuaSandbox, HasNoFunctionThatOutlivesItsBounds) {
  for (const std::string name : {"string.dump", "string.pack", "string.unpack", "string.packsize",
                                 "table.move", "math.random", "math.randomseed"})
    expectRefused("assert(" + name + " ~= nil, 'gone')", "gone");
}

TEST(LuaSandbox, OffersNoWayBackThroughTexts) {
  expectRefused("local f = (''):dump()", "attempt to call a nil value (method 'dump')");
  expectRefused("local x = ('').rep.x", "attempt to index a function value");
  expectRefused("local x = string.gsub('x', 'x', io)", "\"io\" is not available");
}

/// Stable, so that nothing but the plan decides; an order that is none ends, too.
TEST(LuaSandbox, SortsAlikeEachTime) {
  EXPECT_EQ(problemOf(R"(
    for size = 0, 70 do
      local list, place = {}, {}
      for i = 1, size do list[i] = { key = i * 7919 % 5, i = i } end
      table.sort(list, function(a, b) return a.key < b.key end)
      for i = 2, size do
        local a, b = list[i - 1], list[i]
        assert(a.key < b.key or (a.key == b.key and a.i < b.i), size)
      end
      table.sort(list, function() return true end)
      for _, item in ipairs(list) do place[item.i] = true end
      assert(#place == size, "each is still there")
    end
    local words = { "b", "c", "a" }
    table.sort(words)
    assert(table.concat(words) == "abc")
  )"),
            "");
  expectRefused("table.sort(1)", "table expected, got number");
  expectRefused("table.sort({}, 1)", "function expected, got number");
  expectRefused("table.sort({ 1, {} })", "attempt to compare");
}

/// Two integers that are the same as floating-point numbers; where Lua keeps them depends on the texts
/// beside.
TEST(LuaSandbox, OrdersIntegersExactly) {
  EXPECT_EQ(problemOf(R"(
    local large = 1 << 53
    for round = 1, 200 do
      local mixed, last = { [large] = 1, [large + 1] = 1 }, 0
      for i = 1, 20 do mixed["k" .. round .. "x" .. i] = 1 end
      for key in pairs(mixed) do
        if math.type(key) == "integer" then assert(key > last, "in order") last = key end
      end
    end
  )"),
            "");
}

/// The iterator of pairs() is a function as any other.
TEST(LuaSandbox, TakesNoOtherValueForATable) {
  for (const char* value : {"12345678", "'x'", "true", "nil", "tostring"})
    expectRefused("local f = pairs({ a = 1 }) f(" + std::string(value) + ")", "table expected, got ");
}

TEST(LuaSandbox, RefusesBytecode) {
  expectRefused("\x1bLua\x54", "attempt to load a binary chunk (mode is 't')");
  const std::string chunk("\x1bLua\x54\x00\x19\x93\r\n\x1a\n\x04\x08\x08", 15);
  Diagnostics diagnostics;
  EXPECT_FALSE(evaluated(chunk, diagnostics).has_value());
  ASSERT_TRUE(diagnostics.hasErrors());
  EXPECT_NE(diagnostics.sorted()[0].mistake.message.find("binary chunk"), std::string::npos);
}

TEST(LuaSandbox, ShowsNoAddress) {
  EXPECT_EQ(problemOf("assert(tostring({}) == 'table' and tostring(plan) == 'function')"), "");
  expectRefused("local x = string.format('%p', {})", "%p is not available");
  expectRefused("local x = ('%5p'):format('x')", "%p is not available");
  expectRefused("local x = string.format('%s', {})", "argument 2 is a table");
  EXPECT_EQ(problemOf("assert(string.format('%d%%p %5.1f', 3, 2.5) == '3%p   2.5')"), "");
}

TEST(LuaSandbox, NamesTheNearestGlobalOnATypo) {
  expectRefused("\nstgae{}", "plan.lua:2: unknown name \"stgae\"; did you mean \"stage\"?");
  EXPECT_EQ(problemOf("x = 3\nassert(x == 3)"), "");
}

TEST(LuaSandbox, EndsALoopWithoutAnEndAtItsLine) {
  expectRefused("local x = 0\nwhile true do\n  x = x + 1\nend",
                ": still running after 20000000 instructions; does it contain an endless loop?");
  expectRefused("local function f() return f() end\nf()",
                "plan.lua:1: still running after 20000000 instructions");
  expectRefused("table.sort({3, 2, 1}, function(a, b) while true do end end)", "plan.lua:1: still running");
  expectRefused("::again:: goto again", "plan.lua:1: still running");
}

TEST(LuaSandbox, EndsARecursionWithoutAnEnd) {
  const std::string deep = "calls nest deeper than 10000 levels; does a function call itself endlessly?";
  expectRefused("local function f() return 1 + f() end\nf()", "plan.lua:1: " + deep);
  expectRefused(
      "local a, b\nfunction a(t) return 1 + b({t}) end\nfunction b(t)\n  return 1 + a({t})\nend\na()", deep);
  expectRefused("local function f(x) return f(x .. x) .. 'y' end\nf('x')",
                "needs more than 64 MiB of memory");
  expectRefused("local t = " + std::string(1000, '{') + std::string(1000, '}'), "nests too deeply");
  expectRefused("local x = " + std::string(100000, '(') + "1" + std::string(100000, ')'), "nests too deeply");
  expectRefused("local x = " + std::string(100000, '-') + "\n1 +", "plan.lua:");
  std::string blocks;
  for (int i = 0; i < 1000; ++i) blocks += "do ";
  expectRefused(blocks, "nests too deeply");
}

TEST(LuaSandbox, BoundsMemory) {
  const std::string memory = "needs more than 64 MiB of memory; a plan may use no more";
  expectRefused("local t = {}\nfor i = 1, 1e9 do\n  t[i] = { i, i }\nend", "plan.lua:3: " + memory);
  expectRefused("local s = 'x'\nwhile true do s = s .. s end", "plan.lua:2: " + memory);
  expectRefused("local s = ('x'):rep(1 << 26)", "plan.lua:1: " + memory);
  expectRefused("local s = ('x'):rep(1 << 60)", "string.rep: the text would be longer than 64 MiB");
  expectRefused("local s = (''):rep(1 << 60)", "string.rep: the text would be longer than 64 MiB");
  expectRefused("local s = ('x'):rep(1 << 25):gsub('x', 'yyyy')", memory);
  expectRefused("local t = table.pack(string.byte(('x'):rep(1 << 20), 1, -1))", "string slice too long");
}

TEST(LuaSandbox, EndsAPatternThatTriesEveryWay) {
  // By CPU time, or by the wall clock where the machine is busy.
  const std::string problem = problemOf("local s = ('a'):rep(4000)\ns:find(('.-'):rep(12) .. 'b')");
  EXPECT_EQ(problem.find("plan.lua:2: the plan was still running after "), 0u) << problem;
  EXPECT_NE(problem.find("a text pattern with excessive backtracking?"), std::string::npos) << problem;
}

}  // namespace
}  // namespace muster::testing

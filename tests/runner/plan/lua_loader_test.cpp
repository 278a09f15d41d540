// SPDX-License-Identifier: Apache-2.0
// Lua plans: the table they return, the lines of their mistakes, and the message between child and parent.
#include "runner/plan/loader.h"

#include "tests/runner/plan/plan_support.h"
#include "tests/runner/plan/sample_catalog.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

std::string luaProblems(const std::string& text) {
  return problemsOf(parseLua(text));
}

/// A plan whose stage holds `entries`, from line 3 on.
std::string luaGemm(const std::string& entries) {
  return "return plan{ schema = 1, name = 'p', backend = 'host',\n"
         "stage{ name = 'gemm', plugin = 'compute', test = 'gemm',\n" +
         entries + "\n} }";
}

TEST(LuaLoader, BuildsStagesWithLoopsAndFunctions) {
  const Plan plan = planOf(parseLua(R"(
local function gemm(dtype, size)
  return stage{
    name = string.format("gemm-%s-%d", dtype, size), plugin = "compute", test = "gemm",
    params = { dtype = dtype, size = size },
  }
end
local stages = {}
for _, dtype in ipairs{ "bf16", "f32" } do
  for size = 1024, 2048, 1024 do stages[#stages + 1] = gemm(dtype, size) end
end
return plan{ schema = 1, name = "loops", backend = "host", stage = stages }
)"));
  ASSERT_EQ(plan.stages.size(), 4u);
  EXPECT_EQ(plan.stages[3].name, "gemm-f32-2048");
  EXPECT_EQ(plan.stages[3].cases[0].params["size"], 2048);
  EXPECT_EQ(plan.stages[3].at.text(), "plan.lua:3");
}

TEST(LuaLoader, TakesAPlainTableToo) {
  const Plan plan =
      planOf(parseLua("return { schema = 1, name = 'p', backend = 'host',\n"
                      "  stage = { { name = 'g', plugin = 'compute', test = 'gemm', needs = {} } } }"));
  EXPECT_EQ(plan.stages.size(), 1u);
}

TEST(LuaLoader, TellsEveryMistakeWithTheLineOfItsCall) {
  EXPECT_EQ(luaProblems(R"(local limit = 0.02
local stages = {}
for i = 1, 2 do
  stages[#stages + 1] = stage{ name = "g" .. i, plugin = "compute", test = "gemm",
    timeut = 3,
    expect{ metric = "compute.gemm_time", predicate = function(m) return m.cv < limit end },
    expect{ metric = "compute.gemm_time", predicate = "m.cv" },
    expect{ metric = "compute.gemm_throughput", min = "650 GiB/s" },
    params = { size = 3 },
  }
end
return plan{ schema = 1, nmae = "x", backend = "host", stage = stages }
)"),
            R"(plan.lua:4: stage "g1": unknown key "timeut"; did you mean "timeout"?
plan.lua:4: stage "g1": parameter "size": found 3; expected a whole number from 16 to 65536
plan.lua:4: stage "g2": unknown key "timeut"; did you mean "timeout"?
plan.lua:4: stage "g2": parameter "size": found 3; expected a whole number from 16 to 65536
plan.lua:6: predicate: it uses "limit" from outside; a predicate is stored as text and evaluated alone, so write the value into it
plan.lua:7: stage "g1", expect 2: predicate: found "m.cv"; expected a function, for example function(m) return m.cv < 0.02 end
plan.lua:7: stage "g2", expect 2: predicate: found "m.cv"; expected a function, for example function(m) return m.cv < 0.02 end
plan.lua:8: stage "g1", expect 3: `min`: "650 GiB/s" is in B/s; expected FLOP/s (GFLOP/s, TFLOP/s, PFLOP/s)
plan.lua:8: stage "g2", expect 3: `min`: "650 GiB/s" is in B/s; expected FLOP/s (GFLOP/s, TFLOP/s, PFLOP/s)
plan.lua:12: unknown key "nmae"; did you mean "name"?
plan.lua:12: name is missing; expected a name
)");
}

TEST(LuaLoader, TellsWhatLuaSays) {
  EXPECT_EQ(luaProblems("x = = 3"), "plan.lua:1: unexpected symbol near '='\n");
  EXPECT_EQ(luaProblems("\n\nlocal x = nil + 1"),
            "plan.lua:3: attempt to perform arithmetic on a nil value\n");
  EXPECT_EQ(luaProblems("\nerror('no such rack')"), "plan.lua:2: no such rack\n");
  EXPECT_EQ(luaProblems("\nerror({})"), "plan.lua:2: error() was called with a table; expected a text\n");
  EXPECT_EQ(luaProblems("\n\nassert(1 == 2)"), "plan.lua:3: assertion failed!\n");
  EXPECT_EQ(luaProblems("return plan{ repeat = 3 }"),
            "plan.lua:1: unexpected symbol near 'repeat'; repeat is a word of Lua itself, so as a key it is "
            "written "
            "[\"repeat\"] = 3\n");
}

TEST(LuaLoader, RefusesAKeyThatStandsTwiceInOneTable) {
  EXPECT_EQ(luaProblems("return plan{\n  schema = 1, name = 'p',\n  stage{ name = 'a',\n    timeout = '1m',\n"
                        "    params = { timeout = 1 },\n    timeout = '5m' } }"),
            "plan.lua:6: the key timeout is defined twice in one table, first in line 4; expected one "
            "definition\n");
  // The same names in other tables, in functions and in comparisons are no keys of this one.
  for (const char* fine :
       {"local t = { a = 1, b = { a = 2 }, c = { a = 3 } }",
        "local t = { a = function() local a; a = 1; a = 2 end, b = 1 }",
        "local a = 1; local t = { a = 1, a == 1, a == 2 }", "local t = { a = 1 } t = { a = 2 }",
        "local t = { f = function(n) for i = 1, n do if n then n = 2 end end repeat n = 1 until n end, n = 1 "
        "}",
        "local t = { a = 'a = 1, a = 2' --[[ , a = 3 ]] }"})
    EXPECT_EQ(luaProblems(std::string(fine) + "\nreturn 3").find("twice"), std::string::npos) << fine;
}

TEST(LuaLoader, WantsATableBack) {
  EXPECT_EQ(
      luaProblems("local x = 1\n"),
      "plan.lua:1: the plan returns nothing; expected a table: end it with return plan{ schema = 1, ... }\n");
  EXPECT_EQ(
      luaProblems("return 3"),
      "plan.lua:1: the plan returns number; expected a table: end it with return plan{ schema = 1, ... }\n");
  EXPECT_EQ(
      luaProblems(""),
      "plan.lua:1: the plan returns nothing; expected a table: end it with return plan{ schema = 1, ... }\n");
  EXPECT_EQ(luaProblems("\nreturn plan('x')"),
            "plan.lua:2: plan: found a string; expected a table, for example plan{ schema = 1, name = "
            "\"node\", stage{ ... } "
            "}\n");
}

TEST(LuaLoader, NamesWhatStandsInAListByMistake) {
  EXPECT_EQ(luaProblems(luaGemm("expect{ metric = 'compute.gemm_time', max = '1s' }, { metric = 3 }, 'x'")),
            "plan.lua:2: entry 2 without a key is a table; expected expect{ ... }, or a key before it\n"
            "plan.lua:2: entry 3 without a key is a string; expected expect{ ... }, or a key before it\n"
            "plan.lua:2: stage \"gemm\": expect: no set \"x\" among [expectations]; there is none\n"
            "plan.lua:2: stage \"gemm\", expect 2: `metric` must be a text that is not empty, found 3\n"
            "plan.lua:2: stage \"gemm\", expect 2: an expectation needs a limit: min, max, equals, one_of, "
            "contains, excludes, baseline with tolerance, within, of_peak, cv_max or drop_max\n");
  EXPECT_NE(luaProblems(luaGemm("needs = { 'a', nil, 'b' }")).find("is nil; is a name misspelled?"),
            std::string::npos);
  EXPECT_NE(luaProblems(luaGemm("params = { size = 64, 3 }")).find("mixes a list with named keys"),
            std::string::npos);
  EXPECT_NE(luaProblems(luaGemm("expect{}, expect = {}"))
                .find("expect is defined both as a key and as expect{ ... } entries"),
            std::string::npos);
  EXPECT_NE(luaProblems(luaGemm("params = { [2.5] = 3 }")).find("a key that is a number"), std::string::npos);
  EXPECT_NE(luaProblems(luaGemm("params = { size = print }")).find("\"print\" is not available"),
            std::string::npos);
  EXPECT_NE(luaProblems(luaGemm("params = { size = tostring }")).find("size: found a function"),
            std::string::npos);
}

TEST(LuaLoader, KeepsNumbersThatJsonCannotHold) {
  for (const std::string number : {"0/0", "1/0", "-1/0"}) {
    const std::string problems = luaProblems(luaGemm("timeout = " + number));
    EXPECT_NE(problems.find("plan.lua:2: stage \"gemm\": timeout: found "), std::string::npos) << problems;
  }
}

TEST(LuaLoader, RefusesTextsThatAreNotUtf8) {
  EXPECT_EQ(luaProblems(luaGemm("scope = '\\xff'")).find("plan.lua:2: found the text"), 0u);
  EXPECT_EQ(luaProblems(luaGemm("['\\xff'] = 1")).find("plan.lua:2: found the key"), 0u);
  EXPECT_EQ(luaProblems(luaGemm("scope = 'a\\0b'")).find("plan.lua:2: found the text"), 0u);
}

TEST(LuaLoader, BoundsTheTable) {
  const std::string head = "local t = {}\n";
  EXPECT_NE(luaProblems(head + "t.t = t\nreturn t")
                .find("tables nest deeper than 32 levels; does one hold itself?"),
            std::string::npos);
  EXPECT_NE(luaProblems(head + "for i = 1, 200000 do t[i] = i end\nreturn { x = t }")
                .find("more than 100000 values"),
            std::string::npos);
  EXPECT_NE(
      luaProblems(head + "for i = 1, 2000 do t['k' .. i] = i end\nreturn t").find("more than 1000 keys"),
      std::string::npos);
  EXPECT_NE(luaProblems(head + "t[string.rep('x', 1001)] = 1\nreturn t").find("a key of 1001 bytes"),
            std::string::npos);
  EXPECT_NE(luaProblems(head +
                        "local s = string.rep('x', 1 << 20)\nfor i = 1, 40 do t[i] = s end\nreturn { x = t }")
                .find("more than 16777216 bytes"),
            std::string::npos);
  EXPECT_NE(luaProblems(head + "for i = 1, 40 do t = { t, t } end\nreturn { x = t }").find("nest deeper"),
            std::string::npos);
}

TEST(LuaLoader, KeepsAPredicateAsItsText) {
  const Plan plan =
      planOf(parseLua(luaGemm(R"(expect{ metric = "compute.gemm_time", predicate = function(m) -- end
  if m.n > 3 then return m.cv < 0.02 end
  return true, "few samples" end }
)")));
  ASSERT_EQ(plan.stages.size(), 1u);
  ASSERT_EQ(plan.stages[0].expectations.size(), 1u);
  EXPECT_EQ(plan.stages[0].expectations[0].kind, CheckKind::kPredicate);
  EXPECT_EQ(plan.stages[0].expectations[0].at, "plan.lua:3");
  EXPECT_EQ(plan.stages[0].expectations[0].predicate,
            "function(m) -- end\n  if m.n > 3 then return m.cv < 0.02 end\n"
            "  return true, \"few samples\" end");
}

TEST(LuaLoader, RefusesPredicatesThatCannotStandAlone) {
  const auto problems = [](const std::string& before, const std::string& predicate) {
    return luaProblems(before +
                       luaGemm("expect{ metric = 'compute.gemm_time', predicate = " + predicate + " }"));
  };
  const std::string alone =
      "; a predicate is stored as text and evaluated alone, so write the value into it\n";
  EXPECT_EQ(problems("local a, b = 1, 2\n", "function(m) return m.cv < a + b end"),
            "plan.lua:4: predicate: it uses \"a\", \"b\" from outside" + alone);
  EXPECT_EQ(problems("limit = 3\n", "function(m) return m.cv < limit end"),
            "plan.lua:4: predicate: it uses \"limit\" from outside" + alone);
  EXPECT_EQ(problems("", "function(m) count = 3 return true end"),
            "plan.lua:3: predicate: it uses \"count\" from outside" + alone);
  EXPECT_EQ(problems("", "function(m) stage{} return true end"),
            "plan.lua:3: predicate: it uses \"stage\" from outside" + alone);
  EXPECT_EQ(problems("", "function() return true end"),
            "plan.lua:3: predicate: the function ignores the measurement; expected function(m) ... end\n");
  EXPECT_EQ(problems("", "tostring"),
            "plan.lua:3: predicate: found a library function; expected function(m) ... end\n");
  EXPECT_EQ(problems("", "(function(x) return function(m) return true end end)(1)"),
            "plan.lua:3: predicate: line 3 holds 2 functions that could be the predicate; write it on a line "
            "of its own\n");
}

TEST(LuaLoader, SeesPairsInTheOrderOfTheKeys) {
  const Plan plan = planOf(parseLua(R"(
local seen = {}
for key, value in pairs{ zebra = 1, apple = 2, [3] = "c", [1] = "a", [true] = 4 } do
  seen[#seen + 1] = tostring(key) .. "=" .. tostring(value)
end
return plan{ schema = 1, name = "p", backend = "host", description = table.concat(seen, " "),
  stage{ name = "gemm", plugin = "compute", test = "gemm" } }
)"));
  EXPECT_EQ(plan.description, "1=a 3=c apple=2 zebra=1 true=4");
}

/// What the parent makes of a message.
std::string expectBroken(const std::string& message) {
  Diagnostics diagnostics;
  EXPECT_FALSE(readLuaMessage(message, "plan.lua", diagnostics).has_value()) << message;
  EXPECT_TRUE(diagnostics.hasErrors()) << message;
  return diagnostics.sorted().empty() ? "" : diagnostics.sorted()[0].text();
}

TEST(LuaLoader, DoesNotTrustTheChild) {
  const std::string rest = R"("lines": [], "functions": [], "numbers": [], "problems": [])";
  for (const std::string& message : std::vector<std::string>{
           "", "null", "[]", "{", "{}", "{\"root\": {}}", "{\"root\": 3, " + rest + "}", "{" + rest + "}",
           R"({"root": {}, "lines": [["a"]], "functions": [], "numbers": [], "problems": []})",
           R"({"root": {}, "lines": [], "functions": [3], "numbers": [], "problems": []})",
           R"({"root": {}, "lines": [], "functions": [], "numbers": [["nowhere", "nan"]], "problems": []})",
           R"({"root": {}, "lines": [], "functions": [], "numbers": [["/~9", "nan"]], "problems": []})",
           R"({"root": {"a": 1}, "lines": [], "functions": [], "numbers": [["/a", "many"]], "problems": []})",
           R"({"root": {}, "lines": [], "functions": [], "numbers": [], "problems": [[1]]})",
           std::string(100000, '[')})
    EXPECT_NE(expectBroken(message).find("please report this as a bug in Muster"), std::string::npos)
        << message;
  EXPECT_EQ(expectBroken(R"({"problems": [[-7, "odd \u001b line"]]})"), "plan.lua: odd \\x1b line");
}

/// The plan in `folder`, with the files that it includes; the problems without the folder's path.
std::string loaded(const TempDir& folder, std::optional<Plan>& plan) {
  const PlanOutcome outcome = loadPlan(folder.path() / "plan.lua", sampleCatalog(), {});
  plan = outcome.plan;
  std::string problems = problemsOf(outcome);
  for (size_t at; (at = problems.find(folder.path().string() + "/")) != std::string::npos;)
    problems.erase(at, folder.path().string().size() + 1);
  return problems;
}

constexpr const char* kWithLibrary = R"(local lib = include "common/lib.lua"
include "limits.toml"
return plan{ schema = 1, name = "p", backend = "host",
  lib.gemm("a", 1024), lib.gemm("b", 2048) }
)";
constexpr const char* kLibrary = R"(local sizes = include("deep.lua")
local lib = {}
function lib.gemm(name, size)
  return stage{ name = name, plugin = "compute", test = "gemm", params = { size = sizes.twice(size) },
    expect = { "slow", expect{ metric = "compute.gemm_time",
      predicate = function(m)
        return m.median < 3
      end } } }
end
return lib
)";

TEST(LuaLoader, IncludesFunctionLibrariesAndTomlFiles) {
  TempDir folder;
  folder.write("plan.lua", kWithLibrary);
  folder.write("common/lib.lua", kLibrary);
  folder.write("common/deep.lua", "return { twice = function(n) return 2 * n end }");
  folder.write("limits.toml",
               "sku = \"host\"\n[expectations.slow]\nmetric = \"compute.gemm_time\"\nmax = \"1s\"\n");
  std::optional<Plan> plan;
  ASSERT_EQ(loaded(folder, plan), "");
  ASSERT_EQ(plan->stages.size(), 2u);
  EXPECT_EQ(plan->stages[1].cases[0].params["size"], 4096);
  ASSERT_EQ(plan->stages[0].expectations.size(), 2u);
  EXPECT_EQ(plan->stages[0].expectations[0].limit, 1);
  EXPECT_TRUE(plan->stages[0].expectations[0].at.ends_with("limits.toml:2"))
      << plan->stages[0].expectations[0].at;
  EXPECT_NE(plan->stages[0].expectations[1].predicate.find("return m.median < 3"), std::string::npos);
  EXPECT_TRUE(plan->stages[0].expectations[1].at.ends_with("plan.lua:4"))
      << "the call, not the library's line";
  EXPECT_EQ(plan->sku, "host");
  EXPECT_EQ(plan->includes.size(), 3u);
  // What is frozen needs no file.
  const PlanOutcome again = parsePlan(plan->text, "/nonexistent/plan.lua", sampleCatalog(), {});
  ASSERT_EQ(problemsOf(again), "");
  EXPECT_EQ(modelOf(*again.plan), modelOf(*plan));
  EXPECT_EQ(again.plan->sha256, plan->sha256);
  EXPECT_EQ(*frozenPlanText(folder.path() / "plan.lua"), plan->text);
}

TEST(LuaLoader, NamesTheLineOfAMistakeInALibrary) {
  TempDir folder;
  std::optional<Plan> plan;
  folder.write("plan.lua", "local lib = include 'lib.lua'\nreturn lib.make()\n");
  const auto problem = [&](const std::string& library) {
    folder.write("lib.lua", library);
    return loaded(folder, plan);
  };
  EXPECT_EQ(problem("return {\n make = function()\n  return nil + 1\n end }"),
            "lib.lua:3: attempt to perform arithmetic on a nil value\n");
  EXPECT_EQ(problem("\nreturn {"), "lib.lua:2: unexpected symbol near <eof>\n");
  EXPECT_EQ(problem("x = io\n"),
            "lib.lua:1: \"io\" is not available: a plan can compute, but not reach files, processes or "
            "other code\n");
  EXPECT_EQ(problem("local lib = {}"),
            "plan.lua:1: include: lib.lua returns nothing; end it with return { ... }\n");
  EXPECT_NE(problem("while true do end").find("still running after"), std::string::npos);
  EXPECT_NE(problem("local t = {} for i = 1, 1e8 do t[i] = i end").find("memory"), std::string::npos);
}

TEST(LuaLoader, RefusesIncludesThatLeadElsewhere) {
  TempDir folder;
  std::optional<Plan> plan;
  const auto problem = [&](const std::string& text) {
    folder.write("plan.lua", text);
    return loaded(folder, plan);
  };
  EXPECT_EQ(problem("include 'a.lua'\n"),
            "plan.lua:1: include: cannot read a.lua: No such file or directory\n");
  EXPECT_NE(problem("\ninclude '../a.lua'\n")
                .find("plan.lua:2: include: found \"../a.lua\"; expected a path of plain names"),
            std::string::npos);
  EXPECT_EQ(problem("include 'a.txt'\n"),
            "plan.lua:1: include: found \"a.txt\"; expected a file .lua or .toml\n");
  EXPECT_EQ(problem("local name = 'a.lua'\ninclude(name)\n"),
            "plan.lua:2: include: the path must stand in quotes behind the word include, as in include "
            "\"lib.lua\"\n");
  EXPECT_EQ(problem("include(3)\n"), "plan.lua:1: include: found a number; expected a path in quotes\n");
  folder.write("a.lua", "\nreturn include 'b.lua'");
  folder.write("b.lua", "return include 'a.lua'");
  EXPECT_EQ(problem("include 'a.lua'\n"),
            "b.lua:1: include: a.lua includes itself: a.lua -> b.lua -> a.lua\n");
  folder.write("c.toml", "[[stage]]\nname = \"x\"\n");
  EXPECT_EQ(problem("include 'c.toml'\nreturn {}\n"),
            "c.toml:1:3: a file that a Lua plan includes holds no [[stage]]: write stage{ ... } in Lua\n");
  EXPECT_NE(
      problem("return plan{ schema = 1, name = 'p', include = { 'c.toml' } }").find("a statement of its own"),
      std::string::npos);
}

}  // namespace
}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Evaluates Lua predicates in the child process.
#include "runner/plan/lua/predicate.h"

#include <fmt/format.h>

#include "runner/core/text.h"
#include "runner/plan/lua/lua_sandbox.h"
#include "runner/system/limited_child.h"

namespace muster {
namespace {

const std::vector<std::string> kFields = {"cv",  "labels", "max",     "mean", "median", "metric",
                                          "min", "n",      "samples", "text", "unit"};
constexpr size_t kLongestMessage = 1000;

int unknownField(lua_State* lua) {
  const std::string name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : luaL_typename(lua, 2);
  const std::string help = didYouMean(name, kFields);
  return luaL_error(lua, "a measurement has no \"%s\"%s", printable(name, 80).c_str(),
                    help.empty() ? ("; it has " + join(kFields, ", ")).c_str() : help.c_str());
}

void setText(lua_State* lua, const char* key, const std::string& text) {
  lua_pushlstring(lua, text.data(), text.size());
  lua_setfield(lua, -2, key);
}

void setNumber(lua_State* lua, const char* key, double number) {
  lua_pushnumber(lua, number);
  lua_setfield(lua, -2, key);
}

void setSamples(lua_State* lua, const std::vector<double>& samples) {
  lua_createtable(lua, static_cast<int>(samples.size()), 0);
  for (size_t i = 0; i < samples.size(); ++i) {
    lua_pushnumber(lua, samples[i]);
    lua_rawseti(lua, -2, static_cast<lua_Integer>(i) + 1);
  }
  lua_setfield(lua, -2, "samples");
}

/// Called by Lua, so that running out of memory is an error there: builds `m` from the measurement in
/// upvalue 1.
int pushMeasurement(lua_State* lua) {
  const auto& measurement = *static_cast<const Measurement*>(lua_touserdata(lua, lua_upvalueindex(1)));
  const Summary summary = summarize(measurement.samples);
  lua_newtable(lua);
  setText(lua, "metric", measurement.metric);
  setText(lua, "unit", measurement.unit);
  setText(lua, "text", measurement.text);
  lua_newtable(lua);
  for (const auto& [name, value] : measurement.labels) setText(lua, name.c_str(), value);
  lua_setfield(lua, -2, "labels");
  setSamples(lua, measurement.samples);
  lua_pushinteger(lua, static_cast<lua_Integer>(measurement.samples.size()));
  lua_setfield(lua, -2, "n");
  setNumber(lua, "mean", summary.mean);
  setNumber(lua, "median", summary.median);
  setNumber(lua, "min", summary.min);
  setNumber(lua, "max", summary.max);
  setNumber(lua, "cv", summary.cv);
  lua_newtable(lua);
  lua_pushcfunction(lua, unknownField);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, -2);
  return 1;
}

/// What the predicate, at index 1 of the stack, says of one measurement.
PredicateAnswer ask(LuaSandbox& sandbox, const Measurement& measurement) {
  lua_State* lua = sandbox.state();
  lua_settop(lua, 1);
  lua_pushvalue(lua, 1);
  lua_pushlightuserdata(lua, const_cast<Measurement*>(&measurement));
  lua_pushcclosure(lua, pushMeasurement, 1);
  auto failure = sandbox.call(0, 1);
  if (!failure) failure = sandbox.call(1, 2);
  if (failure)
    return {
        false, "",
        failure->line > 1 ? fmt::format("line {}: {}", failure->line, failure->message) : failure->message};
  if (lua_type(lua, 2) != LUA_TBOOLEAN)
    return {false, "",
            fmt::format("the predicate returned a {}; expected true or false", luaL_typename(lua, 2))};
  PredicateAnswer answer;
  answer.met = lua_toboolean(lua, 2) != 0;
  if (lua_type(lua, 3) == LUA_TSTRING) answer.message = printable(lua_tostring(lua, 3), kLongestMessage);
  return answer;
}

Json toJson(const PredicateAnswer& answer) {
  return {{"met", answer.met}, {"message", answer.message}, {"error", answer.error}};
}

/// Runs in the child: the answers, or why the predicate cannot be asked at all.
std::string evaluate(const std::string& source, const std::vector<Measurement>& measurements,
                     const LuaLimits& limits, volatile int* line) {
  LuaSandbox sandbox(limits, line);
  auto failure = sandbox.compile("return " + source);
  if (!failure) failure = sandbox.call(0, 1);
  if (failure) return dumpJson({{"problem", failure->message}});
  if (lua_type(sandbox.state(), 1) != LUA_TFUNCTION) return dumpJson({{"problem", "it is not a function"}});
  Json answers = Json::array();
  for (const Measurement& measurement : measurements) {
    answers.push_back(toJson(ask(sandbox, measurement)));
    // A failed call clears the stack; the predicate is compiled again.
    if (lua_type(sandbox.state(), 1) == LUA_TFUNCTION) continue;
    lua_settop(sandbox.state(), 0);
    if (sandbox.exhausted() || sandbox.compile("return " + source) || sandbox.call(0, 1)) break;
  }
  const std::string reason = answers.empty() ? "" : answers.back()["error"].get<std::string>();
  while (answers.size() < measurements.size())
    answers.push_back(toJson({false, "", "not evaluated, because of an earlier measurement: " + reason}));
  return dumpJson({{"answers", std::move(answers)}});
}

Result<PredicateAnswer> readAnswer(const Json& json, const std::string& path) {
  PredicateAnswer answer;
  JsonReader reader(json, path);
  reader.read("met", answer.met);
  reader.read("message", answer.message);
  reader.read("error", answer.error);
  MUSTER_CHECK_OK(reader.status());
  if (!answer.error.empty()) answer.met = false;
  return answer;
}

Result<std::vector<PredicateAnswer>> readAnswers(const std::string& text, size_t expected) {
  MUSTER_TRY(const Json message, parseJson(text));
  JsonReader reader(message, "predicate");
  if (reader.has("problem")) {
    std::string problem;
    reader.read("problem", problem);
    return Error{ErrorCode::kUsage, "the predicate cannot be evaluated: " + printable(problem), ""};
  }
  std::vector<PredicateAnswer> answers;
  reader.each("answers", [&](const Json& item, const std::string& path) -> Status {
    MUSTER_TRY(PredicateAnswer answer, readAnswer(item, path));
    answers.push_back(std::move(answer));
    return {};
  });
  MUSTER_CHECK_OK(reader.status());
  if (answers.size() != expected)
    return Error{ErrorCode::kProtocol,
                 fmt::format("the predicate gave {} answers for {} measurements", answers.size(), expected),
                 ""};
  return answers;
}

}  // namespace

Result<std::vector<PredicateAnswer>> evaluatePredicate(const std::string& source,
                                                       const std::vector<Measurement>& measurements) {
  const LuaLimits limits;
  const ChildEnd child =
      runInChild(limits, [&](volatile int* line) { return evaluate(source, measurements, limits, line); });
  if (!child.problem.empty()) return Error{ErrorCode::kTimeout, "the predicate " + child.problem, ""};
  return readAnswers(child.output, measurements.size());
}

}  // namespace muster

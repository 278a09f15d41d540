// SPDX-License-Identifier: Apache-2.0
// Finds the source text of a Lua function.
#include "runner/plan/lua/lua_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/core/text.h"
#include "runner/plan/lua/lua_lexer.h"

namespace muster {
namespace {

/// A Lua function may hold 200 locals; the names are tried in groups of fewer.
constexpr size_t kNamesAtOnce = 100;

Error problem(const std::string& message) {
  return {ErrorCode::kUsage, message, ""};
}

/// Index of the `end` of the function whose keyword is tokens[at]; tokens.size() when there is none.
size_t endOf(const std::vector<LuaToken>& tokens, size_t at) {
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    const std::string_view word = tokens[at].text;
    if (word == "function" || word == "do" || word == "if") ++depth;
    if (word == "end" && --depth == 0) return at;
  }
  return at;
}

/// Index of the "(" that opens the parameters, past the name of a named function; tokens.size() for a method.
size_t parametersOf(const std::vector<LuaToken>& tokens, size_t function) {
  for (size_t at = function + 1; at < tokens.size(); ++at) {
    if (tokens[at].text == "(") return at;
    if (tokens[at].text == ":") break;
  }
  return tokens.size();
}

std::vector<std::string> namesIn(const std::string& function, const std::vector<std::string>& known) {
  std::set<std::string> names;
  for (const LuaToken& token : luaTokens(function))
    if (token.isName() && !isLuaKeyword(token.text)) names.emplace(token.text);
  for (const std::string& name : known) names.erase(name);
  return {names.begin(), names.end()};
}

}  // namespace

Result<std::string> cutFunction(std::string_view file, int firstLine, int lastLine) {
  const std::vector<LuaToken> tokens = luaTokens(file);
  std::vector<std::pair<size_t, size_t>> found;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].line != firstLine || tokens[i].text != "function") continue;
    const size_t end = endOf(tokens, i);
    if (end < tokens.size() && tokens[end].line == lastLine) found.emplace_back(i, end);
  }
  if (found.size() != 1)
    return problem(
        fmt::format("line {} holds {} functions that could be the predicate; write it on a line of its own",
                    firstLine, found.size()));
  const auto [start, end] = found.front();
  const size_t parameters = parametersOf(tokens, start);
  if (parameters == tokens.size()) return problem("the predicate is a method; expected function(m) ... end");
  const size_t from = tokens[parameters].offset;
  return "function" + std::string(file.substr(from, tokens[end].offset + 3 - from));
}

Result<std::vector<std::string>> namesFromOutside(LuaSandbox& sandbox, const std::string& function) {
  const std::vector<std::string> names = namesIn(function, sandbox.globals());
  std::vector<std::string> outside;
  // A free name becomes an upvalue once a local of that name stands before the function: Lua itself decides.
  for (size_t first = 0; first < names.size(); first += kNamesAtOnce) {
    const auto begin = names.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end =
        names.begin() + static_cast<std::ptrdiff_t>(std::min(first + kNamesAtOnce, names.size()));
    const std::vector<std::string> group(begin, end);
    auto failure = sandbox.compile("local " + join(group, ",") + " return " + function);
    if (!failure) failure = sandbox.call(0, 1);
    if (failure) return problem(failure->message);
    for (int i = 1; const char* upvalue = lua_getupvalue(sandbox.state(), -1, i); ++i) {
      lua_pop(sandbox.state(), 1);
      if (std::find(begin, end, upvalue) != end) outside.emplace_back(upvalue);
    }
    lua_settop(sandbox.state(), 0);
  }
  return outside;
}

std::vector<LuaInclude> luaIncludes(std::string_view text) {
  std::vector<LuaInclude> found;
  std::string_view before;
  for (const LuaToken& token : luaTokens(text)) {
    const bool field = before == "." || before == ":";
    before = token.text;
    if (token.text != "include" || field) continue;
    size_t at = token.offset + token.text.size();
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '(')) ++at;
    if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) continue;
    const size_t end = text.find(text[at], at + 1);
    if (end == std::string_view::npos) continue;
    found.push_back({std::string(text.substr(at + 1, end - at - 1)), token.line});
  }
  return found;
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// The two languages of plans: each loader turns text into the same kind of document.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runner/inputs/toml_input.h"
#include "runner/plan/document.h"
#include "runner/plan/lua/lua_limits.h"
#include "runner/plan/lua/lua_plan.h"

namespace muster {

/// Parses a TOML plan with what it includes. Mistakes go to `diagnostics`; without a value there is nothing
/// to validate.
std::optional<PlanDocument> loadToml(InputText& input, Diagnostics& diagnostics);

/// Reads the files that a Lua plan includes, and those that they include, into `input`.
Status readLuaIncludes(InputText& input);

/// "plan.toml:12:3", or "plan.lua:12".
SourcePosition positionFrom(std::string where);

/// Notes the places of `value`, which stands at `pointer` in a TOML document, and of all below it.
void addTomlPlaces(const TomlDocument& parsed, const std::string& pointer, const Json& value,
                   PlanDocument& out);

/// Evaluates a Lua plan in a limited child process and reads back the table that it returned.
std::optional<PlanDocument> loadLua(InputText& input, const LuaLimits& limits, Diagnostics& diagnostics);

/// Reads what the child wrote, as the hostile data it may be; part of loadLua(), apart for tests and fuzzers.
/// `files`: mistakes in these are told at their own lines.
std::optional<PlanDocument> readLuaMessage(std::string_view message, const std::string& file,
                                           Diagnostics& diagnostics, const LuaFiles& files = {});

}  // namespace muster

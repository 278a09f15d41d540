// SPDX-License-Identifier: Apache-2.0
// The two languages of plans: each loader turns text into the same kind of document.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runner/plan/document.h"
#include "runner/plan/lua/lua_limits.h"

namespace muster {

/// What some editors put first; it is no part of a plan.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Parses a TOML plan. Mistakes go to `diagnostics`; without a value there is nothing to validate.
std::optional<PlanDocument> loadToml(std::string_view text, const std::string& file,
                                     Diagnostics& diagnostics);

/// Evaluates a Lua plan in a limited child process and reads back the table that it returned.
std::optional<PlanDocument> loadLua(std::string_view text, const std::string& file, const LuaLimits& limits,
                                    Diagnostics& diagnostics);

/// Reads what the child wrote, as the hostile data it may be; part of loadLua(), apart for tests and fuzzers.
std::optional<PlanDocument> readLuaMessage(std::string_view message, const std::string& file,
                                           Diagnostics& diagnostics);

}  // namespace muster

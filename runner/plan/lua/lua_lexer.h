// SPDX-License-Identifier: Apache-2.0
// The words of a Lua text: enough to find where a function ends. The text has been compiled by Lua before.
#pragma once

#include <string_view>
#include <vector>

namespace muster {

/// One word or symbol. Texts, numbers and comments are left out.
struct LuaToken {
  std::string_view text;  ///< a name, a keyword, or one character of punctuation
  size_t offset = 0;
  int line = 1;

  [[nodiscard]] bool isName() const;  ///< a name or a keyword
};

std::vector<LuaToken> luaTokens(std::string_view text);
bool isLuaKeyword(std::string_view word);

}  // namespace muster

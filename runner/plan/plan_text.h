// SPDX-License-Identifier: Apache-2.0
// What a plan's text says it runs, without the plugins by which a whole plan is checked.
#pragma once

#include <string>
#include <vector>

namespace muster {

struct StageOfText {
  std::string name;
  int ranks = 0;             ///< 0: not stated
  bool required = true;      ///< a skip of it blocks acceptance
  int nodes = 0;             ///< as in Stage
  std::vector<int> sweep{};  ///< as in Stage
};

/// The stages in a plan's text, TOML or Lua, in file order. None: it is no plan. The calling process must
/// have one thread, for Lua is evaluated in a child process.
std::vector<StageOfText> stagesInText(const std::string& text);

/// The SKU profile that a plan's text names; "" where it names none, or is Lua, which is a program.
std::string skuNamedIn(const std::string& text);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Checks what the rows of `values` say, and that they go with the parser.
#include "plugins/exec/params.h"

#include <set>

namespace muster::exec {

Status CommandParams::complete() {
  if (program.empty())
    return Error{ErrorCode::kUsage, "no program; expected the absolute path of one", "program"};
  if ((parser == "none") != values.empty())
    return Error{ErrorCode::kUsage,
                 values.empty() ? "no value is to be read; expected at least one, or parser \"none\""
                                : "values are to be read, but parser is \"none\"; expected json or regex",
                 "values"};
  std::set<std::pair<std::string, LabelMap>> seen;
  for (const std::string& row : values) {
    MUSTER_TRY(ValueRule rule, parseRule(row));
    MUSTER_CHECK_OK(parser == "json" ? checkPointer(rule.place) : checkRegex(rule.place));
    if (!seen.emplace(rule.name, rule.labels).second)
      return Error{ErrorCode::kUsage, "value " + rule.name + " is there twice with the same labels",
                   "values"};
    rules.push_back(std::move(rule));
  }
  return {};
}

}  // namespace muster::exec

// SPDX-License-Identifier: Apache-2.0
// Checks what the rows of `values` say, and that they go with the parser.
#include "plugins/exec/params.h"

#include <set>

#include "runner/import/imported.h"

namespace muster::exec {

sdk::Names CommandParams::parsers() {
  sdk::Names names = {"none", "json", "regex"};
  for (std::string& format : importFormats()) names.push_back(std::move(format));
  return names;
}

Status CommandParams::complete() {
  if (program.empty())
    return Error{ErrorCode::kUsage, "no program; expected the absolute path of one", "program"};
  const bool byRules = parser == "json" || parser == "regex";
  if (byRules == values.empty())
    return Error{ErrorCode::kUsage,
                 byRules ? "no value is to be read; expected at least one, or parser \"none\""
                         : "values are named, but only the parsers json and regex look for them",
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

// SPDX-License-Identifier: Apache-2.0
// What the exec plugin offers: JSON as plugins/abi/README.md describes it, without the parameters.
#pragma once

#include "plugins/exec/params.h"

namespace muster::exec {

inline constexpr const char* kCommandTest = R"json({
  "name": "command",
  "summary": "Runs an operator's program and reads values from its output",
  "backends": ["host", "cuda"],
  "scopes": ["device", "node"],
  "metrics": [
    {"name": "completed", "unit": "bool", "direction": "higher",
     "summary": "the program ended in time with the expected exit code, and its output held every value",
     "standing": {"min": 1, "source": "a program that does not end as expected is an error"}},
    {"name": "duration", "unit": "s", "direction": "lower", "informational": true, "summary": "run time of the program"},
    {"name": "program", "unit": "text", "informational": true, "summary": "its path and digest"}
  ]
})json";

inline std::string describe() {
  Json test = Json::parse(kCommandTest);
  std::vector<std::string> labels = valueLabels();
  labels.insert(labels.begin(), "name");
  for (const UnitMetric& metric : unitMetrics())
    test["metrics"].push_back({{"name", metric.metric},
                               {"unit", metric.unit},
                               {"direction", metric.direction},
                               {"labels", labels},
                               {"optional", true},
                               {"summary", std::string(metric.summary) + ", as `values` names it"}});
  return sdk::describe({{dumpJson(test), sdk::describeParams<CommandParams>()}});
}

}  // namespace muster::exec

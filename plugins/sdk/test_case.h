// SPDX-License-Identifier: Apache-2.0
// What every plugin reads first: which of its tests a session is for, and the seed and parameters of a case.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/sdk/plugin.h"

namespace muster::sdk {

/// A test of a plugin: its name in describe(), and whatever the plugin runs it by.
template <typename Run>
struct NamedTest {
  const char* name;
  Run run;
};

/// What runs the test that the session's context names; kUsage, with the names there are, for another one.
template <typename Run>
Result<Run> chooseTest(const Json& context, const std::string& plugin,
                       const std::vector<NamedTest<Run>>& tests) {
  std::string wanted, known;
  JsonReader reader(context, "context");
  reader.read("test", wanted);
  MUSTER_CHECK_OK(reader.status());
  for (size_t i = 0; i < tests.size(); ++i) {
    if (tests[i].name == wanted) return tests[i].run;
    known += (i == 0 ? "" : i + 1 < tests.size() ? ", " : " and ") + std::string(tests[i].name);
  }
  return Error{ErrorCode::kUsage, plugin + " has no test \"" + wanted + "\"; it has " + known, ""};
}

/// What a case is run with. `params` points into the JSON that it was read from.
struct CaseInput {
  uint64_t seed = 0;
  const Json* params = nullptr;
};

inline Result<CaseInput> readCase(const Json& caseJson) {
  CaseInput input;
  JsonReader reader(caseJson, "case");
  reader.read("seed", input.seed);
  input.params = reader.object("params");
  MUSTER_CHECK_OK(reader.status());
  return input;
}

}  // namespace muster::sdk

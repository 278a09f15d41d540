// SPDX-License-Identifier: Apache-2.0
// The env plugin: what a node has (inventory), whether it is fit (health), how it fares (telemetry).
#include "plugins/env/describe.h"
#include "plugins/env/tests.h"

namespace muster::env {

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  std::string test;
  JsonReader r(context, "context");
  r.read("test", test);
  MUSTER_CHECK_OK(r.status());
  MUSTER_TRY(Machine machine, openMachine(context));
  if (test == "inventory") return makeInventoryTest(host, std::move(machine));
  if (test == "health") return makeHealthTest(host, std::move(machine));
  if (test == "telemetry") return makeTelemetryTest(host, std::move(machine));
  return Error{ErrorCode::kUsage, "env has no test \"" + test + "\"; it has inventory, health and telemetry",
               ""};
}

}  // namespace muster::env

MUSTER_DEFINE_PLUGIN("env", "1.0.0", muster::env::describeText(), muster::env::openSession)

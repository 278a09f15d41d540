// SPDX-License-Identifier: Apache-2.0
// The env plugin: inventory, health and telemetry of a node.
#include "plugins/env/describe.h"
#include "plugins/env/tests.h"
#include "plugins/sdk/test_case.h"

namespace muster::env {

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  using MakeTest = decltype(&makeHealthTest);
  MUSTER_TRY(const MakeTest make, sdk::chooseTest<MakeTest>(context, "env",
                                                            {{"inventory", makeInventoryTest},
                                                             {"health", makeHealthTest},
                                                             {"telemetry", makeTelemetryTest}}));
  MUSTER_TRY(Machine machine, openMachine(context));
  return make(host, std::move(machine));
}

}  // namespace muster::env

MUSTER_DEFINE_PLUGIN("env", "1.0.0", muster::env::describeText(), muster::env::openSession,
                     MUSTER_PLUGIN_IN_TURN)

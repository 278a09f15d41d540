// SPDX-License-Identifier: Apache-2.0
// The compute plugin: opens a rank's device and its operations, and runs one case after the other on them.
#include "kernels/loading/open_device.h"
#include "plugins/compute/describe.h"
#include "plugins/compute/tests.h"
#include "plugins/sdk/test_case.h"

namespace muster::compute {
namespace {

using RunCase = Status (*)(const Bench& bench, const Json& params, uint64_t seed);

class ComputeSession : public sdk::Session {
 public:
  ComputeSession(const sdk::Host& host, RunCase runCase, bool together, OpenDevice device,
                 std::unique_ptr<Ops> ops)
      : host_(host),
        runCase_(runCase),
        together_(together),
        device_(std::move(device)),
        ops_(std::move(ops)) {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    return runCase_({host_, *device_.device, *ops_, together_, device_.backend->virtualTime()}, *input.params,
                    input.seed);
  }

 private:
  sdk::Host host_;
  RunCase runCase_;
  bool together_;
  OpenDevice device_;
  std::unique_ptr<Ops> ops_;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(const RunCase runCase,
             sdk::chooseTest<RunCase>(context, "compute",
                                      {{"gemm", runGemm}, {"best", runBest}, {"sustained", runSustained}}));
  MUSTER_TRY(OpenDevice device, openDevice(context));
  MUSTER_TRY(std::unique_ptr<Ops> ops, device.backend->ops(*device.device));
  return std::unique_ptr<sdk::Session>(std::make_unique<ComputeSession>(
      host, runCase, context.value("scope", "device") == "cluster", std::move(device), std::move(ops)));
}

}  // namespace
}  // namespace muster::compute

MUSTER_DEFINE_PLUGIN("compute", "1.0.0", muster::compute::describe(), muster::compute::openSession,
                     MUSTER_PLUGIN_IN_TURN)

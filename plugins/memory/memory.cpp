// SPDX-License-Identifier: Apache-2.0
// The memory plugin: opens a rank's device and runs one case after the other on it.
#include "kernels/open_device.h"
#include "plugins/memory/describe.h"
#include "plugins/memory/tests.h"
#include "plugins/sdk/test_case.h"

namespace muster::memory {
namespace {

using RunCase = Status (*)(const sdk::Host& host, Device& device, const Json& params, uint64_t seed);

Result<RunCase> findTest(const Json& context) {
  return sdk::chooseTest<RunCase>(context, "memory", {{"bandwidth", runBandwidth}, {"pattern", runPattern}});
}

class MemorySession : public sdk::Session {
 public:
  MemorySession(const sdk::Host& host, RunCase runCase, OpenDevice device)
      : host_(host), runCase_(runCase), device_(std::move(device)) {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    return runCase_(host_, *device_.device, *input.params, input.seed);
  }

 private:
  sdk::Host host_;
  RunCase runCase_;
  OpenDevice device_;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(RunCase runCase, findTest(context));
  MUSTER_TRY(OpenDevice device, openDevice(context));
  return std::unique_ptr<sdk::Session>(std::make_unique<MemorySession>(host, runCase, std::move(device)));
}

}  // namespace
}  // namespace muster::memory

MUSTER_DEFINE_PLUGIN("memory", "1.0.0", muster::memory::kDescribe, muster::memory::openSession)

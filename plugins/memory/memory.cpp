// SPDX-License-Identifier: Apache-2.0
// The memory plugin: opens a rank's device and runs one case after the other on it.
#include "kernels/loading/open_device.h"
#include "plugins/memory/describe.h"
#include "plugins/memory/tests.h"
#include "plugins/sdk/test_case.h"

namespace muster::memory {
namespace {

using RunCase = Status (*)(const Bench& bench, const Json& params, uint64_t seed);

class MemorySession : public sdk::Session {
 public:
  MemorySession(const sdk::Host& host, RunCase runCase, OpenDevice open, sdk::Group group,
                std::vector<std::string> devices)
      : host_(host), runCase_(runCase), open_(std::move(open)), group_(group), devices_(std::move(devices)) {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    const Bench bench = {host_,  *open_.backend, *open_.device,
                         group_, devices_,       open_.backend->virtualTime()};
    return runCase_(bench, *input.params, input.seed);
  }

 private:
  sdk::Host host_;
  RunCase runCase_;
  OpenDevice open_;
  sdk::Group group_;
  std::vector<std::string> devices_;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(const RunCase runCase, sdk::chooseTest<RunCase>(context, "memory",
                                                             {{"bandwidth", runBandwidth},
                                                              {"pattern", runPattern},
                                                              {"latency", runLatency},
                                                              {"host_copy", runHostCopy},
                                                              {"peer", runPeer}}));
  MUSTER_TRY(OpenDevice device, openDevice(context));
  std::vector<std::string> devices;
  JsonReader reader(context, "context");
  if (context.contains("devices")) reader.read("devices", devices);
  MUSTER_CHECK_OK(reader.status());
  return std::unique_ptr<sdk::Session>(std::make_unique<MemorySession>(
      host, runCase, std::move(device), sdk::groupOf(context), std::move(devices)));
}

}  // namespace
}  // namespace muster::memory

MUSTER_DEFINE_PLUGIN("memory", "1.0.0", muster::memory::describe(), muster::memory::openSession,
                     MUSTER_PLUGIN_IN_TURN)

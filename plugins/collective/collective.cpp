// SPDX-License-Identifier: Apache-2.0
// The collective plugin: opens a rank's device, forms the group and runs one case after the other on it.
#include <fmt/format.h>

#include "kernels/loading/open_device.h"
#include "plugins/collective/describe.h"
#include "plugins/collective/params.h"
#include "plugins/collective/tests.h"
#include "plugins/sdk/group_store.h"
#include "plugins/sdk/test_case.h"

namespace muster::collective {
namespace {

class CollectiveSession : public sdk::Session {
 public:
  CollectiveSession(const sdk::Host& host, OpenDevice device, const sdk::Group& place, int nodes)
      : host_(host), device_(std::move(device)), place_(place), nodes_(nodes), store_(host) {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    MUSTER_TRY(const Params params, sdk::readParams<Params>(*input.params));
    MUSTER_TRY(std::unique_ptr<Communicator> group, form(params));
    return runSweep({host_, *device_.device, *group, nodes_}, *input.params, input.seed);
  }

 private:
  /// A group of its own for each case, so that counters and settings are the case's.
  Result<std::unique_ptr<Communicator>> form(const Params& params) {
    CommunicatorSpec spec;
    spec.name = fmt::format("collective{}", ++groups_);
    spec.rank = place_.rank;
    spec.size = place_.size;
    spec.timeout = params.callTimeout;
    spec.interface = params.interface;
    spec.settings = params.settings;
    return device_.backend->communicator(*device_.device, spec, store_);
  }

  sdk::Host host_;
  OpenDevice device_;
  sdk::Group place_;
  int nodes_;
  sdk::HostStore store_;
  int groups_ = 0;
};

/// Nodes that the group of this scope spans.
Result<int> nodesOf(const Json& context) {
  int count = 1;
  JsonReader reader(context, "context");
  if (context.value("scope", "node") != "cluster") return count;
  if (const Json* node = reader.object("node"); node != nullptr) count = node->value("count", 1);
  MUSTER_CHECK_OK(reader.status());
  return count;
}

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(OpenDevice device, openDevice(context));
  MUSTER_TRY(int nodes, nodesOf(context));
  return std::unique_ptr<sdk::Session>(
      std::make_unique<CollectiveSession>(host, std::move(device), sdk::groupOf(context), nodes));
}

}  // namespace
}  // namespace muster::collective

MUSTER_DEFINE_PLUGIN("collective", "1.0.0", muster::collective::describe(), muster::collective::openSession,
                     MUSTER_PLUGIN_IN_TURN)

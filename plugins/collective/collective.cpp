// SPDX-License-Identifier: Apache-2.0
// The collective plugin: opens a rank's device, forms the group and runs one case after the other on it.
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "kernels/loading/open_device.h"
#include "plugins/collective/describe.h"
#include "plugins/collective/fabric_choice.h"
#include "plugins/collective/fabrics.h"
#include "plugins/collective/params.h"
#include "plugins/collective/tests.h"
#include "plugins/sdk/group_store.h"
#include "plugins/sdk/test_case.h"

namespace muster::collective {
namespace {

constexpr const char* kSame = "same";

class CollectiveSession : public sdk::Session {
 public:
  CollectiveSession(const sdk::Host& host, OpenDevice device, const sdk::Group& place, int nodes,
                    std::string nodeName)
      : host_(host),
        device_(std::move(device)),
        place_(place),
        nodes_(nodes),
        nodeName_(std::move(nodeName)),
        store_(host) {
    // Before NCCL gets settings of ours. Nothing of this machine counts for a simulated one.
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    if (!device_.backend->virtualTime()) operators_ = operatorSettings(environment);
  }

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    MUSTER_TRY(const Params params, sdk::readParams<Params>(*input.params));
    const bool isAuto = params.fabric == kAutoFabric;
    const std::string name = fmt::format("collective{}", ++groups_);
    if (isAuto) MUSTER_CHECK_OK(detectFabric(name, params.callTimeout));
    double nicLineRate = 0;
    if (params.fabric == kForcedFabric && nodes_ == 1) {
      MUSTER_TRY(std::unique_ptr<Rdma> rdma, device_.backend->rdma({}));
      MUSTER_TRY(const std::vector<RdmaPort> ports, rdma->ports());
      MUSTER_TRY(nicLineRate, forcedLineRate(ports, place_.size));
    }
    MUSTER_TRY(std::unique_ptr<Communicator> group, form(name, params));
    return runSweep({host_, *device_.device, *group, nodes_, isAuto ? &*fabric_ : nullptr, nicLineRate},
                    *input.params, input.seed);
  }

 private:
  /// All ranks have to choose alike. In virtual time they do not wait for each other.
  Status detectFabric(const std::string& group, double timeout) {
    if (!fabric_) {
      MUSTER_TRY(Inventory * inventory, device_.backend->inventory());
      MUSTER_TRY(const Json node, inventory->node());
      fabric_ = nodes_ > 1 ? chooseFabric(node)
                           : FabricChoice{"none", "the group is on one node: no NIC carries its data", {}};
      yieldTo(operators_, *fabric_);
    }
    if (device_.backend->virtualTime() || nodes_ == 1) return {};
    const std::string key = group + "/fabric";
    const FabricVote own = {nodeName_, fabric_->name, fabric_->evidence};
    MUSTER_CHECK_OK(store_.set(fmt::format("{}/{}", key, place_.rank), voteText(own)));
    Status same;
    if (place_.rank == 0) {
      std::vector<FabricVote> votes;
      for (int rank = 0; rank < place_.size; ++rank) {
        MUSTER_TRY(const std::string vote, store_.get(fmt::format("{}/{}", key, rank), timeout));
        votes.push_back(voteFrom(vote));
      }
      same = checkSame(votes);
      MUSTER_CHECK_OK(store_.set(key, same.ok() ? kSame : same.error().message));
    } else {
      MUSTER_TRY(const std::string differs, store_.get(key, timeout));
      if (differs != kSame)
        same = Error{ErrorCode::kCorrupt, "rank 0 says: " + quoted(differs, 4000), "params.fabric"};
    }
    // A rank that ends takes its keys with it: all have to have read them.
    const Status together = store_.barrier(key, timeout);
    return same.ok() ? together : same;
  }

  /// A group of its own for each case, so that counters and settings are the case's.
  Result<std::unique_ptr<Communicator>> form(const std::string& name, const Params& params) {
    CommunicatorSpec spec;
    spec.name = name;
    spec.rank = place_.rank;
    spec.size = place_.size;
    spec.timeout = params.callTimeout;
    spec.interface = params.interface;
    spec.settings = params.settings;
    if (params.fabric == kAutoFabric)
      spec.settings.insert(fabric_->settings.begin(), fabric_->settings.end());
    return device_.backend->communicator(*device_.device, spec, store_);
  }

  sdk::Host host_;
  OpenDevice device_;
  sdk::Group place_;
  int nodes_;
  std::string nodeName_;
  sdk::HostStore store_;
  int groups_ = 0;
  Settings operators_;
  std::optional<FabricChoice> fabric_;  ///< of fabric = "auto"
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
  const Json node = context.value("node", Json::object());
  return std::unique_ptr<sdk::Session>(std::make_unique<CollectiveSession>(
      host, std::move(device), sdk::groupOf(context), nodes, node.is_object() ? node.value("name", "") : ""));
}

}  // namespace
}  // namespace muster::collective

MUSTER_DEFINE_PLUGIN("collective", "1.0.0", muster::collective::describe(), muster::collective::openSession,
                     MUSTER_PLUGIN_IN_TURN)

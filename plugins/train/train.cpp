// SPDX-License-Identifier: Apache-2.0
// The train plugin: opens a rank's device, and trains on it one case after the other.
#include "plugins/sdk/group_store.h"
#include "plugins/sdk/test_case.h"
#include "plugins/train/tests.h"

namespace muster::train {
namespace {

using RunCase = Status (*)(const Bench& bench, const Json& params, uint64_t seed);

Place placeOf(const Json& context) {
  const sdk::Group group = sdk::groupOf(context);
  const Json node = context.value("node", Json::object());
  return {group.rank, group.size, group.size == 1 || context.value("local_rank", 0) == 0,
          node.is_object() ? node.value("name", "") : ""};
}

class TrainSession : public sdk::Session {
 public:
  TrainSession(const sdk::Host& host, RunCase runCase, OpenDevice device, std::unique_ptr<Nn> nn, Place place)
      : host_(host),
        store_(host),
        runCase_(runCase),
        device_(std::move(device)),
        nn_(std::move(nn)),
        place_(place) {}

  Status run(const Json& caseJson) override {
    MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
    return runCase_({host_, device_, *device_.device, *nn_, place_, store_}, *input.params, input.seed);
  }

 private:
  sdk::Host host_;
  sdk::HostStore store_;
  RunCase runCase_;
  OpenDevice device_;
  std::unique_ptr<Nn> nn_;
  Place place_;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(const RunCase runCase,
             sdk::chooseTest<RunCase>(
                 context, "train",
                 {{"training", runTraining}, {"determinism", runDeterminism}, {"inference", runInference}}));
  MUSTER_TRY(OpenDevice device, openDevice(context));
  MUSTER_TRY(std::unique_ptr<Nn> nn, device.backend->nn(*device.device));
  return std::unique_ptr<sdk::Session>(
      std::make_unique<TrainSession>(host, runCase, std::move(device), std::move(nn), placeOf(context)));
}

}  // namespace
}  // namespace muster::train

MUSTER_DEFINE_PLUGIN("train", "1.0.0", muster::train::describe(), muster::train::openSession,
                     MUSTER_PLUGIN_IN_TURN)

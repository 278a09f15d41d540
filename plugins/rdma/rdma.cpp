// SPDX-License-Identifier: Apache-2.0
// The rdma plugin: looks at a node's RDMA ports and runs one case after the other on them.
#include <fmt/format.h>

#include "plugins/rdma/tests.h"
#include "plugins/sdk/test_case.h"

namespace muster::rdma {
namespace {

using RunCase = Status (*)(Site& site, const Json& params, const std::string& caseName);

class RdmaSession : public sdk::Session {
 public:
  RdmaSession(RunCase runCase, Site site) : runCase_(runCase), site_(std::move(site)) {}

  Status run(const Json& caseJson) override {
    std::string name;
    int repeat = 0;
    int attempt = 1;
    JsonReader reader(caseJson, "case");
    reader.read("case", name);
    reader.optional("repeat", repeat);
    reader.optional("attempt", attempt);
    const Json* params = reader.object("params");
    MUSTER_CHECK_OK(reader.status());
    return runCase_(site_, *params, fmt::format("{}.{}.{}", name, repeat, attempt));
  }

 private:
  RunCase runCase_;
  Site site_;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(
      const RunCase runCase,
      sdk::chooseTest<RunCase>(context, "rdma", {{"perftest", runPerftest}, {"counters", runCounters}}));
  MUSTER_TRY(Site site, openSite(host, context));
  return std::unique_ptr<sdk::Session>(std::make_unique<RdmaSession>(runCase, std::move(site)));
}

}  // namespace
}  // namespace muster::rdma

MUSTER_DEFINE_PLUGIN("rdma", "1.0.0", muster::rdma::describe(), muster::rdma::openSession,
                     MUSTER_PLUGIN_IN_TURN)

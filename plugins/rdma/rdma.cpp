// SPDX-License-Identifier: Apache-2.0
// The rdma plugin: looks at a node's RDMA ports and runs one case after the other on them.
#include <fmt/format.h>

#include "plugins/rdma/describe.h"
#include "plugins/rdma/tests.h"

namespace muster::rdma {
namespace {

class RdmaSession : public sdk::Session {
 public:
  RdmaSession(std::string test, Site site) : test_(std::move(test)), site_(std::move(site)) {}

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
    if (test_ == "counters") return runCounters(site_, *params);
    return runPerftest(site_, *params, fmt::format("{}.{}.{}", name, repeat, attempt));
  }

 private:
  std::string test_;
  Site site_;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  std::string test;
  JsonReader reader(context, "context");
  reader.read("test", test);
  MUSTER_CHECK_OK(reader.status());
  if (test != "perftest" && test != "counters")
    return Error{ErrorCode::kUsage, "rdma has no test \"" + test + "\"; it has perftest and counters", ""};
  MUSTER_TRY(Site site, openSite(host, context));
  return std::unique_ptr<sdk::Session>(std::make_unique<RdmaSession>(test, std::move(site)));
}

}  // namespace
}  // namespace muster::rdma

MUSTER_DEFINE_PLUGIN("rdma", "1.0.0", muster::rdma::describe(), muster::rdma::openSession,
                     MUSTER_PLUGIN_IN_TURN)

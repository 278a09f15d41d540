// SPDX-License-Identifier: Apache-2.0
// The storage plugin: finds a rank's place and runs one case after the other there.
#include <csignal>

#include "kernels/loading/open_device.h"
#include "plugins/sdk/group_store.h"
#include "plugins/sdk/test_case.h"
#include "plugins/storage/tests.h"

namespace muster::storage {
namespace {

using RunCase = Status (*)(Site& site, const Json& caseJson);

class StorageSession : public sdk::Session {
 public:
  StorageSession(RunCase runCase, Site site) : runCase_(runCase), site_(std::move(site)) {}
  Status run(const Json& caseJson) override { return runCase_(site_, caseJson); }

 private:
  RunCase runCase_;
  Site site_;
};

Result<std::unique_ptr<sdk::Session>> openSession(const sdk::Host& host, const Json& context) {
  MUSTER_TRY(const RunCase runCase,
             sdk::chooseTest<RunCase>(context, "storage",
                                      {{"fio", runFio}, {"loading", runLoading}, {"shared", runShared}}));
  Site site{host};
  std::string scope, backend;
  JsonReader reader(context, "context");
  reader.read("scope", scope);
  reader.read("backend", backend);
  reader.read("artifact_dir", site.artifacts);
  if (const Json* node = reader.object("node"); node != nullptr) {
    JsonReader inner(*node, "context.node");
    inner.read("name", site.node);
    MUSTER_CHECK_OK(inner.status());
  }
  MUSTER_CHECK_OK(reader.status());
  const sdk::Group group = sdk::groupOf(context);
  site.rank = group.rank;
  site.size = group.size;
  if (scope == "node" && site.size > 1)
    return Error{ErrorCode::kUsage, "ranks of one node would disturb each other; set `ranks = 1`", "ranks"};
  if (backend == "sim") {
    MUSTER_TRY(site.backend, openBackend(context));
    site.simulated = site.backend->simulatedStorage();
    if (site.simulated == nullptr)
      return Error{ErrorCode::kUnsupported,
                   "the scenario's nodes have no storage; see [storage] in plans/README.md", ""};
  } else {
    // What a rank tells a runner that is dead fails, and must not end the rank: it has files to remove.
    std::signal(SIGPIPE, SIG_IGN);
  }
  return std::unique_ptr<sdk::Session>(std::make_unique<StorageSession>(runCase, std::move(site)));
}

}  // namespace
}  // namespace muster::storage

MUSTER_DEFINE_PLUGIN("storage", "1.0.0", muster::storage::describe(), muster::storage::openSession,
                     MUSTER_PLUGIN_IN_TURN)

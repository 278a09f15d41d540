// SPDX-License-Identifier: Apache-2.0
// Detects the launch position of this process and joins the other nodes.
#include "runner/app/node/launch_position.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "runner/app/node/run_folder.h"
#include "runner/app/process/environment.h"
#include "runner/app/process/interrupt.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"
#include "runner/plan/node_groups.h"
#include "runner/rendezvous/wire/store_key.h"

namespace muster {
namespace {

constexpr double kRollCall = 10;     // seconds; those who are started again come at about the same time
constexpr double kJoinPatience = 3;  // a mistake that shows at once should end the run at once

std::map<std::string, std::string> wholeEnvironment() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    if (const size_t equals = line.find('='); equals != std::string_view::npos)
      all.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return all;
}

/// Why this node did not take part in a stage before it was started again; empty: it did, it had no part in
/// it, or another node did not take part.
std::string whyDeclined(const Plan& plan, const Launcher& position, const StageRecord& record) {
  const auto stage = std::find_if(plan.stages.begin(), plan.stages.end(),
                                  [&](const Stage& one) { return one.name == record.name; });
  const bool declined =
      record.state == StageState::kSkipped && stage != plan.stages.end() &&
      partOf(*stage, position.nodeRank, position.nodeCount).kind == NodePart::Kind::kMember &&
      record.reason.find(kDeclines) == std::string::npos;
  return declined ? record.reason : "";
}

}  // namespace

Result<Launcher> findLaunchPosition(const RunOptions& options) {
  if (!options.scenario.empty()) return Launcher{};
  MUSTER_TRY(Launcher position, detectLauncher({options.nodeCount, options.nodeRank, options.rendezvous},
                                               wholeEnvironment(), hostName()));
  const bool open = !position.store.host.empty() && position.store.port == 0;
  if (open && !runToken().empty()) position.store.port = storePort(runToken(), position.job);
  return position;
}

Json launcherJson(const Launcher& position) {
  Json json{{"kind", launcherName(position.kind)},
            {"node_rank", position.nodeRank},
            {"node_count", position.nodeCount},
            {"why", position.why}};
  if (!position.store.host.empty()) json["rendezvous"] = position.store.text();
  return json;
}

bool wantsCluster(const Plan& plan, const RunOptions& options) {
  return std::any_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) {
    return stage.scope == Scope::kCluster && options.runsStage(stage);
  });
}

Result<std::unique_ptr<ClusterLink>> joinCluster(const Plan& plan, const RunOptions& options,
                                                 const Launcher& position, const Journal* earlier) {
  const bool leavesTogether = endsAllWithTheFirst(position) && !runToken().empty();
  if (position.nodeCount == 1 || !(wantsCluster(plan, options) || leavesTogether))
    return std::unique_ptr<ClusterLink>();
  MUSTER_CHECK_OK(
      checkToken(runToken()).context("stages of scope cluster need a secret that all nodes share"));
  ClusterOptions cluster;
  cluster.token = runToken();
  cluster.nodeRank = position.nodeRank;
  cluster.nodeCount = position.nodeCount;
  cluster.host = options.nodeName.empty() ? hostName() : options.nodeName;
  cluster.nodes = position.nodes;
  cluster.store = position.store;
  cluster.lostAfter = options.lostAfter;
  cluster.beat = heartbeatInterval(position.nodeCount, options.lostAfter);
  cluster.cancelled = &interrupted();
  std::vector<std::string> overrides = plan.overrides;
  cluster.identity = {{"nodes", std::to_string(position.nodeCount)},
                      {"Muster", buildId()},
                      {"plan", plan.sha256},
                      {"overrides", join(overrides, " ")},
                      {"scopes", join(options.scopes, ",")},
                      {"--only", join(options.selection.stages, ",")},
                      {"--device", join(options.selection.devices, ",")},
                      {"seed", std::to_string(options.seed)}};
  for (const Stage& stage : plan.stages)
    if (stage.scope == Scope::kCluster) cluster.stages.insert(stage.name);
  if (earlier != nullptr)
    for (const JournalStage& entry : earlier->stages)
      if (entry.stage.scope == Scope::kCluster) {
        cluster.finished[entry.stage.name] = outcomeName(entry.stage.outcome);
        if (const std::string why = whyDeclined(plan, position, entry.stage); !why.empty())
          cluster.declined[entry.stage.name] = why;
      }
  MUSTER_TRY(auto link, ClusterLink::start(std::move(cluster)));
  MUSTER_CHECK_OK(link->members().join(kJoinPatience));
  if (earlier != nullptr) link->members().rollCall(kRollCall);
  return link;
}

bool endsAllWithTheFirst(const Launcher& position) {
  return position.kind == LauncherKind::kOpenMpi && position.nodeCount > 1;
}

Result<std::filesystem::path> nodeFolder(const std::filesystem::path& given, const Launcher& position) {
  if (position.nodeCount == 1) return given;
  if (RunFolder::holdsRun(given))
    return Error{ErrorCode::kUsage,
                 fmt::format("this directory holds the run of one node, but {} nodes were started; give the "
                             "directory of all of them, in which each has a directory of its own",
                             position.nodeCount),
                 given.string()};
  return given / fmt::format("node-{:04}", position.nodeRank);
}

}  // namespace muster

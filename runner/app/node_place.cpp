// SPDX-License-Identifier: Apache-2.0
// See node_place.h.
#include "runner/app/node_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "runner/app/environment.h"
#include "runner/app/interrupt.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr const char* kTokenName = "MUSTER_TOKEN";
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

/// The secret that all nodes share. It is taken out of the environment: plugins have no need of it.
Result<std::string> takeToken() {
  const char* value = std::getenv(kTokenName);
  std::string token = value == nullptr ? "" : value;
  unsetenv(kTokenName);
  if (!token.empty()) return token;
  return Error{
      ErrorCode::kUsage,
      "stages of scope cluster need a secret that all nodes share, and MUSTER_TOKEN is not set; set it to "
      "the same value on every node, for example: export MUSTER_TOKEN=$(openssl rand -hex 32)",
      ""};
}

}  // namespace

Result<Launcher> findPlace(const RunOptions& options) {
  if (!options.scenario.empty()) return Launcher{};
  return detectLauncher({options.nodeCount, options.nodeRank, options.rendezvous}, wholeEnvironment(),
                        hostName());
}

Json launcherJson(const Launcher& place) {
  Json json{{"kind", launcherName(place.kind)},
            {"node_rank", place.nodeRank},
            {"node_count", place.nodeCount},
            {"why", place.why}};
  Json store = Json::array();
  for (const StoreAddress& address : place.store) store.push_back(address.text());
  if (!store.empty()) json["rendezvous"] = std::move(store);
  return json;
}

bool wantsCluster(const Plan& plan, const RunOptions& options) {
  const auto& scopes = options.scopes;
  if (!scopes.empty() && std::count(scopes.begin(), scopes.end(), scopeName(Scope::kCluster)) == 0)
    return false;
  return std::any_of(plan.stages.begin(), plan.stages.end(),
                     [](const Stage& stage) { return stage.scope == Scope::kCluster; });
}

Result<std::unique_ptr<ClusterLink>> joinCluster(const Plan& plan, const RunOptions& options,
                                                 const Launcher& place, const Journal* earlier) {
  const bool leavesTogether = endsAllWithTheFirst(place) && std::getenv(kTokenName) != nullptr;
  if (place.nodeCount == 1 || !(wantsCluster(plan, options) || leavesTogether))
    return std::unique_ptr<ClusterLink>();
  ClusterOptions cluster;
  MUSTER_TRY(cluster.token, takeToken());
  cluster.nodeRank = place.nodeRank;
  cluster.nodeCount = place.nodeCount;
  cluster.host = options.nodeName.empty() ? hostName() : options.nodeName;
  cluster.nodes = place.nodes;
  cluster.store = place.store;
  cluster.lostAfter = options.lostAfter;
  cluster.beat = std::min(0.5, options.lostAfter / 6);
  cluster.cancelled = &interrupted();
  std::vector<std::string> overrides = plan.overrides;
  cluster.identity = {{"nodes", std::to_string(place.nodeCount)},
                      {"Muster", buildId()},
                      {"plan", plan.sha256},
                      {"overrides", join(overrides, " ")},
                      {"scopes", join(options.scopes, ",")},
                      {"seed", std::to_string(options.seed)}};
  if (earlier != nullptr)
    for (const JournalStage& entry : earlier->stages)
      if (entry.stage.scope == scopeName(Scope::kCluster))
        cluster.finished[entry.stage.name] = outcomeName(entry.stage.outcome);
  MUSTER_TRY(auto link, ClusterLink::start(std::move(cluster)));
  MUSTER_CHECK_OK(link->join(kJoinPatience));
  if (earlier != nullptr) link->rollCall(kRollCall);
  return link;
}

bool endsAllWithTheFirst(const Launcher& place) {
  return place.kind == LauncherKind::kOpenMpi && place.nodeCount > 1;
}

std::filesystem::path nodeFolder(const std::filesystem::path& given, const Launcher& place) {
  return place.nodeCount == 1 ? given : given / fmt::format("node-{:04}", place.nodeRank);
}

}  // namespace muster

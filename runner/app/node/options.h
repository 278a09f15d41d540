// SPDX-License-Identifier: Apache-2.0
// Parsed options of `muster run`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runner/app/view/view.h"
#include "runner/plan/plan.h"
#include "runner/record/selection.h"

namespace muster {

struct RunOptions {
  std::filesystem::path plan;
  std::filesystem::path out;       ///< empty: ./muster-<plan>-<host>-<time>
  std::filesystem::path resume;    ///< empty: a new run
  std::filesystem::path scenario;  ///< --simulate
  std::filesystem::path waivers;   ///< --waivers; empty: none
  std::string sku;                 ///< overrides the plan's; empty: as the plan says
  std::vector<std::string> sets;
  std::vector<std::string> scopes;  ///< --scope device,node: names of Scope; empty: all
  Selection selection;              ///< --only, --device
  std::vector<std::filesystem::path> pluginFolders;
  std::vector<std::filesystem::path> skuFolders;
  int nodes = 1;                 ///< simulated nodes
  std::optional<int> nodeCount;  ///< --nnodes
  std::optional<int> nodeRank;   ///< --node-rank
  std::string rendezvous;        ///< --rendezvous host[:port]
  std::string nodeName;          ///< --node-name: how the scheduler calls this node; empty: the host name
  std::vector<std::string> nodeNames;  ///< --node-names: of all simulated nodes by rank; empty: not told
  std::string recordKey;  ///< this node's key, from the file of --record-key; empty: a record without MAC
  std::string fleetId;    ///< --fleet-id: of the run over many nodes that this one belongs to
  double arrival = 0;     ///< seconds that a cluster stage waits for all nodes; 0: the stage's timeout
  double budget = 0;      ///< --budget: seconds that this start of the run may take; 0: any number
  double lostAfter = 10;  ///< seconds without a heartbeat after which a node counts as lost
  uint64_t seed = 42;
  bool seedGiven = false;  ///< by --seed; else the one above is what a new run takes
  bool strict = false;
  bool noGpuSkip = false;
  ViewKind view = ViewKind::kAuto;
  std::vector<std::string> command;  ///< argv, for the record

  [[nodiscard]] bool runsScope(Scope scope) const {
    return scopes.empty() || std::find(scopes.begin(), scopes.end(), nameOf(scope)) != scopes.end();
  }
  [[nodiscard]] bool runsStage(const Stage& stage) const {
    return runsScope(stage.scope) && selection.whyLeftOut(stage.name, stage.scope).empty();
  }
};

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Sweeps over the number of nodes: `nodes = [1, 2, 4, "all"]` makes one stage per number, each with a group
// of the run's first nodes.
#pragma once

#include <string>
#include <vector>

#include "runner/plan/document.h"
#include "runner/plan/plan.h"

namespace muster {

/// Reads `nodes` of a stage into its sweep, or describes it for the schema.
void readSweep(TableReader& table, Stage& stage);

/// The names of the stages that `stage` stands for with these `nodes`, as the plan's file has them:
/// "train-nodes-2". Of nodes that are no sweep: its own. None where no plan could have such a stage.
std::vector<std::string> sweepNames(const std::string& stage, const Json& nodes);

/// The numbers of nodes of a sweep, as the plan's file has them (0: all). Of nodes that are no sweep: none.
std::vector<int> sweepOf(const Json& nodes);

/// Tells names that two stages would have, names that become too long, and too many stages or cases.
void checkSweeps(const PlanDocument& document, const std::vector<Stage>& stages,
                 const std::vector<std::string>& pointers, size_t mostStages, Diagnostics& diagnostics);

/// The stages with those of each sweep in its place. Who needs a sweep needs all of its stages.
std::vector<Stage> withSweeps(const std::vector<Stage>& written);

/// What one node of a run has to do in a stage.
struct NodePart {
  enum class Kind {
    kMember,   ///< its ranks are in the group
    kIdle,     ///< the group is one of other nodes
    kNoGroup,  ///< the run has no such group
  } kind = Kind::kMember;
  bool blocks = false;  ///< no member, and so nodes, or this one, are in no group at all
  int nodes = 0;        ///< of the group; 0: it is another stage's
  std::string why;      ///< empty for members
};
NodePart partOf(const Stage& stage, int nodeRank, int nodeCount);

/// Whether a group of the stage as the plan wrote it can have so many nodes.
bool canHaveNodes(const Stage& written, const std::string& nodes);

/// Nodes of the stage's group in a run of `nodeCount` nodes.
int groupNodes(const Stage& stage, int nodeCount);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Draining rejected nodes and giving back only those that this run has drained.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runner/slurm/scheduler.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {

/// What is to be done with one node, or why nothing is.
struct NodeAction {
  std::string node;
  std::string reason;  ///< for Slurm; empty: the node is left as it is
  std::string why;     ///< for people
};

/// A node that must not get work, and why in a few words.
struct RejectedNode {
  std::string node;
  std::string what;
  bool affected = false;  ///< all that it failed speaks against other parts
  std::string unconfirmed =
      {};  ///< why its rejection is not certain: the node is left as it is; empty: certain
};

/// "muster: RUN: what", as Slurm keeps it: one line, at most 200 bytes.
std::string drainReason(const std::string& runId, const std::string& what);

/// Which of these nodes to drain: those that are certain, not merely affected, that nobody has drained and
/// that are not down. Pure.
std::vector<NodeAction> planDrain(const std::string& runId, const std::vector<RejectedNode>& rejected,
                                  const Nodes& known);

/// Which nodes to give back: those of this run that Slurm has drained with a reason of this run, exactly the
/// one that `drained` holds. The file behind `drained` is not believed beyond that. Pure.
std::vector<NodeAction> planUndrain(const Submission& run, const std::vector<NodeAction>& drained,
                                    const Nodes& known);

/// "n1: drained: muster: may: gemm", "n2: not changed: is drained already", a line each.
void showActions(std::span<const NodeAction> actions, const std::string& done);

/// Does what planDrain() says, each after a last look at that node, and remembers it in drained.jsonl. A node
/// that Slurm refuses is left as it is and the others go on; an error says that not all was done, and what
/// was done has then been printed.
Status applyDrain(const RunStore& run, std::vector<NodeAction>& actions);
Status applyUndrain(const RunStore& run, std::vector<NodeAction>& actions);

/// What this run has drained and not given back yet.
Result<std::vector<NodeAction>> drainedByRun(const RunStore& run);

}  // namespace muster::slurm

// SPDX-License-Identifier: Apache-2.0
// Takes records out of the logs of pods that have ended, one for each node.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "runner/core/json.h"
#include "runner/kube/progress.h"
#include "runner/kube/run_store.h"

namespace muster::kube {

/// Why a node's record cannot count, whatever it says: it is unreadable here, or another program's.
using RecordCheck =
    std::function<Status(const std::string& node, const std::string& text, const Json& record)>;

/// The results of all nodes; those that are new in `seen` are read from their pods' logs and kept. A record
/// counts if the pod ran on the record's node and ended with the code that it printed and that the record
/// has, and if it passes the check; without one, how the pod ended is kept. Of several pods of a round on one
/// node the worst counts, so that no node counts twice. In a run together only those of the last round count,
/// and rejections: nodes that it was without have not met the others of it.
Result<std::map<std::string, NodeResult>> collectResults(const RunStore& run, const Snapshot& seen,
                                                         const RecordCheck& check);

/// The lines of expect.txt for `muster fleet`: every node, and why Kubernetes cannot use it where it has no
/// verdict. A node whose result was lost, or that still runs, is not down.
std::string expectText(const Submission& run, const std::vector<NodeJob>& nodes, const Nodes& known);

}  // namespace muster::kube

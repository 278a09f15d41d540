// SPDX-License-Identifier: Apache-2.0
// One lane's figures read: which nodes, links and leaves they accuse, and which questions are still open.
#pragma once

#include "plugins/ring/solver/findings.h"
#include "plugins/ring/solver/meetings_by_node.h"
#include "plugins/ring/solver/round_log.h"

namespace muster::ring {

/// What each lane of the log says, in their order.
std::vector<LaneFindings> analyseLanes(const RoundLog& log, const MeetingsByNode& meetingsByNode);

}  // namespace muster::ring

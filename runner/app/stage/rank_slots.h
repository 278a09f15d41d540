// SPDX-License-Identifier: Apache-2.0
// Which ranks a stage has on this node, and what each is bound to.
#pragma once

#include <string>
#include <vector>

#include "runner/app/stage/frame_collector.h"
#include "runner/plan/plan.h"

namespace muster {

/// One rank per device, or as many as the stage says, in turn over the devices; ranks that share a device get
/// a part of its processors each, as long as there is one for each. The single rank of a node-scope stage is
/// bound to nothing.
std::vector<RankSlot> slotsFor(const std::vector<RankSlot>& devices, const Stage& stage);

/// Leaves those on `devices`, numbered anew from 0; all of them where it names none.
void keepOnly(const std::vector<std::string>& devices, std::vector<RankSlot>& slots);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// The most that a metric can physically be: the profile's theoretical peaks, and the rates of its links.
#pragma once

#include "runner/sku/learn.h"
#include "runner/sku/profile.h"

namespace muster {

/// Of a figure under `profile`; `most` is 0 where nothing is known. Links are what the profile expects of
/// them: generation and width of PCIe, number and speed of NVLinks.
PhysicalLimit physicalLimit(const LearnGroup& group, const Profile& profile);

}  // namespace muster

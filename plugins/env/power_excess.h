// SPDX-License-Identifier: Apache-2.0
// Which GPUs the power limit slows down far more than their peers.
#pragma once

#include <vector>

#include "kernels/interfaces/inventory.h"

namespace muster::env {

/// Under full load the power limit throttles every healthy GPU, so its time says nothing by itself. Of one
/// sample, in which counters are growth, this gives `throttle_power_excess` for each device: the time, where
/// the device's clock is more than a quarter below the median of all devices, else 0. Nothing for fewer than
/// three devices.
std::vector<Reading> powerExcess(const std::vector<Reading>& sample);

}  // namespace muster::env

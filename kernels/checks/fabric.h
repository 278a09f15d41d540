// SPDX-License-Identifier: Apache-2.0
// What the driver reports about a GPU's place in the NVLink fabric.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// The health that NVML's nvmlGpuFabricInfoV_t holds.
struct FabricHealth {
  unsigned mask = 0;     ///< NVML_GPU_FABRIC_HEALTH_MASK_*: two bits or four for each kind of trouble
  unsigned summary = 0;  ///< NVML_GPU_FABRIC_HEALTH_SUMMARY_*, version 3 of the struct; 0: none

  /// Whether the driver supports any of it.
  [[nodiscard]] bool known() const { return mask != 0 || summary != 0; }
  /// "degraded bandwidth", ...; empty: healthy.
  [[nodiscard]] std::vector<std::string> troubles() const;
};

}  // namespace muster

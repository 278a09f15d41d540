// SPDX-License-Identifier: Apache-2.0
// What the driver reports about a GPU's place in the NVLink fabric.
#include "kernels/checks/fabric.h"

#include <iterator>

namespace muster {
namespace {

// Names, places and values are those of nvml.h, version 13.5. Neither PARTITION_ASSIGNED (bits 12, 13) nor
// GFM_STATE (14, 15) is judged: a node without a global fabric manager or without partitions is no fault.
struct Flag {
  unsigned shift;
  const char* words;
};
constexpr Flag kFlags[] = {{0, "degraded bandwidth"},
                           {2, "route recovery in progress"},
                           {4, "unhealthy route"},
                           {6, "recovery from an access timeout in progress"}};
constexpr unsigned kTrue = 1;

constexpr unsigned kConfigurationShift = 8, kConfigurationWidth = 0xf;
constexpr const char* kConfigurations[] = {
    nullptr,  // not supported
    nullptr,  // correct
    "wrong system GUID",
    "wrong chassis serial number",
    "no partition",
    "too few NVLinks",
    "incompatible firmware",
    "invalid location",
    "invalid state of the GPU",
};

constexpr unsigned kUnhealthy = 2, kLimitedCapacity = 3;

}  // namespace

std::vector<std::string> FabricHealth::troubles() const {
  std::vector<std::string> found;
  for (const Flag& flag : kFlags)
    if ((mask >> flag.shift & 3U) == kTrue) found.emplace_back(flag.words);
  const unsigned configuration = mask >> kConfigurationShift & kConfigurationWidth;
  if (configuration >= std::size(kConfigurations))
    found.push_back("incorrect configuration " + std::to_string(configuration));
  else if (kConfigurations[configuration] != nullptr)
    found.push_back(std::string("incorrect configuration: ") + kConfigurations[configuration]);
  if (summary == kLimitedCapacity) found.emplace_back("limited capacity");
  if (summary == kUnhealthy && found.empty())
    found.emplace_back("unhealthy, for a reason that is not reported");
  return found;
}

}  // namespace muster

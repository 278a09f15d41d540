// SPDX-License-Identifier: Apache-2.0
// What a fleet was judged by besides its records, kept beside fleet.json: whoever has both can judge the
// records again, anywhere.
#pragma once

#include <string>

#include "reports/fleet/fleet_record.h"
#include "runner/core/json.h"

namespace muster {

inline constexpr const char* kFleetInputsFile = "fleet-inputs.json";

struct FleetInputs {
  fleet::FleetOptions wanted;  ///< without what is read from the records
  std::string waiversPath;
  std::string waiversText;
  double at = 0;  ///< when the fleet was judged, for the expiry of waivers; seconds since 1970
  std::string
      recordsAt;  ///< the folder of the records, relative to that of fleet.json; empty: there is no path
  /// Slurm or the key of the records had a say in which records count: without them it cannot be repeated.
  bool witnessed = false;
};

Json toJson(const FleetInputs& inputs);
Result<FleetInputs> fleetInputsFromJson(const Json& json);

}  // namespace muster

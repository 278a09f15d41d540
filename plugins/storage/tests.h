// SPDX-License-Identifier: Apache-2.0
// What this plugin offers, and its tests, one function for one case of each.
#pragma once

#include <memory>
#include <string>

#include "kernels/interfaces/backend.h"
#include "plugins/sdk/plugin.h"

namespace muster::storage {

/// A rank's place in the stage, and its backend where that is simulated.
struct Site {
  sdk::Host host;
  std::unique_ptr<Backend> backend = nullptr;
  std::unique_ptr<SimulatedStorage> simulated = nullptr;
  std::string artifacts = {};  ///< folder of the stage's artifacts
  std::string node = {};       ///< its name
  int rank = 0;
  int size = 1;
};

/// The JSON of describe().
std::string describe();

Status runFio(Site& site, const Json& caseJson);
Status runLoading(Site& site, const Json& caseJson);
Status runShared(Site& site, const Json& caseJson);

}  // namespace muster::storage

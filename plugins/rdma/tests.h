// SPDX-License-Identifier: Apache-2.0
// What this plugin offers, and its tests, one function for one case of each.
#pragma once

#include "plugins/rdma/site.h"

namespace muster::rdma {

/// The JSON of describe().
std::string describe();

/// `caseName` is unique within the stage and attempt: keys of the store begin with it.
Status runPerftest(Site& site, const Json& params, const std::string& caseName);
Status runCounters(Site& site, const Json& params, const std::string& caseName);

}  // namespace muster::rdma

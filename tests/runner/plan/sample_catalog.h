// SPDX-License-Identifier: Apache-2.0
// A catalogue as plugins would describe it, for tests and fuzzers of plans.
#pragma once

#include "runner/metrics/catalog.h"

namespace muster::testing {

/// Plugins compute, memory and env; plugin "broken" was refused.
Catalog sampleCatalog();

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// The JSON Schema of a stage: its own keys, and for each test its parameters, metrics and scopes.
#pragma once

#include "runner/metrics/catalog.h"

namespace muster {

Json stageSchema(const Catalog& catalog);

}  // namespace muster

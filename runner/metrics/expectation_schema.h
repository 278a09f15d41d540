// SPDX-License-Identifier: Apache-2.0
// JSON Schemas of what expectation_reader.h reads.
#pragma once

#include "runner/core/json.h"
#include "runner/metrics/catalog.h"

namespace muster {

/// Of the list `expect`: tables, and names of sets. `provenance` as in ExpectationFrame.
Json expectListSchema(bool provenance);
/// Of the table `expectations`: sets by name. What a set leaves out may be given where it is used.
Json expectationSetsSchema();
/// The `definitions` of a document that has these: the catalog's metrics, and the limits that each takes.
Json expectationDefinitions(const Catalog& catalog, bool provenance);

}  // namespace muster

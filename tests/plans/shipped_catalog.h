// SPDX-License-Identifier: Apache-2.0
// What the shipped plugins describe, read from the built libraries.
#pragma once

#include <string>
#include <vector>

#include "runner/plan/plan.h"
#include "runner/sku/profile.h"
#include "tests/support/process.h"

namespace muster::testing {

const Catalog& shippedCatalog();
/// The names of the shipped profiles.
std::vector<std::string> shippedSkus();

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// `muster plugins --reference`: every test, parameter and metric as one Markdown page.
#pragma once

#include <string>

#include "runner/metrics/catalog.h"

namespace muster {

/// The page about all plugins of the catalog, or about `plugin` alone. It depends on their descriptions only:
/// no path, no version.
std::string pluginReference(const Catalog& catalog, const std::string& plugin = "");

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Who a plugin library is and whether it may be loaded, decided before any of its code runs.
#pragma once

#include <filesystem>
#include <string>

#include "plugins/abi/muster_plugin.h"
#include "runner/core/result.h"

namespace muster {

/// What a library says of itself in its `muster_plugin` symbol.
struct PluginIdentity {
  std::string path;  ///< real path: what is checked is what is opened
  std::string name;
  std::string version;
  uint32_t abiMinor = 0;
  uint32_t flags = 0;  ///< MUSTER_PLUGIN_...
};

/// Checks magic, ABI version against this host's, size, name and version.
Result<PluginIdentity> checkPluginInfo(const muster_plugin_info& info, const std::string& path);

/// All checks on the library `path`, without loading it.
Result<PluginIdentity> identifyPlugin(const std::filesystem::path& path);

}  // namespace muster

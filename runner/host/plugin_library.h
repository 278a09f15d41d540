// SPDX-License-Identifier: Apache-2.0
// A loaded plugin: its checked identity and its table of functions.
#pragma once

#include <filesystem>

#include "plugins/abi/muster_plugin.h"
#include "runner/core/result.h"
#include "runner/host/plugin_identity.h"

namespace muster {

/// A plugin whose identity was checked before its code ran. It stays loaded until the process ends, because
/// threads and exit handlers of a plugin may outlive any moment at which it could be unloaded.
struct PluginLibrary {
  PluginIdentity identity;
  const muster_plugin_ops* ops = nullptr;

  static Result<PluginLibrary> load(const std::filesystem::path& path);
};

/// Checks size, version and that no slot of the table is empty.
Status checkOps(const muster_plugin_ops* ops, const std::string& path);

/// The one-line reason behind a dlopen failure; names the missing library where that is the cause.
std::string loadErrorText(const std::string& dlerrorText, const std::string& path);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Loads a plugin and finds its entry.
#include "runner/host/plugin_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>

#include "runner/host/abi_version.h"

namespace muster {
namespace {

/// The size of the table in ABI 1.0; a smaller one lacks functions that every plugin must have.
constexpr size_t kFirstOpsSize = offsetof(muster_plugin_ops, close) + sizeof(void (*)(void*));

std::string lastLoadError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace

std::string loadErrorText(const std::string& dlerrorText, const std::string& path) {
  if (dlerrorText.find("undefined symbol: ") != std::string::npos)
    return "cannot be loaded: " + dlerrorText +
           "; link the library that defines it (-Wl,-z,defs reports missing symbols at build time)";
  const std::string missing = ": cannot open shared object file: No such file or directory";
  const size_t at = dlerrorText.find(missing);
  if (at == std::string::npos || dlerrorText.compare(0, at, path) == 0)
    return "cannot be loaded: " + dlerrorText;
  return fmt::format(
      "needs the library {}, which was not found; install it or add its folder to LD_LIBRARY_PATH",
      dlerrorText.substr(0, at));
}

Status checkOps(const muster_plugin_ops* ops, const std::string& path) {
  const auto bad = [&](const std::string& what) { return Error{ErrorCode::kProtocol, what, path}; };
  if (ops == nullptr) return bad("muster_plugin_entry() returned no table");
  if (ops->struct_size < kFirstOpsSize)
    return bad(
        fmt::format("its table has struct_size {}, expected at least {}", ops->struct_size, kFirstOpsSize));
  if (ops->abi_minor > hostAbiMinor())
    return bad(
        fmt::format("its table is of ABI minor {}, this Muster has {}", ops->abi_minor, hostAbiMinor()));
  if (ops->describe == nullptr || ops->open == nullptr || ops->run == nullptr || ops->close == nullptr)
    return bad("its table lacks describe, open, run or close");
  return {};
}

Result<PluginLibrary> PluginLibrary::load(const std::filesystem::path& path) {
  PluginLibrary library;
  MUSTER_TRY(library.identity, identifyPlugin(path));
  const std::string& real = library.identity.path;
  void* handle = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error{ErrorCode::kUnsupported, loadErrorText(lastLoadError(), real), real};
  auto* entry = reinterpret_cast<decltype(&muster_plugin_entry)>(dlsym(handle, "muster_plugin_entry"));
  if (entry == nullptr)
    return Error{ErrorCode::kProtocol, "exports muster_plugin, but no function muster_plugin_entry", real};
  library.ops = entry(hostAbiMinor());
  MUSTER_CHECK_OK(checkOps(library.ops, real));
  return library;
}

}  // namespace muster

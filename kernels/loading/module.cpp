// SPDX-License-Identifier: Apache-2.0
// Opens modules and refuses those of another build.
#include "kernels/loading/module.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>

#include "runner/core/build_info.h"
#include "runner/system/trust.h"

namespace muster {

Result<const void*> openModuleEntry(const std::string& folder, const std::string& file, const char* symbol) {
  MUSTER_TRY(const std::filesystem::path real, trustedPath(std::filesystem::path(folder) / file, "module"));
  const std::string path = real.string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{ErrorCode::kNotFound, dlerror(), path};
  const void* entry = dlsym(library, symbol);
  // The build id comes first in every entry, so that nothing else of a foreign one is looked at.
  if (entry == nullptr || std::string_view(*static_cast<const char* const*>(entry)) != buildId())
    return Error{ErrorCode::kProtocol,
                 "this " + file + " is of another build; install all parts from one build", path};
  return entry;
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Opens backend modules by name and refuses one of another build.
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "kernels/interfaces/backend.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"
#include "runner/system/trust.h"

namespace muster {
namespace {

/// What the NVIDIA kernel driver shows of itself.
constexpr const char* kNvidiaDriver = "/proc/driver/nvidia/version";

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "backend_";
constexpr std::string_view kSuffix = ".so";

/// The backends that lie in `folder`, for error messages.
std::string backendsIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(kPrefix) && file.ends_with(kSuffix))
      names.push_back(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names.empty() ? "no backend" : join(names, ", ");
}

Result<fs::path> modulePath(const std::string& name, const std::string& folder) {
  if (!isPlainName(name))
    return Error{ErrorCode::kUsage, "backend name \"" + printable(name, 64) + "\" is not a plain name", ""};
  fs::path path = fs::path(folder) / (std::string(kPrefix) + name + std::string(kSuffix));
  std::error_code failure;
  if (fs::is_regular_file(path, failure)) return path;
  // Only a machine without the driver lacks a GPU; with one, a backend that is missing is a fault of the
  // installation.
  if (name == "cuda" && !fs::exists(kNvidiaDriver, failure))
    return Error{ErrorCode::kUnsupported,
                 std::string("no NVIDIA driver was found (") + kNvidiaDriver +
                     " is not there), and this build has no CUDA backend; install the driver, or choose "
                     "backend = \"host\"",
                 ""};
  return Error{ErrorCode::kNotFound,
               "there is no backend \"" + name + "\" here; found " + backendsIn(folder) + " in " + folder +
                   " (is it built and installed?)",
               path.string()};
}

/// The text of dlerror() without the path, which the Error already carries when the module itself is named.
std::string loadProblem(const std::string& path) {
  const char* text = dlerror();
  std::string problem = text == nullptr ? "unknown reason" : text;
  if (problem.starts_with(path + ": ")) problem.erase(0, path.size() + 2);
  return problem;
}

Result<const BackendEntry*> openModule(const fs::path& named) {
  MUSTER_TRY(const fs::path path, trustedPath(named, "backend"));
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    return Error{ErrorCode::kNotFound, "the backend cannot be loaded: " + loadProblem(path.string()),
                 path.string()};
  const auto* entry = static_cast<const BackendEntry*>(dlsym(module, "muster_backend_entry"));
  if (entry == nullptr)
    return Error{ErrorCode::kProtocol, "this library is not a Muster backend: it lacks muster_backend_entry",
                 path.string()};
  return entry;
}

}  // namespace

Result<std::unique_ptr<Backend>> loadBackend(const std::string& name, const BackendOptions& options) {
  MUSTER_TRY(fs::path path, modulePath(name, options.folder));
  MUSTER_TRY(const BackendEntry* entry, openModule(path));
  if (std::string_view(entry->buildId) != buildId())
    return Error{ErrorCode::kUnsupported,
                 std::string("the backend is of build ") + entry->buildId + ", this program of build " +
                     buildId() + "; install both from one build",
                 path.string()};
  return entry->open(options);
}

}  // namespace muster

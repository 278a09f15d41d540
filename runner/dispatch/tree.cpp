// SPDX-License-Identifier: Apache-2.0
// Finds the installed tree; see plugins.h.
#include <fmt/format.h>

#include <cstdlib>

#include "runner/dispatch/plugins.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace {
namespace fs = std::filesystem;

Status needed(const fs::path& path, const fs::path& root) {
  std::error_code failure;
  if (fs::exists(path, failure)) return {};
  return Error{ErrorCode::kNotFound,
               fmt::format("is missing from the installation {}; install Muster again, or name its folder in "
                           "MUSTER_TREE",
                           root.string()),
               path};
}

}  // namespace

Result<Tree> findTree() {
  fs::path root;
  if (const char* named = std::getenv("MUSTER_TREE"); named != nullptr && *named != '\0') {
    std::error_code failure;
    root = fs::absolute(named, failure);
  } else {
    MUSTER_TRY(const fs::path folder, executableFolder());
    root = folder.parent_path();
  }
  const fs::path lib = root / "lib" / "muster";
  const fs::path share = root / "share" / "muster";
  Tree tree{lib / "host" / "muster-host", lib / "plugins", lib / "backends", share / "plans",
            share / "templates"};
  for (const fs::path* path :
       {&tree.hostExecutable, &tree.plugins, &tree.backends, &tree.plans, &tree.templates})
    MUSTER_CHECK_OK(needed(*path, root));
  MUSTER_TRY(tree.hostExecutable, trustedPath(tree.hostExecutable, "program"));
  return tree;
}

Result<std::map<std::string, std::string>> binaryDigests(const Tree& tree, const std::string& backend) {
  std::vector<fs::path> files = {tree.hostExecutable, tree.backends.parent_path() / "lib" / "muster-tls.so"};
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(tree.backends, failure)) {
    const std::string name = entry.path().filename().string();
    if (name == "backend_" + backend + ".so" || name.starts_with(backend + "_"))
      files.push_back(entry.path());
  }
  if (failure) return Error{ErrorCode::kIo, "cannot be read: " + failure.message(), tree.backends};
  MUSTER_TRY(const std::string self, readFile("/proc/self/exe"));
  std::map<std::string, std::string> digests = {{"muster", sha256Hex(self)}};
  for (const fs::path& file : files) {
    MUSTER_TRY(const std::string bytes, readFile(file));
    digests[file.filename().string()] = sha256Hex(bytes);
  }
  return digests;
}

}  // namespace muster

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

}  // namespace muster

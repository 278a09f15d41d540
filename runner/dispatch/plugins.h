// SPDX-License-Identifier: Apache-2.0
// Finding plugin libraries and asking each what it offers, in a process of its own.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/metrics/catalog.h"

namespace muster {

/// Where the installed tree is: bin/muster knows it from its own path; the environment variable MUSTER_TREE
/// names another one (the folder that holds lib/muster and share/muster).
struct Tree {
  std::filesystem::path hostExecutable;  ///< lib/muster/host/muster-host
  std::filesystem::path plugins;         ///< lib/muster/plugins
  std::filesystem::path backends;        ///< lib/muster/backends
  std::filesystem::path plans;           ///< share/muster/plans
  std::filesystem::path templates;       ///< share/muster/templates
};

/// The tree that the running executable belongs to; an error names what is missing.
Result<Tree> findTree();

/// SHA-256 of Muster's own programs and libraries that a run with this backend loads beside its plugins, by
/// file name: muster, muster-host, muster-tls.so, backend_cuda.so, cuda_blas.so ... An error names the file
/// that cannot be read.
Result<std::map<std::string, std::string>> binaryDigests(const Tree& tree, const std::string& backend);

/// Describes every library named `*.so` in the folders, by `muster-host --describe` for each (side by side);
/// a library that has not changed since it was last described is not asked again (DescriptionCache).
/// With `only` not empty, just these plugin names are described. A library that is refused or crashes is in
/// Catalog::refused with the reason; it stops only the plans that ask for it. A library's file is named after
/// its plugin; one that stands in two folders is refused. `timeout`: seconds for all of them.
Result<Catalog> describePlugins(const Tree& tree, const std::vector<std::filesystem::path>& extraFolders,
                                const std::vector<std::string>& only, double timeout = 20);

}  // namespace muster

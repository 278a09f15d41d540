// SPDX-License-Identifier: Apache-2.0
// How a run that did not come to its end goes on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

/// The command that resumes the run in `folder`, as one could type it into a shell. Each of several real
/// nodes has a folder of its own inside the one that all of them are given. Folders with plugins are never
/// taken from a journal, so this names them again.
std::string resumeCommand(const Record& record, const std::filesystem::path& folder,
                          const std::vector<std::filesystem::path>& pluginFolders);

}  // namespace muster

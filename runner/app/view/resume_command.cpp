// SPDX-License-Identifier: Apache-2.0
// Builds the command that resumes a run.
#include "runner/app/view/resume_command.h"

#include <algorithm>

#include "runner/core/shell.h"

namespace muster {

std::string resumeCommand(const Record& record, const std::filesystem::path& folder,
                          const std::vector<std::filesystem::path>& pluginFolders) {
  const bool shared = record.nodeCount > 1 && !record.simulated;
  std::vector<std::string> command = {"muster", "run", "--resume",
                                      (shared ? folder.parent_path() : folder).string()};
  // Another name than the host's, which the resumed run must have, too.
  if (std::find(record.command.begin(), record.command.end(), "--node-name") != record.command.end())
    command.insert(command.end(), {"--node-name", record.node});
  // What no launcher says again.
  if (shared && record.launcher.is_object() && record.launcher.value("kind", "") == "flags") {
    command.insert(command.end(), {"--nnodes", std::to_string(record.nodeCount), "--node-rank",
                                   std::to_string(record.nodeRank)});
    if (const std::string store = record.launcher.value("rendezvous", ""); !store.empty())
      command.insert(command.end(), {"--rendezvous", store});
  }
  for (const std::filesystem::path& plugins : pluginFolders)
    command.insert(command.end(), {"--plugins", std::filesystem::absolute(plugins).string()});
  return shellCommand(command);
}

}  // namespace muster

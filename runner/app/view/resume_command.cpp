// SPDX-License-Identifier: Apache-2.0
// Builds the command that resumes a run.
#include "runner/app/view/resume_command.h"

#include "runner/dispatch/start_host.h"

namespace muster {

std::string resumeCommand(const Record& record, const std::filesystem::path& folder) {
  const bool shared = record.nodeCount > 1 && !record.simulated;
  return shellCommand({"muster", "run", "--resume", (shared ? folder.parent_path() : folder).string()});
}

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Clean-up of old run folders by age.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::slurm {

/// One run below the folder that is cleaned up.
struct OldRun {
  std::filesystem::path folder;
  double age = 0;    ///< seconds since anything of it last changed
  std::string kept;  ///< why it stays; empty: it goes
};

/// Every run right below `folder` (links are not followed), and whether it goes: older than `age` seconds,
/// nobody works on it, none of its jobs waits or runs, and it has drained no node that it has not given back.
Result<std::vector<OldRun>> oldRuns(const std::filesystem::path& folder, double age, double now);

/// Removes those that go. Stops at the first that cannot be removed.
Status removeRuns(const std::vector<OldRun>& runs);

}  // namespace muster::slurm

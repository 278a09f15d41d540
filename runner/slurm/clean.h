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
  bool failed =
      false;  ///< it stays because of an error, which may be its user's doing: others are not affected

  void keep(const Error& error) {
    kept = error.text();
    failed = true;
  }
};

/// Every run right below `folder` (links are not followed), and whether it goes: older than `age` seconds,
/// nobody works on it, none of its jobs waits or runs, and it has drained no node that it has not given back.
Result<std::vector<OldRun>> oldRuns(const std::filesystem::path& folder, double age, double now);

/// Removes a run that goes; keeps what cannot be removed.
void removeRun(OldRun& run);

}  // namespace muster::slurm

// SPDX-License-Identifier: Apache-2.0
// The processes below one process, as /proc knows them now.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace muster {

/// One process below the guard.
struct Descendant {
  pid_t pid = 0;
  char state = '?';  ///< R, S, D, Z ... as in /proc/PID/stat
  std::string name;
};

/// Every process below `root`, children of children too, zombies included. A setsid() does not hide a process
/// from it, and below a child subreaper an orphan stays visible.
std::vector<Descendant> descendantsOf(pid_t root);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// One function for each launcher: what its variables say, or nothing where it did not start us. Internal to
// this folder.
#pragma once

#include <optional>
#include <string>

#include "runner/launcher/launcher.h"
#include "runner/launcher/launcher_variables.h"

namespace muster {

using Detected = Result<std::optional<Launcher>>;

Detected detectOpenMpi(const Environment& environment);
Detected detectTorchrun(const Environment& environment);
Detected detectSlurm(const Environment& environment);
/// Kubernetes does not tell a pod how many there are: the flags do.
Detected detectKubernetes(const Environment& environment, const LauncherFlags& flags,
                          const std::string& hostName);
Detected detectPlain(const Environment& environment);

}  // namespace muster

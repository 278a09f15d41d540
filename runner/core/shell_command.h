// SPDX-License-Identifier: Apache-2.0
// A command line as one could type it into a shell.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// `command` with each word quoted where a shell would change it.
std::string shellCommand(const std::vector<std::string>& command);

}  // namespace muster

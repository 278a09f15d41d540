// SPDX-License-Identifier: Apache-2.0
// Shell completion for bash.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace muster {

/// The script that `muster completion bash` prints; source it, or put it into /etc/bash_completion.d.
std::string bashCompletion(const CLI::App& app);

}  // namespace muster

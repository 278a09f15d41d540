// SPDX-License-Identifier: Apache-2.0
// What a person is told about a command line that cannot be understood, and values that only look given.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace muster {

/// One line for people about what CLI11 refused: which word, the nearest that would do, the next step.
/// `argv`: the command line, whose first word may be no command at all.
std::string usageText(const CLI::App& app, const CLI::Error& error, int argc, const char* const* argv);

/// What an option was given of no text (`--simulate "$UNSET"`): an empty value would count as none, so the
/// command would do something else than was asked. Empty when there is none.
std::string emptyValueText(const CLI::App& app);

}  // namespace muster

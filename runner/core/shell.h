// SPDX-License-Identifier: Apache-2.0
// Words and command lines for a shell.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster {

/// `text` as one word for a POSIX shell, in quotes where it needs them.
std::string shellQuote(const std::string& text);

/// `command` as one could type it: each word quoted where a shell would change it.
std::string shellCommand(const std::vector<std::string>& command);

/// The words of a line as shellCommand() makes it, with quotes where they are not needed, too; none of a line
/// in which a shell sees anything else.
std::optional<std::vector<std::string>> wordsOfCommand(const std::string& line);

}  // namespace muster

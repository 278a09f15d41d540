// SPDX-License-Identifier: Apache-2.0
// Text for a shell.
#pragma once

#include <string>

namespace muster {

/// `text` as one word for a POSIX shell, in quotes where it needs them.
std::string shellQuote(const std::string& text);

}  // namespace muster

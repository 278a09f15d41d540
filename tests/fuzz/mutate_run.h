// SPDX-License-Identifier: Apache-2.0
// Runs a check over seeds and thousands of broken variants of them; says which input one died or hung on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::testing {

/// "" for an error that people can read (printable, not endless), else what is wrong with it. Several
/// mistakes are a line each.
std::string problemOfError(const Error& error);

/// What must hold of one input. The text that comes back is empty, or says what does not hold.
using InputCheck = std::string (*)(const std::string& input);

/// Checks `seeds` as they are, then `count` inputs that `next` makes. False, and the input on stderr, where
/// one does not pass; a crash, a check of more than 30 s or one of more than 512 MiB ends the process with
/// the input on stderr too. No seed at all is a failure.
bool runMutations(const char* what, const std::vector<std::string>& seeds,
                  const std::function<std::string()>& next, long count, InputCheck check);

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Runs a check over seeds and thousands of broken variants of them; says which input one died or hung on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::testing {

/// What must hold of one input. The text that comes back is empty, or says what does not hold.
using InputCheck = std::string (*)(const std::string& input);

/// Checks `seeds` as they are, then `count` inputs that a Mutator makes of them and `words`: always the same
/// for the same `seed`. False, and the input on stderr, where one does not pass; a crash or a check of more
/// than 30 s ends the process with the input on stderr too. No seed at all is a failure.
bool runMutations(const char* what, const std::vector<std::string>& seeds,
                  const std::vector<std::string>& words, long count, uint64_t seed, InputCheck check);

}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Whose word counts where records differ in what one of them alone must not choose for the others.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace muster {

/// Whether what `own` of `asked` nodes say counts.
inline bool isMajority(size_t own, size_t asked) {
  return 2 * own > asked;
}

/// Why it does not count; empty: it does. `answer`: "the direction of compute.gemm_throughput is "lower"".
inline std::string whyNoMajority(size_t own, size_t asked, std::string_view answer) {
  if (isMajority(own, asked)) return "";
  return fmt::format("{} of {} records say that {}, and the others differ", own, asked, answer);
}

}  // namespace muster

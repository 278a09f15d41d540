// SPDX-License-Identifier: Apache-2.0
// Tokens of a batch, sorted: the gradient of an embedding adds up rows in this order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::cuda {

struct SortedTokens {
  std::vector<int32_t> order;   ///< places in the batch by token, ties by place
  std::vector<int32_t> starts;  ///< where each token's places begin; one more at the end
};

/// Tokens are below `rows`.
inline SortedTokens sortTokens(std::span<const int32_t> tokens, int64_t rows) {
  SortedTokens sorted;
  sorted.starts.assign(static_cast<size_t>(rows) + 1, 0);
  sorted.order.resize(tokens.size());
  for (int32_t token : tokens) ++sorted.starts[static_cast<size_t>(token) + 1];
  for (size_t row = 1; row < sorted.starts.size(); ++row) sorted.starts[row] += sorted.starts[row - 1];
  std::vector<int32_t> next(sorted.starts.begin(), sorted.starts.end() - 1);
  for (size_t place = 0; place < tokens.size(); ++place)
    sorted.order[static_cast<size_t>(next[static_cast<size_t>(tokens[place])]++)] =
        static_cast<int32_t>(place);
  return sorted;
}

}  // namespace muster::cuda

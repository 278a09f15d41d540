// SPDX-License-Identifier: Apache-2.0
// Index of the meetings of each node.
#pragma once

#include <vector>

#include "plugins/ring/solver/round_log.h"

namespace muster::ring {

/// Lists the meetings of each node as indices into RoundLog::meetings().
class MeetingsByNode {
 public:
  explicit MeetingsByNode(const RoundLog& log);
  struct Range {
    const size_t* first;
    const size_t* last;
    [[nodiscard]] const size_t* begin() const { return first; }
    [[nodiscard]] const size_t* end() const { return last; }
    [[nodiscard]] size_t size() const { return static_cast<size_t>(last - first); }
  };
  [[nodiscard]] Range of(int node) const;
  [[nodiscard]] bool met(const RoundLog& log, int x, int y) const;

 private:
  std::vector<size_t> start_;
  std::vector<size_t> meetings_;
};

}  // namespace muster::ring

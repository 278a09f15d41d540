// SPDX-License-Identifier: Apache-2.0
// Builds the index: the meetings of all nodes in one array.
#include "plugins/ring/solver/meetings_by_node.h"

#include <algorithm>

namespace muster::ring {

MeetingsByNode::MeetingsByNode(const RoundLog& log) : start_(static_cast<size_t>(log.nodes()) + 1) {
  const auto& meetings = log.meetings();
  for (const Meeting& m : meetings) {
    ++start_[static_cast<size_t>(m.pair.a) + 1];
    ++start_[static_cast<size_t>(m.pair.b) + 1];
  }
  for (size_t i = 1; i < start_.size(); ++i) start_[i] += start_[i - 1];
  std::vector<size_t> next(start_.begin(), start_.end() - 1);
  meetings_.resize(2 * meetings.size());
  for (size_t i = 0; i < meetings.size(); ++i)
    for (int node : {meetings[i].pair.a, meetings[i].pair.b})
      meetings_[next[static_cast<size_t>(node)]++] = i;
}

MeetingsByNode::Range MeetingsByNode::of(int node) const {
  const auto i = static_cast<size_t>(node);
  return {meetings_.data() + start_[i], meetings_.data() + start_[i + 1]};
}

bool MeetingsByNode::met(const RoundLog& log, int x, int y) const {
  const Pair wanted = makePair(x, y);
  const Range range = of(x);
  return std::any_of(range.begin(), range.end(), [&](size_t m) { return log.meetings()[m].pair == wanted; });
}

}  // namespace muster::ring

// SPDX-License-Identifier: Apache-2.0
// One lane's figures read: which nodes, links and leaves they accuse, and which questions are still open.
#pragma once

#include <map>
#include <vector>

#include "plugins/ring/baseline.h"
#include "plugins/ring/round_log.h"

namespace muster::ring {

/// The meetings of each node, by index into RoundLog::meetings().
class Encounters {
 public:
  explicit Encounters(const RoundLog& log);
  struct Range {
    const size_t* first;
    const size_t* last;
    [[nodiscard]] const size_t* begin() const { return first; }
    [[nodiscard]] const size_t* end() const { return last; }
  };
  [[nodiscard]] Range of(int node) const;
  [[nodiscard]] bool met(const RoundLog& log, int x, int y) const;

 private:
  std::vector<size_t> start_;
  std::vector<size_t> meetings_;
};

/// Something that costs speed in one lane. `loss` is a logarithm (Baseline); `strength` the log of the odds
/// against the next best explanation.
struct NodeFault {
  int node = 0;
  double loss = 0;
  double strength = 0;
  std::vector<int> slowWith;
  std::vector<int> fineWith;
};
struct LinkFault {
  Pair pair;
  double loss = 0;
  double strength = 0;
  int times = 0;  ///< measured, slow each time
};
struct LeafFault {
  int leaf = 0;
  double loss = 0;
  double strength = 0;
  int slowPairs = 0;
  int pairs = 0;
};
/// Slow pairs that no single cause explains; the nodes that may be to blame.
struct OpenFault {
  Pair pair;
  double loss = 0;
  std::vector<int> suspects;
};

/// A meeting that would answer a question.
struct Wish {
  enum class Kind {
    kHealthyPartner,    ///< `pair.a` with a healthy node that it has not met
    kHealthyCrossLeaf,  ///< the same, with a node of another leaf
    kAgain,             ///< `pair` once more
  };
  Kind kind = Kind::kHealthyPartner;
  Pair pair;
  int weight = 0;  ///< the heavier is served first
};

struct LaneFindings {
  std::vector<NodeFault> nodes;
  std::vector<LinkFault> links;
  std::vector<LeafFault> leaves;
  std::vector<OpenFault> open;
  std::vector<Pair> unrepeated;  ///< slow once, and not when measured again
  std::vector<Wish> wishes;
  std::vector<int> suspects;  ///< every node of a slow pair
  Baseline sameLeaf;
  Baseline crossLeaf;  ///< equals sameLeaf where no topology is known
};

/// `openingMeetings`: how many of the first meetings set the baseline (suspects' pairs would bias it).
/// `lane`: which; the threshold counts the figures of all lanes of one quantity as one family.
LaneFindings analyseLane(const RoundLog& log, const Encounters& encounters, size_t lane,
                         size_t openingMeetings);

}  // namespace muster::ring

// SPDX-License-Identifier: Apache-2.0
// What the figures of one lane accuse, and which meetings would answer what they leave open.
#pragma once

#include <vector>

#include "plugins/ring/solver/pairing.h"

namespace muster::ring {

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
/// A slow pair whose cause is open.
struct OpenFault {
  Pair pair;
  double loss = 0;
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
  std::vector<Pair> unrepeated;    ///< slow once, and not when measured again
  std::vector<Pair> inconclusive;  ///< measured once, neither good nor slow
  std::vector<Pair> disturbed;     ///< slow each time, but other processes on the hosts may account for it
  std::vector<Wish> wishes;
  std::vector<int> suspects;  ///< nodes that are named, and those of slow pairs that nothing explains
};

}  // namespace muster::ring

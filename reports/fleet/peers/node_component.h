// SPDX-License-Identifier: Apache-2.0
// Splits the values of devices into the node's common component and each device's own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace muster::fleet {

/// One metric over all devices of a group, taken apart; in single precision, as fleets have millions of them.
/// Deviations are from the group's median, bad is positive, in the same measure; NaN where there is nothing
/// to compare with.
struct NodeParts {
  double center = 0;        ///< median of what went in
  double mad = 0;           ///< median absolute deviation from it
  double deviceSigma = 0;   ///< of devices within their node
  double nodeSigma = 0;     ///< of the common part; 0: none seen, or too few nodes to see it
  size_t n = 0;             ///< devices that have a value
  double freedom = 0;       ///< independent differences between devices
  double nodeCenter = 0;    ///< median of the nodes' locations, beside `center`
  double usual = 0;         ///< devices of a usual node
  std::vector<float> own;   ///< per device: off from what its node's other devices let expect, as deviceSigma
  std::vector<float> node;  ///< per node: the common part, as varied as that of a node of the usual size
};

/// Which devices belong to which node: those of node i are [first[i], first[i + 1]).
using NodeBounds = std::vector<size_t>;

/// Takes one metric apart. `values`: per device, bad is positive, NaN where missing. The common part of a
/// node is drawn towards the group by the ratio of both variances (best linear prediction; Robinson 1991),
/// unless there are fewer than `leastNodes` nodes, or it is far out: then it is taken as it is.
NodeParts takeApart(std::span<const double> values, const NodeBounds& first, size_t leastNodes);

/// The common part of one node, as in NodeParts::node, from its devices' values; NaN if none is there.
double commonPart(std::span<const double> values, const NodeParts& parts);

}  // namespace muster::fleet

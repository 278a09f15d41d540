// SPDX-License-Identifier: Apache-2.0
// What one figure, or a few of them, say for and against a loss: log odds under normal noise.
#pragma once

#include <algorithm>

namespace muster::ring {

constexpr double kMostEvidence = 12;  ///< of one figure, so that no single one decides against two
constexpr double kClearsOne = 10;     ///< evidence that clears a node with one slow pair, or an uplink
constexpr double kSecondFault = 6.9;  ///< log odds against one more fault: one in a thousand

/// Log odds that a figure which lost `loss` did not do so by chance.
inline double slowEvidence(double loss, double sigma) {
  return std::min(kMostEvidence, loss * loss / (2 * sigma * sigma));
}

/// Log odds that a figure which lost `lost` has not the loss `loss`.
inline double fineEvidence(double loss, double lost, double sigma) {
  return std::min(kMostEvidence, loss * (loss - 2 * std::max(0.0, lost)) / (2 * sigma * sigma));
}

}  // namespace muster::ring

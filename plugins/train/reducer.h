// SPDX-License-Identifier: Apache-2.0
// Sums gradients over the ranks in buckets, while the backward pass still runs.
#pragma once

#include <vector>

#include "kernels/interfaces/communicator.h"
#include "kernels/interfaces/nn.h"

namespace muster::train {

/// Collects the ranges that backward() reports and queues an all-reduce whenever a bucket is full (Li et al.
/// 2020, "PyTorch Distributed"). Of a group of one it does nothing.
class GradientReducer {
 public:
  GradientReducer(Communicator* communicator, Program& program, uint64_t bucketElements)
      : communicator_(communicator), program_(program), bucketElements_(bucketElements) {}

  /// Takes a range whose gradients are final. Ranges come adjacent, from the end of the buffer to its start.
  Status ready(ElementRange range);
  /// Queues what is left, and lets the device wait for all of it.
  Status finish();
  /// Queues the same buckets once more, as they were in the last step: to time them alone.
  Status repeat();
  [[nodiscard]] const std::vector<ElementRange>& buckets() const { return buckets_; }

 private:
  Status flush();

  Communicator* communicator_;
  Program& program_;
  uint64_t bucketElements_;
  ElementRange open_;
  std::vector<ElementRange> buckets_;  ///< of this step, or of the last one
  bool stepEnded_ = true;
};

}  // namespace muster::train

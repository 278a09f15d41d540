// SPDX-License-Identifier: Apache-2.0
// Fills buckets with gradients and sums them while the backward pass runs.
#include "plugins/train/reducer.h"

#include <fmt/format.h>

namespace muster::train {

Status GradientReducer::ready(ElementRange range) {
  if (communicator_ == nullptr) return {};
  if (stepEnded_) buckets_.clear();
  stepEnded_ = false;
  if (open_.count > 0 && range.first + range.count != open_.first)
    return Error{ErrorCode::kInternal,
                 fmt::format("gradients {} to {} do not lie before those from {} on", range.first,
                             range.first + range.count, open_.first),
                 ""};
  open_ = {range.first, open_.count + range.count};
  return open_.count >= bucketElements_ ? flush() : Status();
}

Status GradientReducer::flush() {
  if (open_.count == 0) return {};
  buckets_.push_back(open_);
  open_ = {};
  const ElementRange& bucket = buckets_.back();
  return communicator_->allReduce(program_.gradients(), bucket.first, bucket.count, Dtype::kF32,
                                  ReduceOp::kSum);
}

Status GradientReducer::finish() {
  if (communicator_ == nullptr) return {};
  MUSTER_CHECK_OK(flush());
  stepEnded_ = true;
  return communicator_->join();
}

Status GradientReducer::repeat() {
  for (const ElementRange& bucket : buckets_)
    MUSTER_CHECK_OK(communicator_->allReduce(program_.gradients(), bucket.first, bucket.count, Dtype::kF32,
                                             ReduceOp::kSum));
  return {};
}

}  // namespace muster::train

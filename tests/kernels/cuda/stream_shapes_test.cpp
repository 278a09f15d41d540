// SPDX-License-Identifier: Apache-2.0
// The choice of launch shapes: by the fastest pass after a warm-up, once for each kernel.
#include "kernels/cuda/stream_shapes.h"

#include <gtest/gtest.h>

namespace muster::cuda {
namespace {

bool same(const StreamShape& a, const StreamShape& b) {
  return a.threads == b.threads && a.unroll == b.unroll && a.resident == b.resident;
}

TEST(StreamShapes, TakeTheFastestAndTimeNoMore) {
  StreamShapes shapes;
  int timed = 0;
  const auto time = [&](const StreamShape& shape) -> Result<double> {
    const bool first = timed++ < static_cast<int>(kStreamShapes.size());
    if (first) return same(shape, kStreamShapes[1]) ? 1e-9 : 1.0;  // a cold pass must not decide
    return same(shape, kStreamShapes[3]) ? 0.5 : 1.0;
  };
  EXPECT_TRUE(same(*shapes.choose(StreamOp::kCopy, kLeastTunedBytes, time), kStreamShapes[3]));
  const int once = timed;
  EXPECT_TRUE(same(*shapes.choose(StreamOp::kCopy, kLeastTunedBytes, time), kStreamShapes[3]));
  EXPECT_EQ(timed, once);
  EXPECT_TRUE(shapes.choose(StreamOp::kTriad, kLeastTunedBytes, time).ok());
  EXPECT_GT(timed, once);
}

TEST(StreamShapes, DoNotJudgeBySmallBuffers) {
  StreamShapes shapes;
  bool timed = false;
  const auto time = [&](const StreamShape&) -> Result<double> {
    timed = true;
    return 1.0;
  };
  EXPECT_TRUE(same(*shapes.choose(StreamOp::kRead, kLeastTunedBytes - 8, time), kStreamShapes.front()));
  EXPECT_FALSE(timed);
  EXPECT_TRUE(shapes.choose(StreamOp::kRead, kLeastTunedBytes, time).ok());
  EXPECT_TRUE(timed);
}

TEST(StreamShapes, PassOnWhatFailed) {
  StreamShapes shapes;
  const auto time = [](const StreamShape&) -> Result<double> {
    return Error{ErrorCode::kIo, "broken", "gpu0"};
  };
  EXPECT_FALSE(shapes.choose(StreamOp::kRead, kLeastTunedBytes, time).ok());
}

}  // namespace
}  // namespace muster::cuda

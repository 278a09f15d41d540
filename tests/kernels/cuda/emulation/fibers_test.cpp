// SPDX-License-Identifier: Apache-2.0
// The emulation itself: threads meet at barriers and exchange values as on a GPU, and what would hang or is
// not defined there is told.
#include "tests/kernels/cuda/emulation/fibers.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/handles.h"
#include "tests/kernels/cuda/emulation/streams.h"

namespace muster::emulation {
namespace {

unsigned self() {
  return currentThread().threadIndex.x;
}

TEST(EmulatedGrid, RunsEachThreadOnce) {
  const dim3 grid = {3, 2, 2}, block = {5, 4, 2};
  std::vector<int> ran(480);
  EXPECT_EQ(runGrid(grid, block,
                    [&] {
                      const Thread& t = currentThread();
                      const unsigned blockNumber =
                          (t.blockIndex.z * grid.y + t.blockIndex.y) * grid.x + t.blockIndex.x;
                      ++ran[blockNumber * 40 + (t.threadIndex.z * 4 + t.threadIndex.y) * 5 + t.threadIndex.x];
                      EXPECT_EQ(t.grid.y, 2u);
                    }),
            "");
  EXPECT_EQ(ran, std::vector<int>(480, 1));
}

TEST(EmulatedGrid, MeetsAtBarriers) {
  std::vector<unsigned> shared(96), seen(96);
  EXPECT_EQ(runGrid(2, 96,
                    [&] {
                      shared[self()] = 7 * self();
                      syncBlock();
                      seen[self()] = shared[95 - self()];
                      syncBlock();
                      shared[self()] = 0;
                    }),
            "");
  for (unsigned i = 0; i < 96; ++i) EXPECT_EQ(seen[i], 7 * (95 - i));
}

/// One of two blocks runs its threads from the last one: what leans on the order of threads is wrong in one.
TEST(EmulatedGrid, ShowsABarrierThatIsMissing) {
  for (const bool ahead : {true, false}) {
    bool wrong = false;
    std::vector<unsigned> shared(64);
    EXPECT_EQ(runGrid(2, 64,
                      [&] {
                        const unsigned block = currentThread().blockIndex.x + 1;
                        shared[self()] = block;
                        wrong |= shared[(self() + (ahead ? 1 : 63)) % 64] != block;
                      }),
              "");
    EXPECT_TRUE(wrong);
  }
}

TEST(EmulatedGrid, WaitsNotForThreadsThatHaveEnded) {
  int passed = 0;
  EXPECT_EQ(runGrid(1, 64,
                    [&] {
                      if (self() >= 10) return;
                      syncBlock();
                      ++passed;
                    }),
            "");
  EXPECT_EQ(passed, 10);
}

TEST(EmulatedGrid, ExchangesValuesInAWarp) {
  for (unsigned distance : {1u, 2u, 4u, 8u, 16u}) {
    std::vector<uint32_t> got(64);
    EXPECT_EQ(runGrid(1, 64,
                      [&] {
                        const uint32_t first = exchange(0xFFFFFFFF, 100 + self(), distance);
                        got[self()] = exchange(0xFFFFFFFF, first, 1);
                      }),
              "");
    for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(got[i], 100 + (i ^ 1 ^ distance));
  }
}

TEST(EmulatedGrid, TellsOfABarrierThatNotAllReach) {
  const std::string problem = runGrid(1, 64, [] {
    if (self() < 32) exchange(0xFFFFFFFF, 1, 1);
    if (self() == 40) exchange(0xFFFFFFFF, 1, 1);  // the rest of its warp goes to the block's barrier
    syncBlock();
  });
  EXPECT_EQ(problem, "64 of 64 threads of a block wait for others that never come");
  EXPECT_EQ(runGrid(1, 64, [] { syncBlock(); }), "");  // and works on afterwards
}

TEST(EmulatedGrid, TellsOfAShuffleWithoutAllLanes) {
  const auto half = [] { exchange(0xFFFFFFFF, 1, 1); };
  EXPECT_EQ(runGrid(1, 48, half), "a shuffle among 16 lanes; expected all 32 of a warp");
  EXPECT_EQ(runGrid(1, 64, half), "");
}

class EmulatedStream : public ::testing::Test {
 protected:
  void queueAdd(int value) {
    queueKernel(stream_.get(), 1, 1, [this, value] { order_.push_back(value); });
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  std::vector<int> order_;
  cuda::Stream stream_ = cuda::makeStream().value();  // its end runs what is still queued
};

TEST_F(EmulatedStream, RunsNothingBeforeTheHostWaits) {
  queueAdd(1);
  queueAdd(2);
  EXPECT_TRUE(order_.empty());
  EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  EXPECT_EQ(order_, (std::vector{1, 2}));
}

TEST_F(EmulatedStream, WaitsForEventsOfOthers) {
  const cuda::Stream other = cuda::makeStream().value();
  const cuda::Event event = cuda::makeEvent(true).value();
  queueAdd(1);
  EXPECT_EQ(cudaEventRecord(event.get(), stream_.get()), cudaSuccess);
  queueAdd(3);
  EXPECT_EQ(cudaStreamWaitEvent(other.get(), event.get(), 0), cudaSuccess);
  queueKernel(other.get(), 1, 1, [this] { order_.push_back(2); });
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event.get(), event.get()), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaSuccess);
  EXPECT_EQ(order_, (std::vector{1, 2}));
}

TEST_F(EmulatedStream, CapturesAndReplaysGraphs) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  queueAdd(1);
  EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaErrorStreamCaptureUnsupported);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 8), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_.get(), &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cudaGraphLaunch(executable, stream_.get()), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  EXPECT_EQ(order_, (std::vector{1, 1}));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(EmulatedStream, RefusesGridsThatNoGpuTakes) {
  for (const auto& [grid, block] :
       {std::pair{dim3(0), dim3(32)}, {dim3(1, 65536), dim3(1)}, {dim3(1), dim3(33, 32)}}) {
    queueKernel(stream_.get(), grid, block, [] {});
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  }
}

TEST_F(EmulatedStream, StaysBrokenOnceAKernelFailed) {
  queueKernel(stream_.get(), 1, 8, [] { exchange(0xFFFFFFFF, 1, 1); });
  EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaErrorLaunchFailure);
  queueKernel(stream_.get(), 1, 1, [] { ADD_FAILURE(); });
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
}

}  // namespace
}  // namespace muster::emulation

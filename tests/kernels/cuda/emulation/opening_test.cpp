// SPDX-License-Identifier: Apache-2.0
// What is decided when a GPU is opened and a network compiled: GPUs that are too new, drivers that are too
// old, the algorithm that is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/dnn/library/engine.h"
#include "kernels/cuda/problems.h"
#include "tests/gpu/gpu.h"
#include "tests/kernels/cuda/emulation/streams.h"

namespace muster::gpu {
namespace {

using ::testing::HasSubstr;

TEST(EmulatedOpening, RefusesAGpuThatTheToolkitCameBefore) {
  const Status refused = cuda::checkGeneration(103, 12060, "gpu3");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.error().text(),
      "gpu3: this build was made with CUDA 12.6, which has no code for a GPU of compute capability 10.3; "
      "use a build made with CUDA 12.8 or newer");
  EXPECT_NE(refused.error().code, ErrorCode::kUnsupported) << "that would be a skip";
  EXPECT_TRUE(cuda::checkGeneration(103, 12080, "gpu3").ok());
  EXPECT_TRUE(cuda::checkGeneration(90, 12040, "gpu3").ok());
}

TEST(EmulatedOpening, AsksForTheOldestDriverOfTheToolkitsMajorVersion) {
  const auto text = [](int driver, int runtime) {
    return cuda::openProblem(cudaErrorInsufficientDriver, "gpu0", "", driver, runtime).text();
  };
  EXPECT_THAT(text(11080, 12040), HasSubstr("install driver 525 or newer"));
  EXPECT_THAT(text(12040, 13000), HasSubstr("install driver 580 or newer"));
}

/// Ten kernels of a microsecond against one that takes 15: by what launches cost the host, the one would win.
TEST(EmulatedOpening, ChoosesAlgorithmsByTheGpusTimeAlone) {
  const std::unique_ptr<Device> device = openGpu();
  const auto engine = cuda::Engine::open(static_cast<cuda::CudaDevice&>(*device), {.deterministic = false});
  ASSERT_TRUE(engine.ok()) << engine.error().text();
  const auto work = [&](double seconds) {
    return emulation::queue((*engine)->stream, [] { return cudaSuccess; }, seconds) == cudaSuccess
               ? Status()
               : Status(Error{ErrorCode::kInternal, "cannot queue", ""});
  };
  const auto run = [&](size_t candidate) -> Status {
    if (candidate == 0) return work(15e-6);
    for (int i = 0; i < 10; ++i) MUSTER_CHECK_OK(work(1e-6));
    return {};
  };
  const auto chosen = (*engine)->choose("short kernels", 2, run);
  ASSERT_TRUE(chosen.ok()) << chosen.error().text();
  EXPECT_EQ(*chosen, 1u);
}

}  // namespace
}  // namespace muster::gpu

// SPDX-License-Identifier: Apache-2.0
// Errors of the CUDA runtime as an operator reads them.
#include "kernels/cuda/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::cuda {
namespace {

using ::testing::HasSubstr;

Error opening(cudaError_t code, int driver = 12040) {
  return openProblem(code, "gpu3", "0000:18:00.0", driver, 13000);
}

TEST(OpenProblem, SaysWhatToDoAboutADriverThatIsTooOld) {
  const Error error = opening(cudaErrorInsufficientDriver);
  EXPECT_EQ(error.text(),
            "gpu3: the NVIDIA driver runs CUDA 12.4 at most, this build needs 13.0; install driver 580 or "
            "newer, or "
            "the package cuda-compat-13-0 (data center GPUs), or a build made with an older toolkit");
}

TEST(OpenProblem, TellsNoDriverFromAnOldOne) {
  EXPECT_THAT(opening(cudaErrorInsufficientDriver, 0).text(), HasSubstr("libcuda.so.1 is not there"));
}

/// That would be a skip, of a GPU that the driver lists.
TEST(OpenProblem, IsNeverUnsupported) {
  for (const cudaError_t code :
       {cudaErrorInsufficientDriver, cudaErrorCompatNotSupportedOnDevice, cudaErrorSystemDriverMismatch,
        cudaErrorInvalidDevice, cudaErrorDevicesUnavailable, cudaErrorSystemNotReady,
        cudaErrorNoKernelImageForDevice, cudaErrorUnknown})
    for (const int driver : {0, 12040})
      EXPECT_NE(opening(code, driver).code, ErrorCode::kUnsupported) << code;
}

TEST(OpenProblem, NamesExclusiveMode) {
  EXPECT_THAT(opening(cudaErrorDevicesUnavailable).text(), HasSubstr("exclusive mode"));
}

TEST(OpenProblem, NamesTheFabricManager) {
  EXPECT_THAT(opening(cudaErrorSystemNotReady).text(), HasSubstr("nvidia-fabricmanager"));
}

TEST(OpenProblem, NamesTheVariableThatHidesAGpu) {
  setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  EXPECT_THAT(opening(cudaErrorInvalidDevice).text(), HasSubstr("CUDA_VISIBLE_DEVICES is \"0,1\": unset it"));
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(opening(cudaErrorInvalidDevice).text(), HasSubstr("0000:18:00.0"));
  EXPECT_EQ(opening(cudaErrorInvalidDevice).code, ErrorCode::kNotFound);
}

TEST(OpenProblem, KeepsTheRuntimesWordsForTheRest) {
  EXPECT_THAT(opening(cudaErrorUnknown).text(), HasSubstr("(cudaErrorUnknown)"));
}

TEST(WorkProblem, SaysWhatWasDoneAndWhereToLook) {
  const Error error = workProblem(cudaErrorECCUncorrectable, "gpu1", "waiting for queued work");
  EXPECT_THAT(error.text(),
              HasSubstr("gpu1: uncorrectable ECC error encountered (cudaErrorECCUncorrectable) while "
                        "waiting for queued work; see nvidia-smi -q -d ECC"));
  EXPECT_THAT(workProblem(cudaErrorIllegalAddress, "gpu1", "x").text(), HasSubstr("dmesg"));
}

}  // namespace
}  // namespace muster::cuda

// SPDX-License-Identifier: Apache-2.0
// Simulated GEMM: rate, repeatability and planted corruption.
#include "kernels/sim/sim_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/compare_with_kept.h"
#include "tests/kernels/sim/small_scenario.h"

namespace muster::sim {
namespace {

using ::testing::HasSubstr;

GemmSpec cube(int64_t size, Dtype dtype = Dtype::kBf16) {
  return {size, size, size, dtype, "default"};
}

std::unique_ptr<Gemm> make(SimDevice& device, const GemmSpec& spec) {
  auto gemm = SimOps(device).gemm(spec);
  EXPECT_TRUE(gemm.ok()) << gemm.error().text();
  return std::move(*gemm);
}

TEST(SimOps, OffersTheDtypesOfTheScenario) {
  auto device = smallDevice();
  SimOps ops(*device);
  EXPECT_EQ(ops.gemmDtypes(), (std::vector<Dtype>{Dtype::kF32, Dtype::kBf16}));
  EXPECT_EQ(ops.gemmAlgorithms(Dtype::kBf16).size(), 1u);
  EXPECT_TRUE(ops.gemmAlgorithms(Dtype::kI8).empty());
}

TEST(SimOps, RefusesADtypeWithoutAFigure) {
  auto device = smallDevice();
  auto gemm = SimOps(*device).gemm(cube(64, Dtype::kFp8E4m3));
  ASSERT_FALSE(gemm.ok());
  EXPECT_EQ(gemm.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(gemm.error().text(), HasSubstr("fp8_e4m3"));
}

TEST(SimOps, RefusesNoWorkAnUnknownAlgorithmAndTooMuchMemory) {
  auto device = smallDevice();
  SimOps ops(*device);
  EXPECT_EQ(ops.gemm(cube(0)).error().code, ErrorCode::kUsage);
  GemmSpec named = cube(64);
  named.algorithm = "magic";
  EXPECT_THAT(ops.gemm(named).error().text(), HasSubstr("magic"));
  EXPECT_THAT(ops.gemm(cube(20000)).error().text(), HasSubstr("out of device memory"));
}

TEST(SimGemm, RunsAtTheScenariosRate) {
  auto device = smallDevice();
  auto gemm = make(*device, cube(1000));
  ASSERT_TRUE(gemm->prepare(1).ok());
  EXPECT_NEAR(*device->time([&] { return gemm->run(); }), 2e9 / 1e12, 1e-9);
}

double secondsOf(SimDevice& device) {
  auto gemm = make(device, cube(1000));
  EXPECT_TRUE(gemm->prepare(1).ok());
  return *device.time([&] { return gemm->run(); });
}

TEST(SimGemm, FollowsTheClock) {
  auto slow = smallDevice("[climate]\nload_clock = \"1000 MHz\"\n");
  EXPECT_NEAR(secondsOf(*slow), 2e-3 * 1755 / 1000, 1e-9);
  auto fast = smallDevice("[climate]\nload_clock = \"2000 MHz\"\n");
  EXPECT_NEAR(secondsOf(*fast), 2e-3 * 1755 / 2000, 1e-9);
  auto memory = slow->allocate(1000000);
  ASSERT_TRUE(memory.ok());
  Buffer& buffer = **memory;
  EXPECT_NEAR(*slow->time([&] { return slow->memoryOp(MemoryOp::kRead, buffer, nullptr, nullptr); }), 1e-3,
              1e-9)
      << "memory has a clock of its own";
}

TEST(SimGemm, SlowsDownWhereTheDeviceGetsTooHot) {
  const std::string hot =
      "[climate]\nidle_temperature = \"30 degC\"\nload_temperature = \"105 degC\"\n"
      "throttle_temperature = \"90 degC\"\n";
  EXPECT_NEAR(secondsOf(*smallDevice(hot, 0, 0)), 2e-3, 1e-9) << "it is still cool";
  EXPECT_NEAR(secondsOf(*smallDevice(hot, 0, 1000)), 2e-3 * 75 / 60, 1e-9);
}

TEST(SimGemm, IsCorrectAndRepeatable) {
  auto device = smallDevice();
  auto gemm = make(*device, cube(64));
  ASSERT_TRUE(gemm->prepare(1).ok());
  ASSERT_TRUE(gemm->run().ok());
  ASSERT_TRUE(gemm->keepResult().ok());
  ASSERT_TRUE(gemm->run().ok());
  EXPECT_EQ(testing::compareWithKept(*device, *gemm)->wrong, 0u);
  auto error = gemm->checkAgainstReference(256, 3);
  EXPECT_EQ(error->wrong, 0u);
  EXPECT_EQ(error->checked, 256u);
  EXPECT_LT(error->worst, error->bound);
}

TEST(SimGemm, ShowsSilentCorruptionAtItsOffset) {
  auto device = smallDevice(
      "[[fault]]\nkind = \"corruption\"\ndevice = 0\nevery = 2\noffset = 256\nbit = 3\nops = [\"gemm\"]\n");
  auto gemm = make(*device, cube(64, Dtype::kF32));
  ASSERT_TRUE(gemm->prepare(1).ok());
  ASSERT_TRUE(gemm->run().ok());
  ASSERT_TRUE(gemm->keepResult().ok());
  EXPECT_EQ(gemm->checkAgainstReference(8, 1)->wrong, 0u);
  ASSERT_TRUE(gemm->run().ok());
  const auto found = testing::compareWithKept(*device, *gemm);
  EXPECT_EQ(found->wrong, 1u);
  EXPECT_EQ(found->firstOffset, 256u);
  EXPECT_EQ(found->expectedBits ^ found->actualBits, 1u << 3);
  auto error = gemm->checkAgainstReference(8, 1);
  EXPECT_EQ(error->wrong, 1u);
  EXPECT_EQ(error->row, 1);
  EXPECT_EQ(error->column, 0);
}

TEST(SimGemm, NeverRepeatsACorruptionExactly) {
  auto device = smallDevice("[[fault]]\nkind = \"corruption\"\ndevice = 0\nevery = 1\nops = [\"gemm\"]\n");
  auto gemm = make(*device, cube(64));
  ASSERT_TRUE(gemm->prepare(1).ok());
  ASSERT_TRUE(gemm->run().ok());
  ASSERT_TRUE(gemm->keepResult().ok());
  ASSERT_TRUE(gemm->run().ok());
  EXPECT_EQ(testing::compareWithKept(*device, *gemm)->wrong, 1u);
}

TEST(SimGemm, RefusesCallsOutOfOrder) {
  auto device = smallDevice();
  auto gemm = make(*device, cube(64));
  EXPECT_FALSE(gemm->run().ok());
  EXPECT_FALSE(gemm->keepResult().ok());
  EXPECT_FALSE(testing::compareWithKept(*device, *gemm).ok());
  EXPECT_FALSE(gemm->checkAgainstReference(1, 1).ok());
}

}  // namespace
}  // namespace muster::sim

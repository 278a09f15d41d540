// SPDX-License-Identifier: Apache-2.0
// sampleWork() in virtual time: plateau, batches, stopping, throttling, cancellation, broken clocks.
#include "kernels/checks/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/virtual_device.h"

namespace muster {
namespace {

using testing::VirtualDevice;

bool always(double) {
  return true;
}

Result<Sampling> sample(VirtualDevice& device, const SamplingOptions& options = {},
                        const std::function<bool(double)>& keepGoing = always) {
  return sampleWork(
      device, [&] { return device.work(); }, options, keepGoing);
}

TEST(SampleWork, EndsTheWarmUpOnceTheRateIsSteady) {
  VirtualDevice device;
  device.cost = [](double now, size_t) {
    return now < 1001 ? 0.002 : 0.001;
  };  // a clock that ramps up for 1 s
  const auto sampling = sample(device);
  ASSERT_TRUE(sampling.ok());
  EXPECT_TRUE(sampling->plateau);
  EXPECT_GE(sampling->warmup, 0.2);
  EXPECT_LT(sampling->warmup, 5);
}

TEST(SampleWork, GivesUpOnAPlateauAtWarmupMax) {
  VirtualDevice device;
  device.cost = [](double, size_t run) { return run % 40 < 20 ? 0.001 : 0.002; };
  SamplingOptions options;
  options.warmupMax = 3;
  const auto sampling = sample(device, options);
  ASSERT_TRUE(sampling.ok());
  EXPECT_FALSE(sampling->plateau);
  EXPECT_GE(sampling->warmup, 3);
  EXPECT_LT(sampling->warmup, 4);
}

/// A swing while the power settles is none of the figure; a standstill is.
TEST(SampleWork, KeepsAStandstillOfTheWarmUpAsSamples) {
  for (const auto& [slower, kept] : {std::pair(1.2, false), std::pair(10.0, true)}) {
    VirtualDevice device;
    device.cost = [slower = slower](double now, size_t) {
      return now > 1000.5 && now < 1001.5 ? 0.001 * slower : 0.001;
    };
    SamplingOptions options;
    options.warmupMin = 2;
    const auto sampling = sample(device, options);
    ASSERT_TRUE(sampling.ok());
    EXPECT_NEAR(sampling->seconds.back(), 0.001, 1e-6);
    double slow = 0;
    for (double seconds : sampling->seconds)
      if (seconds > 0.0011) slow += seconds * static_cast<double>(sampling->batch);
    EXPECT_NEAR(slow, kept ? 1 : 0, 0.2) << "the second that it lasted";
  }
}

TEST(SampleWork, ChecksTheWarmUpWhereAskedTo) {
  for (bool warmup : {false, true}) {
    VirtualDevice device;
    device.cost = [](double, size_t) { return 0.001; };
    SamplingOptions options;
    size_t checks = 0;
    options.check = [&checks] { return ++checks, Status(); };
    options.checkWarmup = warmup;
    const auto sampling = sample(device, options);
    ASSERT_TRUE(sampling.ok());
    EXPECT_EQ(checks > sampling->seconds.size(), warmup);
    EXPECT_GE(checks, sampling->seconds.size());
  }
}

TEST(SampleWork, BatchesShortWorkToTheSampleTime) {
  VirtualDevice device;
  device.cost = [](double, size_t) { return 1e-5; };
  const auto sampling = sample(device);
  ASSERT_TRUE(sampling.ok());
  EXPECT_NEAR(static_cast<double>(sampling->batch), 0.02 / 1e-5, 1);
  for (double seconds : sampling->seconds) EXPECT_NEAR(seconds, 1e-5, 1e-9);
}

TEST(SampleWork, TimesLongWorkPieceByPiece) {
  VirtualDevice device;
  device.cost = [](double, size_t) { return 0.5; };
  const auto sampling = sample(device);
  ASSERT_TRUE(sampling.ok());
  EXPECT_EQ(sampling->batch, 1u);
  EXPECT_DOUBLE_EQ(sampling->seconds.front(), 0.5);
}

TEST(SampleWork, StopsAfterMinTimeWhenTheFigureIsCertain) {
  VirtualDevice device;
  SamplingOptions options;
  options.minTime = 2;
  options.maxTime = 100;
  const auto sampling = sample(device, options);
  ASSERT_TRUE(sampling.ok());
  const double sampled = static_cast<double>(sampling->seconds.size() * sampling->batch) * 0.001;
  EXPECT_GE(sampled, 1.99);
  EXPECT_LT(sampled, 3);
  EXPECT_LE(sampling->relativeError, options.targetError);
}

TEST(SampleWork, GoesOnToMaxTimeWhileTheFigureIsUncertain) {
  VirtualDevice device;
  device.cost = [](double, size_t run) { return run % 2 == 0 ? 0.03 : 0.3; };
  SamplingOptions options;
  options.minTime = 1;
  options.maxTime = 6;
  const auto sampling = sample(device, options);
  ASSERT_TRUE(sampling.ok());
  EXPECT_GT(sampling->relativeError, options.targetError);
  EXPECT_GT(sampling->seconds.size(), 30u);
}

TEST(SampleWork, KeepsThrottledSamples) {
  VirtualDevice device;
  device.cost = [](double now, size_t) { return now < 1002 ? 0.02 : 0.04; };  // throttles during sampling
  SamplingOptions options;
  options.minTime = 4;
  options.maxTime = 4;
  const auto sampling = sample(device, options);
  ASSERT_TRUE(sampling.ok());
  const auto [low, high] = std::minmax_element(sampling->seconds.begin(), sampling->seconds.end());
  EXPECT_NEAR(*low, 0.02, 1e-9);
  EXPECT_NEAR(*high, 0.04, 1e-9);
}

TEST(SampleWork, TakesTwoSamplesOfWorkThatExceedsMaxTime) {
  VirtualDevice device;
  device.cost = [](double, size_t) { return 60.0; };
  const auto sampling = sample(device);
  ASSERT_TRUE(sampling.ok());
  EXPECT_EQ(sampling->seconds.size(), 2u);
}

TEST(SampleWork, NeverTakesMoreThanMaxSamples) {
  VirtualDevice device;
  device.cost = [](double, size_t run) { return run % 2 == 0 ? 0.03 : 0.3; };
  SamplingOptions options;
  options.maxTime = 1e9;
  options.maxSamples = 50;
  const auto sampling = sample(device, options);
  ASSERT_TRUE(sampling.ok());
  EXPECT_EQ(sampling->seconds.size(), 50u);
}

TEST(SampleWork, TakesLongerSamplesRatherThanEndBeforeMinTime) {
  VirtualDevice device;
  SamplingOptions options;
  options.minTime = 600;
  options.maxTime = 600;
  options.maxSamples = 1000;
  const auto sampling = sample(device, options);
  ASSERT_TRUE(sampling.ok());
  EXPECT_LE(sampling->seconds.size(), 1000u);
  EXPECT_GE(static_cast<double>(sampling->seconds.size() * sampling->batch) * 0.001, 599);
}

TEST(SampleWork, StopsWhenItIsCancelledDuringWarmUp) {
  VirtualDevice device;
  const auto sampling = sample(device, {}, [](double) { return false; });
  ASSERT_FALSE(sampling.ok());
  EXPECT_NE(sampling.error().text().find("cancelled"), std::string::npos);
  EXPECT_EQ(device.runs, 0u);
}

TEST(SampleWork, StopsWhenItIsCancelledDuringSampling) {
  VirtualDevice device;
  const auto sampling = sample(device, {}, [](double fraction) { return fraction < 0.5; });
  EXPECT_FALSE(sampling.ok());
}

TEST(SampleWork, ShowsProgressThatNeverRunsBackwards) {
  VirtualDevice device;
  device.cost = [](double, size_t run) { return 0.02 + 0.01 * static_cast<double>(run % 3); };
  double last = 0;
  bool forwards = true;
  const auto sampling = sample(device, {}, [&](double fraction) {
    forwards = forwards && fraction >= last && fraction <= 1;
    last = fraction;
    return true;
  });
  ASSERT_TRUE(sampling.ok());
  EXPECT_TRUE(forwards);
  EXPECT_GT(last, 0.2);
}

TEST(SampleWork, EndsThoughTheClockStandsStill) {
  VirtualDevice device;
  device.clockStands = true;
  SamplingOptions options;
  options.maxSamples = 20;
  const auto sampling = sample(device, options);
  ASSERT_TRUE(sampling.ok());
  EXPECT_EQ(sampling->seconds.size(), 20u);
}

TEST(SampleWork, RefusesTimesThatCannotBe) {
  for (double wrong : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    VirtualDevice device;
    device.cost = [wrong](double, size_t) { return wrong; };
    const auto sampling = sample(device);
    ASSERT_FALSE(sampling.ok()) << wrong;
    EXPECT_EQ(sampling.error().code, ErrorCode::kCorrupt);
  }
}

TEST(SampleWork, PassesOnTheErrorOfTheWork) {
  VirtualDevice device;
  const auto failing = [] { return Status(Error{ErrorCode::kIo, "the device fell off the bus", "gpu3"}); };
  const auto sampling = sampleWork(device, failing, {}, always);
  ASSERT_FALSE(sampling.ok());
  EXPECT_EQ(sampling.error().text(), "gpu3: the device fell off the bus");
}

}  // namespace
}  // namespace muster

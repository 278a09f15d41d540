// SPDX-License-Identifier: Apache-2.0
// The figures of a run: pure functions.
#include "plugins/train/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/train/params.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

TEST(Figures, OutputErrorIsThatOfTheWorstSample) {
  const std::vector<float> expected = {3, 4, 0, 30, 40, 0};
  EXPECT_EQ(outputError(expected, expected, 3, Dtype::kF16), 0);
  std::vector<float> logits = expected;
  logits[2] = 1;  // of a size of 5
  EXPECT_NEAR(outputError(expected, logits, 3, Dtype::kF16), 0.2 * 2048, 1e-9);
  EXPECT_NEAR(outputError(expected, logits, 3, Dtype::kBf16), 0.2 * 256, 1e-9);
  EXPECT_EQ(outputError({0, 0}, {0, 0}, 2, Dtype::kF16), 0);
  for (const float none : {NAN, INFINITY})
    for (const size_t at : {size_t{0}, size_t{5}}) {
      std::vector<float> wrong = expected;
      wrong[at] = none;
      EXPECT_EQ(outputError(expected, wrong, 3, Dtype::kF16), kNoNumber);
      EXPECT_EQ(outputError(wrong, expected, 3, Dtype::kF16), kNoNumber);
    }
  EXPECT_EQ(outputError({0, 0}, {0, 1}, 2, Dtype::kF16), kNoNumber) << "no size to compare with";
}

/// Equal bits can be demanded of operations only that promise them.
TEST(Figures, OfInferenceAreThoseOfDeterministicOperations) {
  InferenceParams params;
  params.program.deterministic = false;
  ASSERT_TRUE(params.complete().ok());
  EXPECT_TRUE(params.program.deterministic);
}

TEST(Figures, DriftComparesTheEndsOfARun) {
  EXPECT_NEAR(driftOf({1, 1, 1, 1, 1, 1, 1, 1, 1.5, 1.5}), 0.5, 1e-12);
  EXPECT_NEAR(driftOf({2, 2, 9, 1, 1}), -0.5, 1e-12);
  EXPECT_EQ(driftOf({1}), 0);
}

TEST(Figures, AverageTheEndsOfALoss) {
  EXPECT_EQ(meanOfFirst({4, 2, 1}), 4);
  EXPECT_EQ(meanOfLast({4, 2, 1}), 1);
  std::vector<double> losses(20, 3);
  losses[0] = 5;
  EXPECT_EQ(meanOfFirst(losses), 4);
}

TEST(Figures, AccuracyIsOfWhatRanksCanHaveCounted) {
  EXPECT_EQ(*accuracyOf({{3, 4}, {}, {0, 2}}), 0.5);
  for (const std::vector<double>& lie : std::vector<std::vector<double>>{{3, 2}, {-4, -4}, {-1, 2}})
    EXPECT_THAT(accuracyOf({{3, 4}, lie}).error().text(), HasSubstr("from a rank that cannot be told"));
}

TEST(Figures, TellWhatCommunicationAddsAndWhatHidesIt) {
  EXPECT_NEAR(communicationShare({10, 8, 4}), 0.2, 1e-12);
  EXPECT_NEAR(communicationOverlap({10, 8, 4}), 0.5, 1e-12);
  EXPECT_EQ(communicationShare({8, 9, 4}), 0) << "noise is no gain";
  EXPECT_EQ(communicationOverlap({8, 9, 4}), 1);
  EXPECT_EQ(communicationOverlap({20, 8, 4}), 0);
  EXPECT_EQ(communicationOverlap({20, 8, 0}), 0);
}

TEST(Figures, CountEachSampleOnceInResultsJson) {
  const Json json = resultsJson({"resnet50", 4, 32, 2.0, 10, "cpu", "gloo"});
  EXPECT_EQ(json["total_samples"], 4 * 32 * 10);
  EXPECT_EQ(json["throughput_samples_per_second"], 640.0);
  EXPECT_EQ(json["average_step_time_seconds"], 0.2);
  EXPECT_EQ(json["global_batch_size"], 128);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"model", "world_size", "batch_size_per_gpu", "global_batch_size",
                                            "total_time_seconds", "average_step_time_seconds",
                                            "throughput_samples_per_second", "total_samples", "device",
                                            "backend"}));
}

}  // namespace
}  // namespace muster::train

// SPDX-License-Identifier: Apache-2.0
// The element types of products: which GPUs have them, which shapes they take.
#include "kernels/cuda/blas/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cuda {
namespace {

using ::testing::HasSubstr;

TEST(GemmTypes, NameWhatAGpuLacks) {
  EXPECT_TRUE(gemmType(Dtype::kF16, 75).ok());
  const auto turing = gemmType(Dtype::kBf16, 75);
  ASSERT_FALSE(turing.ok());
  EXPECT_EQ(turing.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(turing.error().message, HasSubstr("7.5"));
  EXPECT_THAT(turing.error().message, HasSubstr("bf16"));
  EXPECT_FALSE(gemmType(Dtype::kFp8E4m3, 80).ok());
  EXPECT_TRUE(gemmType(Dtype::kFp8E4m3, 89).ok());
  EXPECT_FALSE(gemmType(Dtype::kFp4, 90).ok());
}

TEST(GemmTypes, PairE5m2WithE4m3) {
  const auto type = gemmType(Dtype::kFp8E5m2, 90);
  ASSERT_TRUE(type.ok());
  EXPECT_EQ(type->b, Dtype::kFp8E4m3);
  EXPECT_TRUE(type->transposedOnly);
}

TEST(GemmTypes, TellWhichShapesTheyTake) {
  const auto type = gemmType(Dtype::kFp8E4m3, 90);
  ASSERT_TRUE(type.ok());
  EXPECT_TRUE(checkMultiples({16, 32, 48, Dtype::kFp8E4m3, "default"}, *type).ok());
  const Status odd = checkMultiples({16, 33, 48, Dtype::kFp8E4m3, "default"}, *type);
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().code, ErrorCode::kUsage);
  EXPECT_THAT(odd.error().message, HasSubstr("multiples of 16"));
}

TEST(GemmTypes, CountTheBytesOfBlockScales) {
  GemmType type{};
  type.scaleBlock = 16;
  EXPECT_EQ(blockScaleBytes(type, 128, 64), 128u * 4);
  EXPECT_EQ(blockScaleBytes(type, 1, 16), 128u * 4);
  EXPECT_EQ(blockScaleBytes(type, 129, 80), 256u * 8);
}

}  // namespace
}  // namespace muster::cuda

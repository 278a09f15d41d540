// SPDX-License-Identifier: Apache-2.0
// Matrix products on a GPU: every type against f80 on the CPU, odd shapes, bits that repeat, results that
// nobody computed; how fast the default and the best algorithm are.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/checks/gemm_reference.h"
#include "kernels/checks/timing.h"
#include "tests/gpu/gpu.h"
#include "tests/kernels/compare_with_kept.h"

namespace muster::gpu {
namespace {

/// What the type's algorithms take: cuBLASLt wants fp8 in 16s, i8 in 4s, fp4 in 32s.
int64_t multipleOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp8E4m3:
    case Dtype::kFp8E5m2:
      return 16;
    case Dtype::kFp4:
      return 32;
    case Dtype::kI8:
      return 4;
    default:
      return 1;
  }
}

GemmSpec specOf(Dtype dtype, int64_t m, int64_t n, int64_t k, const std::string& algorithm = "default") {
  const int64_t step = multipleOf(dtype);
  const auto up = [&](int64_t x) { return (x + step - 1) / step * step; };
  return {up(m), up(n), up(k), dtype, algorithm};
}

class Blas : public ::testing::Test {
 protected:
  Blas() : device_(openGpu()) {
    auto ops = backend("cuda").ops(*device_);
    EXPECT_TRUE(ops.ok()) << (ops.ok() ? "" : ops.error().text());
    if (ops.ok()) ops_ = std::move(*ops);
  }
  std::unique_ptr<Gemm> make(const GemmSpec& spec) {
    auto gemm = ops_->gemm(spec);
    EXPECT_TRUE(gemm.ok()) << dtypeName(spec.dtype) << " " << (gemm.ok() ? "" : gemm.error().text());
    return gemm.ok() ? std::move(*gemm) : nullptr;
  }
  void expectRight(const GemmSpec& spec) {
    SCOPED_TRACE(std::string(dtypeName(spec.dtype)) + " " + std::to_string(spec.m) + "x" +
                 std::to_string(spec.n) + "x" + std::to_string(spec.k) + " " + spec.algorithm);
    const auto gemm = make(spec);
    ASSERT_NE(gemm, nullptr);
    ASSERT_TRUE(gemm->prepare(1).ok());
    ASSERT_TRUE(gemm->run().ok());
    ASSERT_TRUE(device_->synchronize().ok());
    const auto error = gemm->checkAgainstReference(512, 3);
    ASSERT_TRUE(error.ok()) << error.error().text();
    EXPECT_GT(error->checked, 0u);
    EXPECT_EQ(error->wrong, 0u) << "worst " << error->worst << " of " << error->bound << " at " << error->row
                                << ", " << error->column << ", " << gemm->implementation();
  }
  double rate(const GemmSpec& spec, std::string& implementation) {
    const auto gemm = make(spec);
    if (gemm == nullptr || !gemm->prepare(1).ok()) return 0;
    implementation = gemm->implementation();
    SamplingOptions options;
    options.warmupMax = 3;
    options.maxTime = 3;
    auto sampling = sampleWork(
        *device_, [&] { return gemm->run(); }, options, [](double) { return true; });
    EXPECT_TRUE(sampling.ok());
    if (!sampling.ok()) return 0;
    std::vector<double> seconds = sampling->seconds;
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                     seconds.end());
    return spec.flops() / seconds[seconds.size() / 2];
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Ops> ops_;
};

TEST_F(Blas, IsRightInEveryTypeAndShape) {
  for (const Dtype dtype : ops_->gemmDtypes()) {
    expectRight(specOf(dtype, 1, 1, 1));
    expectRight(specOf(dtype, 1, 7, 5));
    expectRight(specOf(dtype, 17, 33, 65));
    expectRight(specOf(dtype, 128, 256, 64));
    expectRight(specOf(dtype, 255, 1, 4099));
    expectRight(specOf(dtype, 1024, 512, 768));
  }
}

TEST_F(Blas, IsRightOverALongInnerDimension) {
  for (const Dtype dtype : ops_->gemmDtypes()) expectRight(specOf(dtype, 256, 384, 32768));
}

TEST_F(Blas, IsRightByTheBestAlgorithmToo) {
  for (const Dtype dtype : ops_->gemmDtypes()) expectRight(specOf(dtype, 512, 1024, 2048, "best"));
}

TEST_F(Blas, GivesTheSameBitsEveryTime) {
  for (const Dtype dtype : ops_->gemmDtypes()) {
    const auto gemm = make(specOf(dtype, 512, 512, 1024));
    ASSERT_NE(gemm, nullptr);
    ASSERT_TRUE(gemm->prepare(5).ok());
    ASSERT_TRUE(gemm->run().ok());
    ASSERT_TRUE(gemm->keepResult().ok());
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(gemm->run().ok());
      const auto mismatch = testing::compareWithKept(*device_, *gemm);
      ASSERT_TRUE(mismatch.ok());
      EXPECT_EQ(mismatch->wrong, 0u) << dtypeName(dtype);
    }
  }
}

TEST_F(Blas, TakesAResultThatNobodyComputedForWrong) {
  for (const Dtype dtype : ops_->gemmDtypes()) {
    const GemmSpec spec = specOf(dtype, 64, 64, 64);
    const auto gemm = make(spec);
    ASSERT_NE(gemm, nullptr);
    ASSERT_TRUE(gemm->prepare(5).ok());
    const auto error = gemm->checkAgainstReference(100, 1);
    ASSERT_TRUE(error.ok());
    EXPECT_GT(error->wrong, 90u) << dtypeName(dtype);
    ASSERT_TRUE(gemm->run().ok());
    ASSERT_TRUE(gemm->keepResult().ok());
    const auto unused = testing::compareWithKept(*device_, *gemm);  // no run since
    ASSERT_TRUE(unused.ok());
    EXPECT_GT(unused->wrong, static_cast<uint64_t>(spec.m * spec.n * 9 / 10)) << dtypeName(dtype);
  }
}

TEST_F(Blas, RefusesByName) {
  const auto algorithm = ops_->gemm({64, 64, 64, Dtype::kF32, "bset"});
  ASSERT_FALSE(algorithm.ok());
  EXPECT_NE(algorithm.error().message.find("best"), std::string::npos);
  const std::vector<Dtype> known = ops_->gemmDtypes();
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp8E4m3, Dtype::kFp4}) {
    if (std::count(known.begin(), known.end(), dtype) > 0) continue;
    const auto lacking = ops_->gemm(specOf(dtype, 64, 64, 64));
    ASSERT_FALSE(lacking.ok());
    EXPECT_EQ(lacking.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(lacking.error().message.find(dtypeName(dtype)), std::string::npos);
  }
}

TEST_F(Blas, TellsItsFigures) {
  for (const Dtype dtype : ops_->gemmDtypes())
    for (const char* algorithm : {"default", "best"}) {
      const int64_t size = dtype == Dtype::kF64 || dtype == Dtype::kF32 ? 4096 : 8192;
      std::string implementation;
      const double found = rate(specOf(dtype, size, size, size, algorithm), implementation);
      EXPECT_GT(found, 0);
      figure("gemm", "FLOP/s", found,
             {{"dtype", dtypeName(dtype)},
              {"size", size},
              {"algorithm", algorithm},
              {"implementation", implementation}});
    }
}

}  // namespace
}  // namespace muster::gpu

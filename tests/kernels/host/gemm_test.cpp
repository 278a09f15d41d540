// SPDX-License-Identifier: Apache-2.0
// The host's matrix multiplication through its real modules: every type and library at odd sizes, planted
// faults.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/host/blas.h"
#include "kernels/host/buffer.h"
#include "kernels/host/device.h"
#include "tests/kernels/compare_with_kept.h"
#include "tests/support/process.h"

namespace muster {
namespace {

/// Hands every buffer that the operations allocate to the test, which plants faults in them.
class SpyingDevice : public Device {
 public:
  explicit SpyingDevice(Device& real) : real_(real) {}
  std::vector<Buffer*> buffers;

  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override {
    auto buffer = real_.allocate(bytes);
    if (buffer.ok()) buffers.push_back(buffer->get());
    return buffer;
  }
  [[nodiscard]] const DeviceInfo& info() const override { return real_.info(); }
  [[nodiscard]] double now() const override { return real_.now(); }
  void sleep(double) override {}
  Result<uint64_t> freeBytes() override { return real_.freeBytes(); }
  Status fillNormal(Buffer& b, Dtype d, uint64_t s) override { return real_.fillNormal(b, d, s); }
  Status fillPattern(Buffer& b, const PatternPart& p) override { return real_.fillPattern(b, p); }
  Result<Mismatch> checkPattern(const Buffer& b, const PatternPart& p) override {
    return real_.checkPattern(b, p);
  }
  Result<Mismatch> compareBits(const Buffer& a, const Buffer& b, Dtype d) override {
    return real_.compareBits(a, b, d);
  }
  Result<uint64_t> hash(const Buffer& b) override { return real_.hash(b); }
  Status memoryOp(MemoryOp o, Buffer& a, const Buffer* b, const Buffer* c) override {
    return real_.memoryOp(o, a, b, c);
  }
  Status synchronize() override { return real_.synchronize(); }
  Result<double> time(const std::function<Status()>& work) override { return real_.time(work); }

 private:
  Device& real_;
};

/// host_blas.so itself, on a device that lets the test reach the operands.
class HostGemmTest : public ::testing::Test {
 protected:
  HostGemmTest() {
    DeviceInfo info;
    info.id = "cpu0";
    auto device = host::HostDevice::open(info);
    EXPECT_TRUE(device.ok());
    device_ = std::move(*device);
    spy_ = std::make_unique<SpyingDevice>(*device_);
    void* module = dlopen((testing::buildDir() / "kernels/host/host_blas.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(module, nullptr) << dlerror();
    const auto* entry = static_cast<const host::BlasEntry*>(dlsym(module, "muster_host_blas_entry"));
    auto ops = entry->open(*spy_, 1);
    EXPECT_TRUE(ops.ok());
    ops_ = std::move(*ops);
  }

  std::unique_ptr<Gemm> prepared(const GemmSpec& spec) {
    auto gemm = ops_->gemm(spec);
    EXPECT_TRUE(gemm.ok()) << gemm.error().text();
    EXPECT_TRUE((*gemm)->prepare(42).ok());
    return std::move(*gemm);
  }

  /// The whole result is right and comes out the same twice.
  void expectRight(const GemmSpec& spec) {
    SCOPED_TRACE(std::string(dtypeName(spec.dtype)) + " " + spec.algorithm + " m=" + std::to_string(spec.m));
    const auto gemm = prepared(spec);
    ASSERT_TRUE(gemm->run().ok());
    const auto error = gemm->checkAgainstReference(1 << 20, 1);
    ASSERT_TRUE(error.ok());
    EXPECT_EQ(error->checked, static_cast<uint64_t>(spec.m * spec.n));
    EXPECT_EQ(error->wrong, 0u) << "worst " << error->worst << " of " << error->bound;
    ASSERT_TRUE(gemm->keepResult().ok());
    ASSERT_TRUE(gemm->run().ok());
    const auto mismatch = testing::compareWithKept(*spy_, *gemm);
    ASSERT_TRUE(mismatch.ok());
    EXPECT_EQ(mismatch->wrong, 0u);
    EXPECT_NE(gemm->implementation().find("thread"), std::string::npos);
  }

  std::unique_ptr<host::HostDevice> device_;
  std::unique_ptr<SpyingDevice> spy_;
  std::unique_ptr<Ops> ops_;
};

TEST_F(HostGemmTest, IsRightInEveryTypeAndLibraryAtOddSizes) {
  for (Dtype dtype : ops_->gemmDtypes())
    for (const std::string& algorithm : ops_->gemmAlgorithms(dtype))
      for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {17, 33, 65}, {64, 128, 96}, {5, 201, 1}})
        expectRight({m, n, k, dtype, algorithm});
}

TEST_F(HostGemmTest, OffersF32AndF64Everywhere) {
  const auto dtypes = ops_->gemmDtypes();
  EXPECT_NE(std::find(dtypes.begin(), dtypes.end(), Dtype::kF32), dtypes.end());
  EXPECT_NE(std::find(dtypes.begin(), dtypes.end(), Dtype::kF64), dtypes.end());
  EXPECT_EQ(ops_->gemmAlgorithms(Dtype::kF32), (std::vector<std::string>{"onednn", "openblas"}));
  EXPECT_EQ(ops_->gemmAlgorithms(Dtype::kF64), (std::vector<std::string>{"openblas"}));
  EXPECT_TRUE(ops_->gemmAlgorithms(Dtype::kFp8E4m3).empty());
}

TEST_F(HostGemmTest, UsesTheLibraryThatWasAskedFor) {
  EXPECT_EQ(prepared({32, 32, 32, Dtype::kF32, "onednn"})->implementation().substr(0, 7), "onednn ");
  EXPECT_EQ(prepared({32, 32, 32, Dtype::kF32, "openblas"})->implementation().substr(0, 9), "openblas ");
}

/// OpenBLAS takes its kernels of 2004 for a processor that is newer than itself.
TEST_F(HostGemmTest, UsesTheProcessorsVectorUnitsWhateverItsModel) {
  const std::string used = prepared({32, 32, 32, Dtype::kF64, "openblas"})->implementation();
#ifdef __x86_64__
  const bool isWide = __builtin_cpu_supports("avx2") != 0;
  EXPECT_EQ(used.find("Prescott") == std::string::npos, isWide) << used;
#endif
  EXPECT_EQ(used.substr(0, 9), "openblas ");
}

TEST_F(HostGemmTest, KeepsItsChoiceForAShape) {
  const GemmSpec spec{96, 96, 96, Dtype::kF32, "default"};
  const std::string first = prepared(spec)->implementation();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(prepared(spec)->implementation(), first);
}

TEST_F(HostGemmTest, NamesWhatIsMissing) {
  const auto f16 = ops_->gemm({32, 32, 32, Dtype::kF16, "default"});
  ASSERT_FALSE(f16.ok());
  EXPECT_EQ(f16.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(f16.error().text().find("f16"), std::string::npos);
  const auto f64 = ops_->gemm({32, 32, 32, Dtype::kF64, "onednn"});
  ASSERT_FALSE(f64.ok());
  EXPECT_EQ(f64.error().code, ErrorCode::kUnsupported);
}

TEST_F(HostGemmTest, NamesTheNearestAlgorithmOnATypo) {
  const auto gemm = ops_->gemm({32, 32, 32, Dtype::kF32, "openblass"});
  ASSERT_FALSE(gemm.ok());
  EXPECT_EQ(gemm.error().code, ErrorCode::kUsage);
  EXPECT_NE(gemm.error().text().find("did you mean \"openblas\""), std::string::npos);
}

TEST_F(HostGemmTest, RefusesShapesThatCannotBe) {
  for (int64_t bad : {0ll, -5ll, 1ll << 40})
    EXPECT_FALSE(ops_->gemm({bad, 8, 8, Dtype::kF32, "default"}).ok());
}

TEST_F(HostGemmTest, CallsAResultWrongThatNobodyComputed) {
  const auto gemm = prepared({32, 32, 32, Dtype::kF32, "onednn"});
  const auto error = gemm->checkAgainstReference(100, 1);
  ASSERT_TRUE(error.ok());
  EXPECT_EQ(error->wrong, 100u);
  ASSERT_TRUE(gemm->run().ok());
  ASSERT_TRUE(gemm->keepResult().ok());
  const auto mismatch = testing::compareWithKept(*spy_, *gemm);  // no run in between
  ASSERT_TRUE(mismatch.ok());
  EXPECT_EQ(mismatch->wrong, 32u * 32u);
}

/// One flipped bit in the result of a multiplication whose operands are buffers 0 and 1, its results 2 and 3.
class PlantedFault : public HostGemmTest {
 protected:
  void prepare(Dtype dtype) {
    gemm_ = prepared({40, 30, 50, dtype, "default"});
    ASSERT_EQ(spy_->buffers.size(), 4u);
  }
  void flip(size_t buffer, size_t byte, unsigned bit) {
    host::bytesOf(*spy_->buffers[buffer])[byte] ^= static_cast<std::byte>(1u << bit);
  }
  std::unique_ptr<Gemm> gemm_;
};

TEST_F(PlantedFault, IsFoundByTheReference) {
  prepare(Dtype::kF32);
  ASSERT_TRUE(gemm_->run().ok());
  flip(2, (7 * 30 + 11) * 4 + 2, 5);  // one of the upper bits of the fraction
  const auto error = gemm_->checkAgainstReference(1200, 1);
  ASSERT_TRUE(error.ok());
  EXPECT_EQ(error->wrong, 1u);
  EXPECT_EQ(error->row, 7);
  EXPECT_EQ(error->column, 11);
  EXPECT_GT(error->worst, error->bound);
}

TEST_F(PlantedFault, IsFoundInIntegersToTheLastBit) {
  if (ops_->gemmAlgorithms(Dtype::kI8).empty()) {  // nothing computes them exactly here
    const auto refused = ops_->gemm({40, 30, 50, Dtype::kI8, "onednn"});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().text().find("it has no VNNI"), std::string::npos) << refused.error().text();
    return;
  }
  prepare(Dtype::kI8);
  ASSERT_TRUE(gemm_->run().ok());
  flip(2, 4 * 77, 0);
  EXPECT_EQ(gemm_->checkAgainstReference(1200, 1)->wrong, 1u);
}

TEST_F(PlantedFault, IsFoundByTheComparisonToTheLastBit) {
  prepare(Dtype::kF64);
  ASSERT_TRUE(gemm_->run().ok());
  ASSERT_TRUE(gemm_->keepResult().ok());
  ASSERT_TRUE(gemm_->run().ok());
  flip(3, 8 * 100, 0);  // the results have changed places
  const auto mismatch = testing::compareWithKept(*spy_, *gemm_);
  ASSERT_TRUE(mismatch.ok());
  EXPECT_EQ(mismatch->wrong, 1u);
  EXPECT_EQ(mismatch->firstOffset, 800u);
  EXPECT_EQ(mismatch->expectedBits ^ mismatch->actualBits, 1u);
}

TEST_F(PlantedFault, InAnOperandIsFoundByTheComparison) {
  prepare(Dtype::kF32);
  ASSERT_TRUE(gemm_->run().ok());
  ASSERT_TRUE(gemm_->keepResult().ok());
  flip(0, 4 * 50 * 3 + 3,
       6);  // an exponent bit of A, row 3: reference and result change alike, the kept one does not
  ASSERT_TRUE(gemm_->run().ok());
  EXPECT_GT(testing::compareWithKept(*spy_, *gemm_)->wrong, 20u);
}

TEST_F(PlantedFault, NanInAnOperandIsFoundByBoth) {
  prepare(Dtype::kF32);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(host::bytesOf(*spy_->buffers[1]) + 4 * 30 * 2, &nan, sizeof nan);
  ASSERT_TRUE(gemm_->run().ok());
  EXPECT_EQ(gemm_->checkAgainstReference(1200, 1)->wrong, 40u);  // column 0
  ASSERT_TRUE(gemm_->keepResult().ok());
  ASSERT_TRUE(gemm_->run().ok());
  EXPECT_EQ(testing::compareWithKept(*spy_, *gemm_)->wrong, 40u);
}

}  // namespace
}  // namespace muster

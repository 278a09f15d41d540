// SPDX-License-Identifier: Apache-2.0
// Our kernels but those of training, as the GPU runs them, against the host backend: fills, patterns,
// comparisons, hashes, memory kernels in every shape, collectives' inputs and checks; sizes at the edges of
// what a thread, a block and a grid take.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cuda/buffer.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/nccl/values.h"
#include "kernels/cuda/stream_shapes.h"
#include "kernels/host/buffer.h"
#include "kernels/spec/memory_values.h"
#include "kernels/spec/pattern.h"
#include "tests/gpu/gpu.h"
#include "tests/kernels/cuda/emulation/streams.h"

namespace muster::gpu {
namespace {

/// Around a unit (16 B), a block (256 threads), and a grid (8 blocks) that goes round.
constexpr uint64_t kSizes[] = {1, 7, 8, 9, 15, 16, 17, 31, 33, 4095, 4096, 4097, 32768, 32775, 70'001};
constexpr Dtype kDtypes[] = {Dtype::kF64,     Dtype::kF32,     Dtype::kTf32, Dtype::kF16, Dtype::kBf16,
                             Dtype::kFp8E4m3, Dtype::kFp8E5m2, Dtype::kI8,   Dtype::kFp4};

class EmulatedKernels : public ::testing::Test {
 protected:
  static std::unique_ptr<Buffer> made(Device& device, uint64_t bytes) {
    auto buffer = device.allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << (buffer.ok() ? "" : buffer.error().text());
    return std::move(*buffer);
  }
  std::unique_ptr<Buffer> buffer(uint64_t bytes) { return made(*gpu_, bytes); }
  cuda::CudaDevice& cudaDevice() { return static_cast<cuda::CudaDevice&>(*gpu_); }
  template <typename T = uint8_t>
  std::vector<T> read(const Buffer& buffer) {
    std::vector<T> data(buffer.bytes() / sizeof(T));
    EXPECT_TRUE(gpu_->synchronize().ok());
    std::memcpy(data.data(), cuda::bytesOf(buffer), data.size() * sizeof(T));
    return data;
  }
  void flip(const Buffer& buffer, uint64_t offset) {
    ASSERT_TRUE(gpu_->synchronize().ok());
    cuda::bytesOf(buffer)[offset] ^= std::byte{0x10};
  }

  std::unique_ptr<Device> gpu_ = openGpu();
  std::unique_ptr<Device> host_ = openHost();
};

TEST_F(EmulatedKernels, WriteHashAndCheckPatternsAsTheHostDoes) {
  for (uint64_t bytes : kSizes) {
    auto a = buffer(bytes), b = made(*host_, bytes);
    for (const PatternPart& part :
         {PatternPart(0), PatternPart(6), PatternPart(6, uint64_t{9} << 30), PatternPart(4711, 3)}) {
      SCOPED_TRACE(std::to_string(bytes) + " B, pattern " + std::to_string(part.pattern) + " from word " +
                   std::to_string(part.first));
      ASSERT_TRUE(gpu_->fillPattern(*a, part).ok());
      ASSERT_TRUE(host_->fillPattern(*b, part).ok());
      EXPECT_EQ(*gpu_->hash(*a), *host_->hash(*b));
      EXPECT_EQ(gpu_->checkPattern(*a, part)->wrong, 0u);
      EXPECT_EQ(std::memcmp(cuda::bytesOf(*a), host::bytesOf(*b), bytes), 0);
    }
  }
}

TEST_F(EmulatedKernels, FindADamagedByteWhereverItIs) {
  for (uint64_t bytes : kSizes) {
    auto a = buffer(bytes), b = buffer(bytes);
    ASSERT_TRUE(gpu_->fillPattern(*b, 99).ok());
    for (uint64_t offset : {uint64_t{0}, bytes / 2, bytes - 1}) {
      SCOPED_TRACE(std::to_string(offset) + " of " + std::to_string(bytes));
      ASSERT_TRUE(gpu_->fillPattern(*a, 99).ok());
      const uint64_t hash = *gpu_->hash(*a);
      flip(*a, offset);
      const auto found = gpu_->checkPattern(*a, 99);
      EXPECT_EQ(found->wrong, 1u);
      EXPECT_EQ(found->firstOffset, offset);
      EXPECT_EQ(found->expectedBits ^ found->actualBits, 0x10ull << (offset % 8 * 8));
      const auto differs = gpu_->compareBits(*a, *b, Dtype::kI8);
      EXPECT_EQ(differs->wrong, 1u);
      EXPECT_EQ(differs->firstOffset, offset);
      EXPECT_NE(*gpu_->hash(*a), hash);
    }
  }
}

/// f32 and f64: but for the last bits of logarithm and cosine; the others: but for where those decide how a
/// number is rounded.
TEST_F(EmulatedKernels, FillWithTheHostsNumbers) {
  for (uint64_t bytes : {uint64_t{7}, uint64_t{40}, uint64_t{300'008}}) {
    auto a = buffer(bytes), b = made(*host_, bytes);
    const auto fill = [&](Dtype dtype) {
      EXPECT_TRUE(gpu_->fillNormal(*a, dtype, 5).ok());
      EXPECT_TRUE(host_->fillNormal(*b, dtype, 5).ok());
      EXPECT_TRUE(gpu_->synchronize().ok());
      return std::pair{cuda::bytesOf(*a), reinterpret_cast<const std::byte*>(host::bytesOf(*b))};
    };
    const auto expectNear = [&]<typename T>(Dtype dtype, T tolerance) {
      const auto [gpu, cpu] = fill(dtype);
      for (uint64_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T))
        ASSERT_NEAR(*reinterpret_cast<const T*>(gpu + at), *reinterpret_cast<const T*>(cpu + at), tolerance)
            << dtypeName(dtype) << " " << at;
    };
    expectNear(Dtype::kF64, 1e-14);
    expectNear(Dtype::kF32, 2e-6f);
    for (Dtype dtype : {Dtype::kF16, Dtype::kBf16, Dtype::kI8}) {
      const auto [gpu, cpu] = fill(dtype);
      uint64_t different = 0;
      for (uint64_t at = 0; at < bytes / (dtypeBits(dtype) / 8) * (dtypeBits(dtype) / 8); ++at)
        different += gpu[at] != cpu[at];
      EXPECT_LE(different, bytes / 500) << dtypeName(dtype);
    }
  }
}

TEST_F(EmulatedKernels, FillTheSameBytesInAnyLength) {
  constexpr uint64_t kBytes = 10'008;
  for (Dtype dtype : kDtypes) {
    auto a = buffer(kBytes);
    ASSERT_TRUE(gpu_->fillNormal(*a, dtype, 3).ok());
    const auto whole = read(*a);
    for (uint64_t bytes : kSizes) {
      if (bytes > kBytes) continue;
      const uint64_t element = std::max<uint64_t>(1, dtypeBits(dtype) / 8);
      const uint64_t filled = bytes / element * element;
      auto part = buffer(bytes);
      ASSERT_TRUE(gpu_->fillNormal(*part, dtype, 3).ok());
      const auto got = read(*part);
      EXPECT_EQ(std::memcmp(got.data(), whole.data(), filled), 0) << dtypeName(dtype) << " " << bytes;
      for (uint64_t i = filled; i < bytes; ++i) EXPECT_EQ(got[i], 0xff) << "past the last whole element";
    }
  }
}

/// Until they are read, differences of many comparisons add up; the place is that of one of the first ones.
TEST_F(EmulatedKernels, AddUpWhatComparisonsFind) {
  constexpr uint64_t kBytes = 40'000;
  auto a = buffer(kBytes), b = buffer(kBytes);
  ASSERT_TRUE(gpu_->fillPattern(*a, 99).ok());
  ASSERT_TRUE(gpu_->fillPattern(*b, 99).ok());
  const auto found = std::move(gpu_->tally()).value();
  const auto compare = [&] { ASSERT_TRUE(gpu_->countDifferences(*a, *b, Dtype::kI8, *found).ok()); };
  compare();
  EXPECT_EQ(found->read()->wrong, 0u);
  flip(*a, 30'000);
  compare();
  compare();
  flip(*a, 30'000);
  EXPECT_EQ(gpu_->compareBits(*a, *b, Dtype::kI8)->wrong, 0u) << "one that was not asked for a sum";
  flip(*a, 30'001);  // in the same block's unit
  compare();
  const auto all = found->read();
  EXPECT_EQ(all->wrong, 3u);
  EXPECT_EQ(all->firstOffset, 30'000u);
  EXPECT_EQ(all->expectedBits ^ all->actualBits, 0x10u);
  EXPECT_EQ(found->read()->wrong, 3u);
}

/// Marks tell of the work between them, and waiting for one leaves what is behind it in the queue.
TEST_F(EmulatedKernels, WaitForAMarkAndNoFurther) {
  auto a = buffer(4096);
  const auto begin = std::move(gpu_->mark()).value();
  ASSERT_TRUE(gpu_->fillPattern(*a, 99).ok());
  const auto middle = std::move(gpu_->mark()).value();
  const uint64_t before = emulation::kernelsRun();
  ASSERT_TRUE(gpu_->fillPattern(*a, 98).ok());
  const auto end = std::move(gpu_->mark()).value();
  EXPECT_GT(*gpu_->seconds(*begin, *middle), 0);
  EXPECT_EQ(emulation::kernelsRun(), before + 1);
  EXPECT_GT(*gpu_->seconds(*middle, *end), 0);
  EXPECT_EQ(emulation::kernelsRun(), before + 2);
}

TEST_F(EmulatedKernels, CompareEachTypeAndCallNanWrong) {
  for (Dtype dtype : kDtypes)
    for (uint64_t bytes : {16, 24, 4096, 32776}) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + ", " + std::to_string(bytes));
      auto a = buffer(bytes), b = buffer(bytes);
      const bool isFloat = dtype != Dtype::kI8 && dtype != Dtype::kFp4;
      const uint64_t element = std::max<uint64_t>(1, dtypeBits(dtype) / 8);
      EXPECT_EQ(gpu_->compareBits(*a, *b, dtype)->wrong, isFloat ? bytes / element : 0) << "poison";
      ASSERT_TRUE(gpu_->fillNormal(*a, dtype, 1).ok());
      ASSERT_TRUE(gpu_->fillNormal(*b, dtype, 1).ok());
      EXPECT_EQ(gpu_->compareBits(*a, *b, dtype)->wrong, 0u);
      flip(*a, bytes - 1);
      flip(*a, 1);
      const auto found = gpu_->compareBits(*a, *b, dtype);
      EXPECT_EQ(found->wrong, 2u);
      EXPECT_EQ(found->firstOffset, 1 / element * element);
    }
}

/// Words of 64 bits, so that a last one is half a pair.
TEST_F(EmulatedKernels, CopyWriteAndCombineInEveryShape) {
  for (uint64_t bytes : {8ull, 16ull, 24ull, 65536ull, 65536ull + 8, 300'008ull}) {
    auto a = buffer(bytes), b = buffer(bytes), c = buffer(bytes), sink = buffer(8);
    ASSERT_TRUE(gpu_->fillNormal(*b, Dtype::kF64, 1).ok());
    ASSERT_TRUE(gpu_->fillNormal(*c, Dtype::kF64, 2).ok());
    const auto x = read<double>(*b), y = read<double>(*c);
    for (const cuda::StreamShape& shape : cuda::kStreamShapes) {
      SCOPED_TRACE(std::to_string(bytes) + " B, threads " + std::to_string(shape.threads) + " unroll " +
                   std::to_string(shape.unroll) + (shape.resident ? " resident" : ""));
      const auto run = [&](cuda::StreamOp op) {
        ASSERT_TRUE(gpu_->fillPattern(*a, 7).ok());
        const cuda::StreamArrays at = {cuda::bytesOf(*a), cuda::bytesOf(*b), cuda::bytesOf(*c), bytes,
                                       reinterpret_cast<uint64_t*>(cuda::bytesOf(*sink))};
        ASSERT_EQ(cuda::launchStream(op, shape, at, cudaDevice().stream()), cudaSuccess);
      };
      run(cuda::StreamOp::kCopy);
      EXPECT_EQ(read<double>(*a), x);
      run(cuda::StreamOp::kTriad);
      const auto sum = read<double>(*a);
      for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], std::fma(kTriadScalar, y[i], x[i])) << i;
      run(cuda::StreamOp::kWrite);
      EXPECT_EQ(read<double>(*a), std::vector<double>(bytes / 8, kWriteValue));
      run(cuda::StreamOp::kRead);
      EXPECT_EQ(gpu_->checkPattern(*a, 7)->wrong, 0u);
      EXPECT_EQ(read<double>(*b), x);
      EXPECT_EQ(read(*sink), std::vector<uint8_t>(8, 0xff));
    }
  }
}

/// Every element counts once, and comes from the rank and index that it must.
TEST_F(EmulatedKernels, FillAndCheckCollectives) {
  constexpr int kRanks = 3;
  constexpr int kRank = 1;
  for (Dtype dtype : kDtypes)
    for (uint64_t count : {1, 255, 256, 1000, 20'000}) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + ", " + std::to_string(count));
      const ExactValues values(dtype, ReduceOp::kSum, kRanks, 9);
      const uint64_t element = std::max<uint64_t>(1, dtypeBits(dtype) / 8);
      auto inputs = buffer(count * element);
      const cudaError_t filled =
          cuda::launchInputs(cuda::bytesOf(*inputs), dtype, values, kRank, count, cudaDevice().stream());
      if (dtype == Dtype::kFp4) {
        EXPECT_EQ(filled, cudaErrorInvalidValue);
        continue;
      }
      ASSERT_EQ(filled, cudaSuccess);
      CollectiveSpec spec;
      spec.op = CollectiveOp::kBroadcast;
      spec.dtype = dtype;
      spec.count = count;
      spec.root = kRank;
      auto word = buffer(sizeof(cuda::WrongElements));
      auto* found = reinterpret_cast<cuda::WrongElements*>(cuda::bytesOf(*word));
      const auto check = [&] {
        EXPECT_TRUE(gpu_->synchronize().ok());
        *found = {0, ~0ull, 0};
        EXPECT_EQ(cuda::launchCheck(cuda::bytesOf(*inputs), spec, values, 0, found, cudaDevice().stream()),
                  cudaSuccess);
        EXPECT_TRUE(gpu_->synchronize().ok());
        return *found;
      };
      EXPECT_EQ(check().count, 0u);
      std::memset(cuda::bytesOf(*inputs) + (count - 1) * element, 0x5b, element);  // no value of an input
      EXPECT_EQ(check().count, 1u);
      EXPECT_EQ(check().first, count - 1);
      std::memset(cuda::bytesOf(*inputs) + count / 2 * element, 0x5b, element);
      EXPECT_EQ(check().count, count == 1 ? 1u : 2u);
      EXPECT_EQ(check().first, count / 2);
      EXPECT_EQ(check().last, count - 1);
    }
}

}  // namespace
}  // namespace muster::gpu

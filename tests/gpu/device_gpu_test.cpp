// SPDX-License-Identifier: Apache-2.0
// A GPU as a Device, against the host backend and against what the CPU computes: fills, checks, memory
// kernels, pointer chases, timing, errors; then the figures of its memory.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/checks/pointer_chase.h"
#include "kernels/checks/timing.h"
#include "kernels/cuda/buffer.h"
#include "kernels/host/buffer.h"
#include "kernels/spec/memory_values.h"
#include "kernels/spec/narrow_floats.h"
#include "kernels/spec/pattern.h"
#include "plugins/train/data/loader.h"
#include "tests/gpu/gpu.h"

namespace muster::gpu {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBufferSizes[] = {1, 7, 8, 9, 15, 16, 17, 31, 4095, 4096, (1 << 20) + 5, (64 << 20) + 8};
constexpr uint64_t kPast32Bits = (5ull << 30) + 24;

class GpuDevice : public ::testing::Test {
 protected:
  std::unique_ptr<Buffer> buffer(uint64_t bytes) { return made(*gpu_, bytes); }
  static std::unique_ptr<Buffer> made(Device& device, uint64_t bytes) {
    auto buffer = device.allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << (buffer.ok() ? "" : buffer.error().text());
    return buffer.ok() ? std::move(*buffer) : nullptr;
  }
  /// What the buffer holds once all work is done.
  template <typename T>
  std::vector<T> read(const Buffer& buffer) {
    std::vector<T> data(buffer.bytes() / sizeof(T));
    EXPECT_TRUE(gpu_->synchronize().ok());
    EXPECT_EQ(cudaMemcpy(data.data(), cuda::bytesOf(buffer), data.size() * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return data;
  }
  template <typename T>
  static std::vector<T> readHost(const Buffer& buffer) {
    std::vector<T> data(buffer.bytes() / sizeof(T));
    std::memcpy(data.data(), host::bytesOf(buffer), data.size() * sizeof(T));
    return data;
  }
  /// Turns one byte over behind the backend's back.
  void damage(const Buffer& buffer, uint64_t offset) {
    ASSERT_TRUE(gpu_->synchronize().ok());
    unsigned char byte = 0;
    ASSERT_EQ(cudaMemcpy(&byte, cuda::bytesOf(buffer) + offset, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    byte ^= 0x10;
    ASSERT_EQ(cudaMemcpy(cuda::bytesOf(buffer) + offset, &byte, 1, cudaMemcpyHostToDevice), cudaSuccess);
  }

  std::unique_ptr<Device> gpu_ = openGpu();
  std::unique_ptr<Device> host_ = openHost();
};

TEST_F(GpuDevice, WritesAndHashesPatternsAsTheHostDoes) {
  for (uint64_t bytes : kBufferSizes) {
    auto a = buffer(bytes), b = made(*host_, bytes);
    for (uint64_t pattern : {0, 1, 2, 3, 4, 5, 6, 7, 8, 4711}) {
      ASSERT_TRUE(gpu_->fillPattern(*a, pattern).ok());
      ASSERT_TRUE(host_->fillPattern(*b, pattern).ok());
      EXPECT_EQ(*gpu_->hash(*a), *host_->hash(*b)) << pattern << ", " << bytes << " B";
      EXPECT_EQ(gpu_->checkPattern(*a, pattern)->wrong, 0u) << pattern << ", " << bytes << " B";
    }
  }
}

TEST_F(GpuDevice, FindsADamagedByteOfAPatternWhereverItIs) {
  for (uint64_t bytes : kBufferSizes) {
    auto a = buffer(bytes);
    for (uint64_t offset : {uint64_t{0}, bytes / 2, bytes - 1}) {
      ASSERT_TRUE(gpu_->fillPattern(*a, 99).ok());
      damage(*a, offset);
      const auto found = gpu_->checkPattern(*a, 99);
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(found->wrong, 1u) << offset << " of " << bytes;
      EXPECT_EQ(found->firstOffset, offset);
      EXPECT_EQ(found->expectedBits ^ found->actualBits, 0x10ull << (offset % 8 * 8));
      EXPECT_EQ(found->expectedBits, patternWord(99, offset / 8));
    }
  }
}

TEST_F(GpuDevice, CountsOffsetsPast32Bits) {
  if (*gpu_->freeBytes() < 3 * kPast32Bits) GTEST_SKIP() << "this GPU has not twice 5 GiB free";
  auto a = buffer(kPast32Bits), b = buffer(kPast32Bits);
  ASSERT_TRUE(gpu_->fillPattern(*a, 6).ok());
  ASSERT_TRUE(gpu_->memoryOp(MemoryOp::kCopy, *b, a.get(), nullptr).ok());
  EXPECT_EQ(gpu_->compareBits(*a, *b, Dtype::kI8)->wrong, 0u);
  EXPECT_EQ(*gpu_->hash(*a), *gpu_->hash(*b));
  damage(*b, kPast32Bits - 3);
  EXPECT_EQ(gpu_->checkPattern(*b, 6)->firstOffset, kPast32Bits - 3);
  const auto found = gpu_->compareBits(*a, *b, Dtype::kI8);
  EXPECT_EQ(found->wrong, 1u);
  EXPECT_EQ(found->firstOffset, kPast32Bits - 3);
  EXPECT_NE(*gpu_->hash(*a), *gpu_->hash(*b));
}

TEST_F(GpuDevice, NamesTheFirstOfManyDifferences) {
  auto a = buffer(64 << 20), b = buffer(64 << 20);
  ASSERT_TRUE(gpu_->fillNormal(*a, Dtype::kF32, 1).ok());
  ASSERT_TRUE(gpu_->memoryOp(MemoryOp::kCopy, *b, a.get(), nullptr).ok());
  for (uint64_t offset : {50'000'003, 12'345'678, 60'000'000}) damage(*b, offset);
  const auto found = gpu_->compareBits(*a, *b, Dtype::kF32);
  EXPECT_EQ(found->wrong, 3u);
  EXPECT_EQ(found->firstOffset, 12'345'676u);
}

TEST_F(GpuDevice, PoisonsNewMemoryWithNan) {
  auto a = buffer(4096);
  for (Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16, Dtype::kFp8E4m3, Dtype::kFp8E5m2})
    EXPECT_EQ(gpu_->compareBits(*a, *a, dtype)->wrong, 4096 * 8 / dtypeBits(dtype)) << dtypeName(dtype);
}

/// Values agree but for the last bits of logarithm and cosine.
TEST_F(GpuDevice, FillsWithTheHostsNormalNumbers) {
  constexpr uint64_t kBytes = (4 << 20) + 8;
  auto a = buffer(kBytes), b = made(*host_, kBytes);
  const auto fill = [&](Dtype dtype) {
    ASSERT_TRUE(gpu_->fillNormal(*a, dtype, 5).ok());
    ASSERT_TRUE(host_->fillNormal(*b, dtype, 5).ok());
  };
  fill(Dtype::kF64);
  const auto f64 = read<double>(*a), hostF64 = readHost<double>(*b);
  for (size_t i = 0; i < f64.size(); ++i) ASSERT_NEAR(f64[i], hostF64[i], 1e-14) << i;
  fill(Dtype::kF32);
  const auto f32 = read<float>(*a), hostF32 = readHost<float>(*b);
  for (size_t i = 0; i < f32.size(); ++i) ASSERT_NEAR(f32[i], hostF32[i], 2e-6) << i;
  const auto expectCodes = [&]<typename T>(Dtype dtype, T) {
    fill(dtype);
    const auto gpu = read<T>(*a), cpu = readHost<T>(*b);
    size_t different = 0;
    for (size_t i = 0; i < gpu.size(); ++i) {
      ASSERT_LE(std::abs(static_cast<int>(gpu[i]) - static_cast<int>(cpu[i])), 1)
          << dtypeName(dtype) << " " << i;
      different += gpu[i] != cpu[i];
    }
    EXPECT_LT(different, gpu.size() / 500) << dtypeName(dtype);
  };
  expectCodes(Dtype::kF16, uint16_t{});
  expectCodes(Dtype::kBf16, uint16_t{});
  expectCodes(Dtype::kI8, int8_t{});
}

TEST_F(GpuDevice, FillsTypesThatTheHostLacks) {
  constexpr uint64_t kBytes = 100'003;
  auto a = buffer(kBytes), b = made(*host_, 8 * kBytes);
  ASSERT_TRUE(host_->fillNormal(*b, Dtype::kF32, 5).ok());
  const auto values = readHost<float>(*b);
  const auto expectCodes = [&](Dtype dtype, const FloatFormat& format, unsigned bits) {
    ASSERT_TRUE(gpu_->fillNormal(*a, dtype, 5).ok());
    const auto bytes = read<uint8_t>(*a);
    size_t different = 0;
    const size_t count = kBytes * 8 / bits;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t code = bytes[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
      different += code != encodeFloat(values[i], format);
    }
    EXPECT_LT(different, count / 500) << dtypeName(dtype);
  };
  expectCodes(Dtype::kFp8E4m3, kE4m3Format, 8);
  expectCodes(Dtype::kFp8E5m2, kE5m2Format, 8);
  expectCodes(Dtype::kFp4, kE2m1Format, 4);
}

TEST_F(GpuDevice, CopiesWritesAndCombines) {
  for (uint64_t bytes : {8ull, 16ull, 24ull, 8192ull, (1ull << 20) + 8, (80ull << 20) + 8}) {
    auto a = buffer(bytes), b = buffer(bytes), c = buffer(bytes);
    ASSERT_TRUE(gpu_->fillNormal(*b, Dtype::kF64, 1).ok());
    ASSERT_TRUE(gpu_->fillNormal(*c, Dtype::kF64, 2).ok());
    ASSERT_TRUE(gpu_->memoryOp(MemoryOp::kCopy, *a, b.get(), nullptr).ok());
    EXPECT_EQ(gpu_->compareBits(*a, *b, Dtype::kF64)->wrong, 0u) << bytes;
    ASSERT_TRUE(gpu_->memoryOp(MemoryOp::kTriad, *a, b.get(), c.get()).ok());
    const auto sum = read<double>(*a), x = read<double>(*b), y = read<double>(*c);
    for (size_t i = 0; i < sum.size(); ++i)
      ASSERT_EQ(sum[i], std::fma(kTriadScalar, y[i], x[i])) << i << " of " << bytes;
    ASSERT_TRUE(gpu_->memoryOp(MemoryOp::kRead, *b, nullptr, nullptr).ok());
    EXPECT_EQ(read<double>(*b), x);
    ASSERT_TRUE(gpu_->memoryOp(MemoryOp::kWrite, *a, nullptr, nullptr).ok());
    for (double value : read<double>(*a)) ASSERT_EQ(value, kWriteValue);
  }
}

TEST_F(GpuDevice, FollowsAPointerChaseToTheRightPlace) {
  for (uint64_t stride : {8ull, 64ull, 256ull}) {
    auto a = buffer(1 << 20);
    ASSERT_TRUE(gpu_->fillRing(*a, stride, 3).ok());
    const ChaseRing ring{chaseLines(1 << 20, stride), 3};
    for (uint64_t steps : {0ull, 1ull, 1000ull, 1ull << 17})
      EXPECT_EQ(*gpu_->chase(*a, ring.line(5) * stride, steps), ring.line(5 + steps) * stride)
          << stride << ", " << steps;
  }
  auto small = buffer(100);
  EXPECT_FALSE(gpu_->fillRing(*small, 128, 1).ok());
}

TEST_F(GpuDevice, PinsMemoryOfTheHostOnceAtATime) {
  std::vector<float, train::PageAllocator<float>> memory(1 << 20), neighbour(1 << 20);
  for (int round = 0; round < 2; ++round) {
    const auto pin = gpu_->pin(memory.data(), memory.size() * sizeof(float));
    ASSERT_TRUE(pin.ok()) << pin.error().text();
    const auto again = gpu_->pin(memory.data(), memory.size() * sizeof(float));
    ASSERT_FALSE(again.ok());
    EXPECT_THAT(again.error().text(), HasSubstr("pinning memory of the host"));
    EXPECT_TRUE(gpu_->pin(neighbour.data(), neighbour.size() * sizeof(float)).ok());
  }
  auto a = buffer(4096);  // the refusal leaves the GPU usable
  EXPECT_TRUE(gpu_->fillPattern(*a, 1).ok());
}

TEST_F(GpuDevice, SaysHowMuchMemoryIsFreeAndWorksOnAfterwards) {
  const auto refused = gpu_->allocate(1ull << 50);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("out of memory: required 1 PiB, "));
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  auto a = buffer(4096);
  ASSERT_TRUE(gpu_->fillPattern(*a, 1).ok());
  EXPECT_EQ(gpu_->checkPattern(*a, 1)->wrong, 0u);
}

TEST_F(GpuDevice, RefusesOperandsThatDoNotFit) {
  auto a = buffer(800), small = buffer(400), odd = buffer(801);
  EXPECT_FALSE(gpu_->memoryOp(MemoryOp::kCopy, *a, small.get(), nullptr).ok());
  EXPECT_FALSE(gpu_->memoryOp(MemoryOp::kTriad, *a, a.get(), nullptr).ok());
  EXPECT_FALSE(gpu_->memoryOp(MemoryOp::kRead, *odd, nullptr, nullptr).ok());
  EXPECT_FALSE(gpu_->compareBits(*a, *small, Dtype::kF64).ok());
  EXPECT_FALSE(gpu_->allocate(0).ok());
}

TEST_F(GpuDevice, TimesWorkThatWaitsAndWorkThatFails) {
  auto a = buffer(64 << 20);
  const auto waits = gpu_->time([&]() -> Status {
    MUSTER_CHECK_OK(gpu_->fillPattern(*a, 1));
    MUSTER_CHECK_OK(gpu_->synchronize());
    return gpu_->checkPattern(*a, 1).ok() ? Status() : Status(Error{ErrorCode::kInternal, "", ""});
  });
  ASSERT_TRUE(waits.ok()) << waits.error().text();
  EXPECT_GT(*waits, 0);
  EXPECT_FALSE(gpu_->time([] { return Status(Error{ErrorCode::kIo, "broken", ""}); }).ok());
  EXPECT_TRUE(gpu_->time([&] { return gpu_->fillPattern(*a, 2); }).ok());
}

/// More launches than a queue holds must neither hang nor lose their time.
TEST_F(GpuDevice, TimesMoreLaunchesThanAQueueHolds) {
  auto a = buffer(4096);
  const auto seconds = gpu_->time([&]() -> Status {
    for (int i = 0; i < 20000; ++i) MUSTER_CHECK_OK(gpu_->fillPattern(*a, 1));
    return {};
  });
  ASSERT_TRUE(seconds.ok());
  figure("launch", "s", *seconds / 20000, {{"kernel", "fill of 4 KiB"}});
}

double bestOf(Device& device, const std::function<Status()>& work) {
  SamplingOptions options;
  options.minTime = 1;
  options.maxTime = 3;
  const auto sampling = sampleWork(device, work, options, [](double) { return true; });
  EXPECT_TRUE(sampling.ok()) << (sampling.ok() ? "" : sampling.error().text());
  double best = sampling->seconds.front();
  for (double seconds : sampling->seconds) best = std::min(best, seconds);
  return best;
}

TEST_F(GpuDevice, TellsItsMemoryBandwidth) {
  constexpr uint64_t kBytes = 1ull << 30;
  auto a = buffer(kBytes), b = buffer(kBytes), c = buffer(kBytes);
  ASSERT_TRUE(gpu_->fillNormal(*b, Dtype::kF64, 1).ok());
  ASSERT_TRUE(gpu_->fillNormal(*c, Dtype::kF64, 2).ok());
  struct Row {
    const char* name;
    MemoryOp op;
    double streams;
  };
  for (const Row& row : {Row{"read", MemoryOp::kRead, 1}, Row{"write", MemoryOp::kWrite, 1},
                         Row{"copy", MemoryOp::kCopy, 2}, Row{"triad", MemoryOp::kTriad, 3}}) {
    const double seconds = bestOf(*gpu_, [&] { return gpu_->memoryOp(row.op, *a, b.get(), c.get()); });
    figure("memory_bandwidth", "B/s", row.streams * kBytes / seconds, {{"op", row.name}});
  }
  figure("memory_bandwidth", "B/s", kBytes / bestOf(*gpu_, [&] { return gpu_->fillPattern(*a, 99); }),
         {{"op", "fill_pattern"}});
  figure("memory_bandwidth", "B/s",
         kBytes / bestOf(*gpu_, [&] { return gpu_->hash(*b).ok() ? Status() : Status(Error{}); }),
         {{"op", "hash"}});
  figure(
      "memory_bandwidth", "B/s",
      2.0 * kBytes /
          bestOf(*gpu_,
                 [&] { return gpu_->compareBits(*b, *c, Dtype::kBf16).ok() ? Status() : Status(Error{}); }),
      {{"op", "compare"}});
  ASSERT_TRUE(gpu_->fillRing(*a, 256, 1).ok());
  uint64_t at = 0;
  const double chase = bestOf(*gpu_, [&]() -> Status {
    MUSTER_TRY(at, gpu_->chase(*a, at, 100000));
    return {};
  });
  figure("memory_latency", "s", chase / 100000, {{"bytes", "1 GiB"}});
}

}  // namespace
}  // namespace muster::gpu

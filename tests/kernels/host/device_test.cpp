// SPDX-License-Identifier: Apache-2.0
// The host's Device as plugins use it: fills, comparisons, memory kernels at odd sizes, out of memory.
#include "kernels/host/device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/checks/pointer_chase.h"
#include "kernels/host/buffer.h"
#include "kernels/spec/pattern.h"

namespace muster::host {
namespace {

class HostDeviceTest : public ::testing::Test {
 protected:
  HostDeviceTest() {
    DeviceInfo info;
    info.id = "cpu0";
    auto device = HostDevice::open(info);
    EXPECT_TRUE(device.ok());
    device_ = std::move(*device);
  }
  std::unique_ptr<Buffer> buffer(uint64_t bytes) {
    auto buffer = device_->allocate(bytes);
    EXPECT_TRUE(buffer.ok());
    return std::move(*buffer);
  }
  static double* words(Buffer& buffer) { return reinterpret_cast<double*>(bytesOf(buffer)); }

  std::unique_ptr<HostDevice> device_;
};

TEST_F(HostDeviceTest, ComparesEqualAfterACopy) {
  for (uint64_t bytes : {8ull, 4104ull, 1000000ull}) {
    auto a = buffer(bytes), b = buffer(bytes);
    ASSERT_TRUE(device_->fillNormal(*b, Dtype::kF64, 1).ok());
    ASSERT_TRUE(device_->memoryOp(MemoryOp::kCopy, *a, b.get(), nullptr).ok());
    const auto mismatch = device_->compareBits(*a, *b, Dtype::kF64);
    ASSERT_TRUE(mismatch.ok());
    EXPECT_EQ(mismatch->wrong, 0u) << bytes;
  }
}

TEST_F(HostDeviceTest, FindsAPlantedBitAfterACopy) {
  auto a = buffer(800000), b = buffer(800000);
  ASSERT_TRUE(device_->fillNormal(*b, Dtype::kF64, 1).ok());
  ASSERT_TRUE(device_->memoryOp(MemoryOp::kCopy, *a, b.get(), nullptr).ok());
  bytesOf(*a)[777777] ^= std::byte{4};
  const auto mismatch = device_->compareBits(*b, *a, Dtype::kF64);
  ASSERT_TRUE(mismatch.ok());
  EXPECT_EQ(mismatch->wrong, 1u);
  EXPECT_EQ(mismatch->firstOffset, 777776u);
  EXPECT_EQ(mismatch->expectedBits ^ mismatch->actualBits, 4ull << 8);
}

TEST_F(HostDeviceTest, HashesEqualBytesAlikeAndOneBitApart) {
  for (uint64_t bytes : {4ull, 8ull, 4100ull, 1000000ull}) {
    auto a = buffer(bytes), b = buffer(bytes);
    ASSERT_TRUE(device_->fillNormal(*a, Dtype::kF32, 1).ok());
    std::memcpy(bytesOf(*b), bytesOf(*a), bytes);
    EXPECT_EQ(*device_->hash(*a), *device_->hash(*b)) << bytes;
    bytesOf(*b)[bytes - 1] ^= std::byte{1};
    EXPECT_NE(*device_->hash(*a), *device_->hash(*b)) << bytes;
  }
}

TEST_F(HostDeviceTest, HashesWordsInAnotherOrderApart) {
  auto a = buffer(80000), b = buffer(80000);
  ASSERT_TRUE(device_->fillNormal(*a, Dtype::kF64, 1).ok());
  std::memcpy(bytesOf(*b), bytesOf(*a), 80000);
  std::swap(words(*b)[0], words(*b)[9999]);
  EXPECT_NE(*device_->hash(*a), *device_->hash(*b));
}

TEST_F(HostDeviceTest, CombinesInATriad) {
  auto a = buffer(80008), b = buffer(80008), c = buffer(80008);
  ASSERT_TRUE(device_->fillNormal(*b, Dtype::kF64, 1).ok());
  ASSERT_TRUE(device_->fillNormal(*c, Dtype::kF64, 2).ok());
  ASSERT_TRUE(device_->memoryOp(MemoryOp::kTriad, *a, b.get(), c.get()).ok());
  for (size_t i = 0; i < 10001; ++i)
    ASSERT_NEAR(words(*a)[i], words(*b)[i] + kTriadScalar * words(*c)[i], 1e-14) << i;
}

TEST_F(HostDeviceTest, FollowsAPointerChaseToTheRightPlace) {
  auto a = buffer(1 << 20);
  ASSERT_TRUE(device_->fillRing(*a, 64, 3).ok());
  const ChaseRing ring{1 << 14, 3};
  for (uint64_t steps : {0ull, 1ull, 1000ull, 1ull << 15})
    EXPECT_EQ(*device_->chase(*a, ring.line(5) * 64, steps), ring.line(5 + steps) * 64) << steps;
  EXPECT_FALSE(device_->fillRing(*a, 12, 3).ok());
  EXPECT_FALSE(device_->fillRing(*a, 2 << 20, 3).ok());
}

TEST_F(HostDeviceTest, FindsAPlantedBitOfAPattern) {
  auto a = buffer(100003);
  ASSERT_TRUE(device_->fillPattern(*a, 100).ok());
  EXPECT_EQ(device_->checkPattern(*a, 100)->wrong, 0u);
  bytesOf(*a)[100002] ^= std::byte{0x80};
  const auto mismatch = device_->checkPattern(*a, 100);
  ASSERT_TRUE(mismatch.ok());
  EXPECT_EQ(mismatch->wrong, 1u);
  EXPECT_EQ(mismatch->firstOffset, 100002u);
}

TEST_F(HostDeviceTest, SaysHowMuchMemoryWasWantedAndIsFree) {
  const auto buffer = device_->allocate(1ull << 50);
  ASSERT_FALSE(buffer.ok());
  EXPECT_NE(buffer.error().text().find("cpu0: out of memory: required 1 PiB, "), std::string::npos)
      << buffer.error().text();
  EXPECT_NE(buffer.error().text().find(" is free; make the buffers smaller"), std::string::npos)
      << buffer.error().text();
  EXPECT_EQ(buffer.error().code,
            ErrorCode::kIo);  // an allocation error is never "unsupported", which is a skip
}

TEST_F(HostDeviceTest, RefusesABufferOfNothing) {
  EXPECT_FALSE(device_->allocate(0).ok());
}

TEST_F(HostDeviceTest, RefusesOperandsThatDoNotFit) {
  auto a = buffer(800), small = buffer(400), odd = buffer(801);
  EXPECT_FALSE(device_->memoryOp(MemoryOp::kCopy, *a, small.get(), nullptr).ok());
  EXPECT_FALSE(device_->memoryOp(MemoryOp::kCopy, *a, nullptr, nullptr).ok());
  EXPECT_FALSE(device_->memoryOp(MemoryOp::kTriad, *a, a.get(), nullptr).ok());
  EXPECT_FALSE(device_->memoryOp(MemoryOp::kRead, *odd, nullptr, nullptr).ok());
  EXPECT_FALSE(device_->compareBits(*a, *small, Dtype::kF64).ok());
}

TEST_F(HostDeviceTest, NamesTheTypeThatItLacks) {
  auto a = buffer(800);
  const Status status = device_->fillNormal(*a, Dtype::kFp8E4m3, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(status.error().text().find("fp8_e4m3"), std::string::npos);
}

TEST_F(HostDeviceTest, FillsTheSameWithAnyNumberOfThreads) {
  auto a = buffer(100000);
  ASSERT_TRUE(device_->fillNormal(*a, Dtype::kF64, 9).ok());
  setenv("OMP_NUM_THREADS", "2", 1);
  auto other = HostDevice::open(device_->info());
  setenv("OMP_NUM_THREADS", "1", 1);
  ASSERT_TRUE(other.ok());
  auto b = (*other)->allocate(100000);
  ASSERT_TRUE(b.ok());
  ASSERT_TRUE((*other)->fillNormal(**b, Dtype::kF64, 9).ok());
  EXPECT_EQ(std::memcmp(bytesOf(*a), bytesOf(**b), 100000), 0);
}

TEST_F(HostDeviceTest, CountsOnASteadyClock) {
  const double before = device_->now();
  device_->sleep(0.01);
  EXPECT_GE(device_->now() - before, 0.01);
  const auto seconds = device_->time([&] {
    device_->sleep(0.01);
    return Status();
  });
  ASSERT_TRUE(seconds.ok());
  EXPECT_GE(*seconds, 0.01);
}

TEST_F(HostDeviceTest, PassesOnTheErrorOfTimedWork) {
  const auto seconds = device_->time([] { return Status(Error{ErrorCode::kIo, "broken", ""}); });
  EXPECT_FALSE(seconds.ok());
}

}  // namespace
}  // namespace muster::host

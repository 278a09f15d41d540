// SPDX-License-Identifier: Apache-2.0
// Simulated devices: virtual time, memory by tags, faults in results.
#include "kernels/sim/sim_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/sim/small_scenario.h"

namespace muster::sim {
namespace {

constexpr uint64_t kMegabyte = 1000000;

std::unique_ptr<Buffer> allocate(Device& device, uint64_t bytes) {
  auto buffer = device.allocate(bytes);
  EXPECT_TRUE(buffer.ok());
  return std::move(*buffer);
}

TEST(SimDevice, StartsAtItsVirtualStartAndSleepsWithoutWaiting) {
  auto device = smallDevice("", 0, 100);
  EXPECT_DOUBLE_EQ(device->now(), 100);
  device->sleep(3600);
  EXPECT_DOUBLE_EQ(device->now(), 3700);
}

TEST(SimDevice, TakesTheTimeThatStreamCountsFor) {
  auto device = smallDevice();
  auto a = allocate(*device, kMegabyte);
  auto b = allocate(*device, kMegabyte);
  auto c = allocate(*device, kMegabyte);
  auto seconds = [&](MemoryOp op) {
    return *device->time([&] { return device->memoryOp(op, *a, b.get(), c.get()); });
  };
  EXPECT_NEAR(seconds(MemoryOp::kRead), 1e-3, 1e-9);
  EXPECT_NEAR(seconds(MemoryOp::kWrite), 1e-3, 1e-9);
  EXPECT_NEAR(seconds(MemoryOp::kCopy), 2e-3, 1e-9);
  EXPECT_NEAR(seconds(MemoryOp::kTriad), 3e-3, 1e-9);
}

TEST(SimDevice, RefusesMoreMemoryThanItHasAndSaysHowMuchIsFree) {
  auto device = smallDevice();
  auto held = allocate(*device, 900 * kMegabyte);
  auto refused = device->allocate(200 * kMegabyte);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), ::testing::HasSubstr("free"));
  held.reset();
  EXPECT_TRUE(device->allocate(200 * kMegabyte).ok());
}

TEST(SimDevice, ComparesContentsByWhatWasWritten) {
  auto device = smallDevice();
  auto a = allocate(*device, kMegabyte);
  auto b = allocate(*device, kMegabyte);
  ASSERT_TRUE(device->fillNormal(*a, Dtype::kF32, 1).ok());
  ASSERT_TRUE(device->fillNormal(*b, Dtype::kF32, 2).ok());
  EXPECT_EQ(device->compareBits(*a, *b, Dtype::kF32)->wrong, kMegabyte / 4);
  EXPECT_NE(*device->hash(*a), *device->hash(*b));
  ASSERT_TRUE(device->memoryOp(MemoryOp::kCopy, *b, a.get(), nullptr).ok());
  EXPECT_EQ(device->compareBits(*a, *b, Dtype::kF32)->wrong, 0u);
  EXPECT_EQ(*device->hash(*a), *device->hash(*b));
}

TEST(SimDevice, RefusesBuffersOfDifferentSizes) {
  auto device = smallDevice();
  auto a = allocate(*device, kMegabyte);
  auto b = allocate(*device, 2 * kMegabyte);
  EXPECT_FALSE(device->compareBits(*a, *b, Dtype::kF32).ok());
  EXPECT_FALSE(device->memoryOp(MemoryOp::kCopy, *a, b.get(), nullptr).ok());
  EXPECT_FALSE(device->memoryOp(MemoryOp::kCopy, *a, nullptr, nullptr).ok());
}

TEST(SimDevice, ReadsBackThePatternThatItWrote) {
  auto device = smallDevice();
  auto a = allocate(*device, kMegabyte);
  ASSERT_TRUE(device->fillPattern(*a, 2).ok());
  EXPECT_EQ(device->checkPattern(*a, 2)->wrong, 0u);
  EXPECT_GT(device->checkPattern(*a, 3)->wrong, 0u);
}

TEST(SimDevice, FlipsTheBitThatAFaultNames) {
  auto device = smallDevice(
      "[[fault]]\nkind = \"corruption\"\ndevice = 0\noffset = 4096\nbit = 5\nops = [\"pattern\"]\n");
  auto a = allocate(*device, kMegabyte);
  ASSERT_TRUE(device->fillPattern(*a, 2).ok());
  auto mismatch = device->checkPattern(*a, 2);
  EXPECT_EQ(mismatch->wrong, 1u);
  EXPECT_EQ(mismatch->firstOffset, 4096u);
  EXPECT_EQ(mismatch->expectedBits ^ mismatch->actualBits, 1u << 5);
}

TEST(SimDevice, RunsAtTheShareThatASlowFaultLeaves) {
  auto device = smallDevice("[[fault]]\nkind = \"slow\"\ndevice = 0\nfactor = 0.5\n");
  auto a = allocate(*device, kMegabyte);
  EXPECT_NEAR(*device->time([&] { return device->memoryOp(MemoryOp::kRead, *a, nullptr, nullptr); }), 2e-3,
              1e-9);
}

TEST(SimDevice, RepeatsItselfExactly) {
  auto run = [] {
    Scenario scenario = *smallScenario();
    scenario.figures.noise = 0.01;
    SimUnit unit;
    unit.scenario = std::make_shared<const Scenario>(scenario);
    unit.info.memoryBytes = 1000 * kMegabyte;
    unit.key = 42;
    SimDevice device(unit, 0);
    auto a = allocate(device, kMegabyte);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(device.memoryOp(MemoryOp::kRead, *a, nullptr, nullptr).ok());
    return device.now();
  };
  EXPECT_EQ(run(), run());
  EXPECT_NE(run(), 0.1);
}

TEST(SimDevice, WarmsUp) {
  Scenario scenario = *smallScenario();
  scenario.figures.ramp = 0.01;
  SimUnit unit;
  unit.scenario = std::make_shared<const Scenario>(scenario);
  unit.info.memoryBytes = 1000 * kMegabyte;
  SimDevice device(unit, 0);
  auto a = allocate(device, kMegabyte);
  auto seconds = [&] {
    return *device.time([&] { return device.memoryOp(MemoryOp::kRead, *a, nullptr, nullptr); });
  };
  double cold = seconds();
  for (int i = 0; i < 200; ++i) seconds();
  EXPECT_GT(cold, 1.3 * seconds());
}

}  // namespace
}  // namespace muster::sim

// SPDX-License-Identifier: Apache-2.0
// Names of element types, and DeviceInfo to JSON and back.
#include "kernels/interfaces/device.h"

#include <gtest/gtest.h>

#include "kernels/interfaces/ops.h"

namespace muster {
namespace {

TEST(Dtype, IsReadBackFromItsName) {
  for (Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kTf32, Dtype::kF16, Dtype::kBf16, Dtype::kFp8E4m3,
                      Dtype::kFp8E5m2, Dtype::kI8, Dtype::kFp4}) {
    const auto read = dtypeFromName(dtypeName(dtype));
    ASSERT_TRUE(read.ok()) << dtypeName(dtype);
    EXPECT_EQ(*read, dtype);
  }
}

TEST(Dtype, HasItsStorageSize) {
  EXPECT_EQ(dtypeBits(Dtype::kF64), 64u);
  EXPECT_EQ(dtypeBits(Dtype::kTf32), 32u);
  EXPECT_EQ(dtypeBits(Dtype::kBf16), 16u);
  EXPECT_EQ(dtypeBits(Dtype::kFp8E5m2), 8u);
  EXPECT_EQ(dtypeBits(Dtype::kFp4), 4u);
}

TEST(Dtype, NamesTheNearestOfAllOnATypo) {
  const auto read = dtypeFromName("bf61");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().text().find("f64, f32, tf32, f16, bf16, fp8_e4m3, fp8_e5m2, i8, fp4"),
            std::string::npos);
  EXPECT_NE(read.error().text().find("did you mean \"bf16\""), std::string::npos);
}

TEST(DeviceInfo, SurvivesTheWayThroughJson) {
  DeviceInfo info;
  info.index = 3;
  info.id = "gpu3";
  info.kind = "gpu";
  info.name = "NVIDIA H100 80GB HBM3";
  info.uuid = "GPU-1";
  info.serial = "165";
  info.pciId = "10de:2330";
  info.pciAddress = "0000:18:00.0";
  info.memoryBytes = 80ull << 30;
  info.lastLevelCacheBytes = 50u << 20;
  info.numaNode = 1;
  info.cpus = {0, 1, 96};
  info.peaks = {{"flops.bf16", 989e12}};
  info.facts = {{"driver", "580.1"}};
  const auto read = deviceInfoFromJson(toJson(info));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(dumpJson(toJson(*read)), dumpJson(toJson(info)));
  EXPECT_EQ(read->cpus, info.cpus);
  EXPECT_EQ(read->peaks, info.peaks);
}

TEST(DeviceInfo, RefusesFieldsOfTheWrongKind) {
  const Json good = toJson(DeviceInfo{});
  for (const auto& [key, value] : {std::pair<const char*, Json>{"id", 7},
                                   {"cpus", Json::array({-1})},
                                   {"cpus", Json::array({"0"})},
                                   {"peaks", Json{{"flops.f32", "fast"}}},
                                   {"facts", Json{{"driver", 580}}},
                                   {"memory_bytes", "80 GB"}}) {
    Json bad = good;
    bad[key] = value;
    const auto read = deviceInfoFromJson(bad);
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_NE(read.error().text().find(key), std::string::npos) << read.error().text();
  }
}

TEST(GemmSpec, CountsTwoOperationsAnElement) {
  const GemmSpec spec{3, 5, 7, Dtype::kF32, "default"};
  EXPECT_DOUBLE_EQ(spec.flops(), 210);
}

}  // namespace
}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Matching devices to the shipped profiles: PCI id, name and memory class together; the count is never a key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/sku/profile.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::map<std::string, Profile>& shipped() {
  static const auto profiles = loadProfiles(testing::sourceDir() / "plans" / "skus", nullptr);
  EXPECT_TRUE(profiles.ok()) << profiles.error().text();
  return *profiles;
}

DeviceFacts h100(int index = 0) {
  return {"gpu" + std::to_string(index), "gpu", "NVIDIA H100 80GB HBM3", "10de:2330", 85.5e9, "", ""};
}
DeviceFacts gpu(const std::string& name, const std::string& pciId, double bytes) {
  return {"gpu0", "gpu", name, pciId, bytes, "", ""};
}
DeviceFacts cpu() {
  return {"cpu0", "cpu", "Some CPU", "", 64e9, "", ""};
}

SkuChoice choose(const std::vector<DeviceFacts>& devices, const std::string& sku = "auto") {
  auto choice = chooseSku(shipped(), sku, devices);
  EXPECT_TRUE(choice.ok()) << choice.error().text();
  return *choice;
}

std::string nameOf(const SkuChoice& choice) {
  return choice.profile == nullptr ? "unknown" : choice.profile->name;
}

TEST(ChooseSku, MatchesEachShippedModel) {
  EXPECT_EQ(nameOf(choose({h100()})), "h100-sxm5-80gb");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA H200", "10de:2335", 150.7e9)})), "h200-sxm");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA A100-SXM4-80GB", "10de:20b2", 85.9e9)})), "a100-sxm4-80gb");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA B200", "10de:2901", 192.2e9)})), "b200");
  EXPECT_EQ(nameOf(choose({cpu()})), "host");
}

TEST(ChooseSku, SaysHowItMatched) {
  EXPECT_EQ(choose({h100()}).how, "matched by PCI id 10de:2330, name and memory");
  EXPECT_EQ(choose({cpu()}).how, "matched by kind cpu");
}

TEST(ChooseSku, NeverTakesTheCountAsAKey) {
  for (int count : {1, 7, 8}) {
    std::vector<DeviceFacts> devices;
    for (int i = 0; i < count; ++i) devices.push_back(h100(i));
    SkuChoice choice = choose(devices);
    EXPECT_EQ(nameOf(choice), "h100-sxm5-80gb");
    EXPECT_THAT(choice.problems, IsEmpty());
  }
}

TEST(ChooseSku, TakesAProfileOnlyByNameThatSaysSo) {
  EXPECT_EQ(nameOf(choose({h100()})), "h100-sxm5-80gb")
      << "a board that lost seven GPUs is no virtual machine";
  const SkuChoice named = choose({h100()}, "h100-sxm5-80gb-1x");
  EXPECT_EQ(nameOf(named), "h100-sxm5-80gb-1x");
  EXPECT_THAT(named.problems, IsEmpty());
}

TEST(ChooseSku, CallsTheSamePciIdWithOtherMemoryUnknown) {
  DeviceFacts device = h100();
  device.memoryBytes = 96e9;
  SkuChoice choice = choose({device});
  EXPECT_EQ(nameOf(choice), "unknown");
  EXPECT_THAT(choice.how,
              HasSubstr("nearest is h100-sxm5-80gb, but: memory 96.0 GB outside 79.0 to 87.0 GB"));
}

TEST(ChooseSku, CallsTheSamePciIdWithAnotherNameUnknown) {
  DeviceFacts device = h100();
  device.name = "NVIDIA H100 PCIe";
  EXPECT_EQ(nameOf(choose({device})), "unknown");
}

TEST(ChooseSku, TellsSisterModelsApart) {
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA H100 PCIe", "10de:2331", 85.5e9)})), "h100-pcie-80gb");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA H100 NVL", "10de:2321", 100.5e9)})), "h100-nvl-94gb");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA H200 NVL", "10de:233b", 150.7e9)})), "unknown");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA A100-SXM4-40GB", "10de:20b0", 42.4e9)})), "a100-sxm4-40gb");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA A100-SXM4-40GB", "10de:20b0", 85.9e9)})), "unknown");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA B300 SXM6 AC", "10de:3182", 288.4e9)})), "b300");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA GB200", "10de:2941", 199.7e9)})), "gb200");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA GB300", "10de:31c2", 298.5e9)})), "gb300");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA B200", "10de:2941", 199.7e9)})), "unknown");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA A100 80GB PCIe", "10de:20b5", 85.9e9)})), "a100-pcie-80gb");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA A100-PCIE-40GB", "10de:20f1", 42.9e9)})), "a100-pcie-40gb");
  EXPECT_EQ(nameOf(choose({gpu("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "10de:2bb1", 102.6e9)})),
            "unknown");
}

/// Not even when the plan names a profile, or one has no PCI id.
TEST(ChooseSku, MakesEveryGpuOfAnotherVendorAProblem) {
  for (const char* id : {"1002:74a1", "8086:0bd5"}) {
    const SkuChoice choice = choose({gpu("Strange GPU", id, 85.5e9), h100(1)});
    ASSERT_FALSE(choice.problems.empty()) << id;
    EXPECT_NE(choice.problems[0].find(std::string(id) + ", 85.5 GB) is of an unknown vendor"),
              std::string::npos)
        << choice.problems[0];
    const auto named = chooseSku(shipped(), "h100-sxm5-80gb", {gpu("Strange GPU", id, 85.5e9)});
    ASSERT_TRUE(named.ok());
    EXPECT_NE(named->problems.at(0).find("unknown vendor"), std::string::npos);
  }
}

TEST(ChooseSku, NeverTakesAGpuForAHost) {
  EXPECT_EQ(nameOf(choose({gpu("Strange GPU", "1002:1234", 64e9)})), "unknown");
}

TEST(ChooseSku, MakesStrangersOfAMixedNodeProblems) {
  DeviceFacts stranger = gpu("NVIDIA H100 PCIe", "10de:2331", 85.5e9);
  stranger.id = "gpu0";
  SkuChoice choice = choose({stranger, h100(1), h100(2)});
  EXPECT_EQ(nameOf(choice), "h100-sxm5-80gb");
  ASSERT_THAT(choice.problems, SizeIs(1));
  EXPECT_THAT(choice.problems[0],
              HasSubstr("gpu0 (NVIDIA H100 PCIe, PCI id 10de:2331, 85.5 GB) is not a h100-sxm5-80gb"));
}

TEST(ChooseSku, KeepsStrangersAsProblemsEvenWhenTheyAreMost) {
  DeviceFacts stranger = gpu("New GPU", "10de:9999", 85.5e9);
  EXPECT_THAT(choose({stranger, stranger, h100(2)}).problems, SizeIs(2));
}

TEST(ChooseSku, KnowsNothingWithoutDevices) {
  SkuChoice choice = choose({});
  EXPECT_EQ(nameOf(choice), "unknown");
  EXPECT_THAT(choice.how, HasSubstr("no device was found"));
}

TEST(ChooseSku, TakesANamedProfileAndKeepsWhatDoesNotFit) {
  SkuChoice choice = choose({h100()}, "h200-sxm");
  EXPECT_EQ(nameOf(choice), "h200-sxm");
  EXPECT_EQ(choice.how, "named by the plan");
  ASSERT_THAT(choice.problems, SizeIs(1));
  EXPECT_THAT(choice.problems[0], HasSubstr("PCI id 10de:2330 in place of 10de:2335"));
}

TEST(ChooseSku, MakesNoDeviceUnderANamedProfileAProblem) {
  EXPECT_THAT(choose({}, "h100-sxm5-80gb").problems, SizeIs(1));
}

TEST(ChooseSku, NamesTheNearestProfile) {
  auto choice = chooseSku(shipped(), "h100-sxm5-80gB", {h100()});
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, ErrorCode::kUsage);
  EXPECT_THAT(choice.error().text(), HasSubstr("did you mean \"h100-sxm5-80gb\"?"));
}

TEST(ChooseSku, RefusesAnAmbiguousDevice) {
  std::map<std::string, Profile> profiles = shipped();
  Profile twin = profiles.at("h100-sxm5-80gb");
  twin.name = "twin";
  profiles["twin"] = twin;
  auto choice = chooseSku(profiles, "auto", {h100()});
  ASSERT_FALSE(choice.ok()) << "a plan with allow_unknown_sku would run it without limits";
  EXPECT_EQ(choice.error().code, ErrorCode::kUsage);
  EXPECT_THAT(choice.error().message,
              HasSubstr("matches several profiles equally well (h100-sxm5-80gb, twin)"));
}

}  // namespace
}  // namespace muster

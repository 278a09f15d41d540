// SPDX-License-Identifier: Apache-2.0
// Theoretical peaks of known cores.
#include "kernels/host/inventory/cpu_peaks.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

CpuModel modelWith(const std::string& flags, const std::string& vendor = "GenuineIntel", int family = 6) {
  CpuModel model;
  model.vendor = vendor;
  model.family = family;
  model.flags = " " + flags + " ";
  return model;
}

TEST(CpuPeaks, SapphireRapidsHasAmx) {
  const auto rates = operationsPerCycle(
      modelWith("sse2 avx avx2 fma avx512f avx512_vnni avx512_bf16 avx512_fp16 amx_bf16 amx_int8"));
  EXPECT_EQ(rates.at("f32"), 64);
  EXPECT_EQ(rates.at("f64"), 32);
  EXPECT_EQ(rates.at("f16"), 128);
  EXPECT_EQ(rates.at("bf16"), 1024);
  EXPECT_EQ(rates.at("i8"), 2048);
}

TEST(CpuPeaks, Zen4HalvesWideInstructionsAndZen5DoesNot) {
  const std::string flags = "sse2 avx avx2 fma avx512f avx512_vnni avx512_bf16";
  EXPECT_EQ(operationsPerCycle(modelWith(flags, "AuthenticAMD", 25)).at("bf16"), 64);
  EXPECT_EQ(operationsPerCycle(modelWith(flags, "AuthenticAMD", 26)).at("bf16"), 128);
}

TEST(CpuPeaks, AnInstructionThatIsMissingLeavesItsDtypeOut) {
  const auto rates = operationsPerCycle(modelWith("sse2 avx avx2 fma"));
  EXPECT_EQ(rates.at("f32"), 32);
  EXPECT_EQ(rates.count("bf16"), 0u);
  EXPECT_EQ(rates.count("i8"), 0u);
}

TEST(CpuPeaks, AnUnknownCoreHasNone) {
  EXPECT_TRUE(cpuPeaks(modelWith("whatever"), 8, 3e9).empty());
}

TEST(CpuPeaks, CountCoresAndClock) {
  EXPECT_DOUBLE_EQ(cpuPeaks(modelWith("sse2 avx avx2 fma"), 2, 4e9).at("flops.f32"), 256e9);
}

TEST(IsaText, ListsWhatMatters) {
  EXPECT_EQ(isaText(modelWith("fpu sse2 avx2 aes fma")), "sse2 avx2 fma");
}

}  // namespace
}  // namespace muster

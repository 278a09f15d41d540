// SPDX-License-Identifier: Apache-2.0
// Opening NVML: what a machine lacks is named, and a broken driver is never taken for a machine without GPUs.
#include "kernels/cuda/inventory/nvml/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "kernels/cuda/inventory/nvml/call_watch.h"
#include "tests/kernels/cuda_inventory/fake_nvml.h"

namespace muster::testing {
namespace {

using cuda::Nvml;
using ::testing::HasSubstr;

constexpr const char* kNowhere = "libmuster-no-such-nvml.so.1";

TEST(Nvml, AMachineWithoutGpuAndDriverIsUnsupported) {
  const TempDir empty;
  const auto opened = Nvml::open(Root(empty.path().string()), kNowhere);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(opened.error().text(), HasSubstr("no NVIDIA driver was found"));
  EXPECT_THAT(opened.error().text(), HasSubstr(kNowhere));
  EXPECT_EQ(opened.error().text().find('\n'), std::string::npos);
}

TEST(Nvml, AGpuWithoutDriverIsAFaultAndNoSkip) {
  const TempDir machine;
  machine.write("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n");
  machine.write("sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n");
  machine.write("sys/bus/pci/devices/0000:19:00.0/vendor", "0x10de\n");
  machine.write("sys/bus/pci/devices/0000:19:00.0/class", "0x068000\n");  // an NVSwitch is no GPU
  const auto opened = Nvml::open(Root(machine.path().string()), kNowhere);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(opened.error().text(), HasSubstr("1 NVIDIA GPUs are on the PCI bus"));
}

TEST(Nvml, NamesEverySymbolThatALibraryLacks) {
  const TempDir empty;
  const auto opened = Nvml::open(Root(empty.path().string()), tornNvmlLibrary());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(opened.error().text(), HasSubstr("nvmlShutdown, "));
  EXPECT_THAT(opened.error().text(), HasSubstr("nvmlErrorString"));
  EXPECT_THAT(opened.error().text(), ::testing::Not(HasSubstr("nvmlInit_v2")));
  EXPECT_THAT(opened.error().text(), ::testing::Not(HasSubstr("nvmlDeviceGetTemperatureV")));
}

TEST(Nvml, ADriverThatRefusesIsAnErrorInItsOwnWords) {
  const FakeNode node("init 4");
  const auto opened = Nvml::open(node.root(), fakeNvmlLibrary());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kIo);
  EXPECT_THAT(opened.error().text(), HasSubstr("Insufficient Permissions (NVML 4)"));
}

TEST(Nvml, ADriverThatIsNotLoadedIsUnsupportedOnlyWithoutAGpu) {
  const FakeNode node("init 9");
  EXPECT_EQ(Nvml::open(node.root(), fakeNvmlLibrary()).error().code, ErrorCode::kUnsupported);
  node.file("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n");
  node.file("sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n");
  const auto opened = Nvml::open(node.root(), fakeNvmlLibrary());
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(opened.error().text(), HasSubstr("Driver Not Loaded"));
}

TEST(Nvml, KeepsApartWhatIsAbsentAndWhatFailed) {
  cuda::Answer<int> answer;
  for (const nvmlReturn_t code : {NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_FUNCTION_NOT_FOUND}) {
    answer.code = code;
    EXPECT_TRUE(answer.absent());
    EXPECT_FALSE(answer.ok());
  }
  for (const nvmlReturn_t code : {NVML_ERROR_UNKNOWN, NVML_ERROR_NO_PERMISSION, NVML_ERROR_GPU_IS_LOST}) {
    answer.code = code;
    EXPECT_FALSE(answer.absent());
  }
  EXPECT_TRUE(answer.lost());
}

/// What this process writes to stderr while `work` runs, up to the first line.
template <typename Work>
std::string firstLineWhile(Work work) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  const int before = dup(STDERR_FILENO);
  EXPECT_GE(dup2(ends[1], STDERR_FILENO), 0);
  std::string line;
  work([&] {
    pollfd readable = {ends[0], POLLIN, 0};
    char piece[512];
    while (line.find('\n') == std::string::npos && poll(&readable, 1, 30'000) == 1)
      line.append(piece, static_cast<size_t>(std::max<ssize_t>(read(ends[0], piece, sizeof piece), 0)));
  });
  EXPECT_GE(dup2(before, STDERR_FILENO), 0);
  for (const int file : {before, ends[0], ends[1]}) close(file);
  return line;
}

TEST(WatchedCall, NamesACallThatDoesNotReturnAndItsGpu) {
  const int gpu = 0;
  cuda::WatchedCall::name(&gpu, "gpu7");
  const std::string line = firstLineWhile([&](const auto& wait) {
    { const cuda::WatchedCall quick("nvmlDeviceGetName", &gpu); }
    const cuda::WatchedCall hanging("nvmlDeviceGetPowerUsage", &gpu);
    wait();
  });
  EXPECT_EQ(line, "NVML: nvmlDeviceGetPowerUsage of gpu7 has not returned for 0.5 s\n");
}

}  // namespace
}  // namespace muster::testing

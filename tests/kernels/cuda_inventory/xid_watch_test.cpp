// SPDX-License-Identifier: Apache-2.0
// XIDs by events and by the kernel's log: each is counted once, and a source that cannot be had is not
// "none".
#include "kernels/cuda/inventory/xid_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/cuda_inventory/fake_nvml.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLog79 =
    "[ 12.1] NVRM: Xid (PCI:0000:4e:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n";

Readings healthAfter(cuda::CudaInventory& inventory) {
  auto readings = inventory.health(0, "idle");
  EXPECT_TRUE(readings.ok());
  return std::move(readings).value();
}

TEST(XidWatch, CountsWhatTheLogHeldBefore) {
  FakeNode node;
  node.kernelLog = kLog79;
  const Readings readings = healthAfter(*node.open());
  EXPECT_EQ(valueOf(readings, reading::kXidFatal, "gpu3"), 1);
  EXPECT_EQ(readingOf(readings, reading::kXidFatal, "gpu3")->text, "XID 79 (GPU has fallen off the bus)");
  EXPECT_EQ(valueOf(readings, reading::kXidFatal, "gpu2"), 0);
}

TEST(XidWatch, AnEventThatTheLogHoldsTooCountsOnce) {
  FakeNode node("gpu 3 xid 79 working\ngpu 5 xid 31 working\n");
  const auto inventory = node.open();
  EXPECT_EQ(valueOf(healthAfter(*inventory), reading::kXidFatal, "gpu3"), 0);
  node.beginWork();
  node.kernelLog = kLog79;
  Readings readings = healthAfter(*inventory);
  EXPECT_EQ(valueOf(readings, reading::kXidFatal, "gpu3"), 1);
  EXPECT_EQ(valueOf(readings, reading::kXidApplication, "gpu5"), 1);
  readings = healthAfter(*inventory);
  EXPECT_EQ(valueOf(readings, reading::kXidFatal, "gpu3"), 1) << "it is still the same one";
}

TEST(XidWatch, EventsDoWithoutTheLogAndTheLogWithoutEvents) {
  FakeNode events("gpu 3 xid 79 working\n");
  events.kernelLogForbidden = true;
  const auto byEvents = events.open();
  EXPECT_EQ(valueOf(healthAfter(*byEvents), reading::kXidFatal, "gpu3"), 0);
  events.beginWork();
  EXPECT_EQ(valueOf(healthAfter(*byEvents), reading::kXidFatal, "gpu3"), 1);

  FakeNode log("gpu * call nvmlDeviceGetSupportedEventTypes 3\n");
  const auto byLog = log.open();
  EXPECT_EQ(valueOf(healthAfter(*byLog), reading::kXidFatal, "gpu3"), 0);
  log.kernelLog = kLog79;
  EXPECT_EQ(valueOf(healthAfter(*byLog), reading::kXidFatal, "gpu3"), 1);
}

TEST(XidWatch, WhetherAnNvlinkErrorIsFatalTheLogTellsIfItCanBeRead) {
  for (const bool forbidden : {false, true}) {
    FakeNode node("gpu 3 xid 145 working\n");
    node.kernelLogForbidden = forbidden;
    const auto inventory = node.open();
    EXPECT_EQ(valueOf(healthAfter(*inventory), reading::kXidFatal, "gpu3"), 0);
    node.beginWork();
    node.kernelLog = "[ 12.1] NVRM: Xid (PCI:0000:4e:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0)\n";
    const Readings readings = healthAfter(*inventory);
    EXPECT_EQ(valueOf(readings, reading::kXidFatal, "gpu3"), forbidden ? 1 : 0);
    EXPECT_EQ(valueOf(readings, reading::kXidInformation, "gpu3"), forbidden ? 0 : 1);
  }
}

TEST(XidWatch, XidsThatAskForNothingAreNoReading) {
  FakeNode node("gpu 3 xid 63 working\ngpu 3 xid 94 working\n");
  const auto inventory = node.open();
  (void)healthAfter(*inventory);
  node.beginWork();
  const Readings readings = healthAfter(*inventory);
  EXPECT_EQ(valueOf(readings, reading::kXidFatal, "gpu3"), 0);
  EXPECT_EQ(valueOf(readings, reading::kXidApplication, "gpu3"), 1);
}

TEST(XidWatch, NeitherEventsNorLogIsUnreadable) {
  FakeNode node("gpu 3 call nvmlDeviceRegisterEvents 999\n");
  node.kernelLogForbidden = true;
  const Readings readings = healthAfter(*node.open());
  EXPECT_EQ(readingOf(readings, reading::kXidFatal, "gpu3"), nullptr);
  const auto found = std::find_if(readings.unreadable.begin(), readings.unreadable.end(),
                                  [](const UnreadableSource& source) { return source.device == "gpu3"; });
  ASSERT_NE(found, readings.unreadable.end());
  EXPECT_EQ(found->name, "XID errors");
  EXPECT_THAT(found->reason, HasSubstr("Unknown Error (NVML 999)"));
  EXPECT_THAT(found->reason, HasSubstr("Operation not permitted"));
}

}  // namespace
}  // namespace muster::testing

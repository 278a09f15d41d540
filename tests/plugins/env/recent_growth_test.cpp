// SPDX-License-Identifier: Apache-2.0
// Rates of counters over a sliding window.
#include "plugins/env/recent_growth.h"

#include <gtest/gtest.h>

namespace muster::env {
namespace {

/// The rate `name` of gpu0 after a sample in which `counter` grew by `growth`.
double rateAfter(RecentGrowth& recent, const char* counter, double growth, double time,
                 const std::string& name) {
  for (const Reading& reading : recent.rates({{counter, "count", "gpu0", growth, "", {}}}, time))
    if (reading.name == name && reading.device == "gpu0") return reading.value;
  ADD_FAILURE() << name;
  return 0;
}

TEST(RecentGrowth, AddsUpTheReplaysOfAMinute) {
  RecentGrowth recent;
  const auto replays = [&](double growth, double time) {
    return rateAfter(recent, reading::kPcieReplay, growth, time, "pcie_replays_per_minute");
  };
  EXPECT_EQ(replays(0, 100), 0);
  EXPECT_EQ(replays(5, 101), 5) << "one second is no reason to expect 300 in a minute";
  EXPECT_EQ(replays(7, 130), 12);
  EXPECT_EQ(replays(1, 160), 13) << "the first came between 100 and 101";
  EXPECT_EQ(replays(0, 161), 8);
  EXPECT_EQ(replays(0, 300), 0);
}

TEST(RecentGrowth, TakesTheMeanOfSamplesThatAreFurtherApart) {
  RecentGrowth recent;
  (void)recent.rates({}, 0);
  EXPECT_DOUBLE_EQ(rateAfter(recent, reading::kPcieReplay, 100, 600, "pcie_replays_per_minute"), 10);
  EXPECT_DOUBLE_EQ(rateAfter(recent, reading::kNvlinkCrcErrors, 1000, 610, "nvlink_crc_per_second"), 100);
}

TEST(RecentGrowth, SpreadsWhatGrewBetweenTwoStagesOverTheTimeBetweenThem) {
  RecentGrowth recent;
  recent.startAt(100);
  EXPECT_DOUBLE_EQ(rateAfter(recent, reading::kNvlinkCrcErrors, 1000, 120, "nvlink_crc_per_second"), 50);
}

TEST(RecentGrowth, TellsTheShareOfTimeThatSoftwareThrottled) {
  RecentGrowth recent;
  const auto share = [&](double seconds, double time) {
    return rateAfter(recent, reading::kThrottleSoftware, seconds, time, "throttle_software_share");
  };
  EXPECT_EQ(share(0, 10), 0);
  EXPECT_DOUBLE_EQ(share(0.25, 11), 0.25);
  EXPECT_DOUBLE_EQ(share(0.5, 12), 0.5) << "each second counts once";
  EXPECT_DOUBLE_EQ(share(0.01, 12.01), 0.01) << "a short last sample is no whole second";
  EXPECT_DOUBLE_EQ(share(1, 22.01), 0.1);
}

TEST(RecentGrowth, KeepsDevicesApartAndTheWordsOfACounter) {
  RecentGrowth recent;
  (void)recent.rates({}, 0);
  const auto found = recent.rates({{reading::kNvlinkCrcErrors, "count", "gpu0", 3, "link 2: 3", {}},
                                   {reading::kNvlinkCrcErrors, "count", "gpu1", 4, "", {}},
                                   {reading::kNvlinkErrors, "count", "gpu1", 9, "", {}}},
                                  1);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].value, 3);
  EXPECT_EQ(found[0].text, "link 2: 3");
  EXPECT_EQ(found[1].value, 4);
}

}  // namespace
}  // namespace muster::env

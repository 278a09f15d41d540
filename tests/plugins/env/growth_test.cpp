// SPDX-License-Identifier: Apache-2.0
// Counters as growth.
#include "plugins/env/growth.h"

#include <gtest/gtest.h>

namespace muster::env {
namespace {

Reading counter(double value, const std::string& device = "gpu0", const std::string& text = "") {
  return {reading::kXidFatal, "count", device, value, text, {}};
}

TEST(Growth, TheFirstValueIsHistory) {
  Growth growth;
  EXPECT_FALSE(growth.since(counter(7)));
  EXPECT_EQ(growth.since(counter(7))->value, 0);
  EXPECT_EQ(growth.since(counter(9))->value, 2);
}

TEST(Growth, HistoryCountsWhenItBelongsToWhatIsLookedAt) {
  Growth growth;
  growth.startAtZero();
  EXPECT_EQ(growth.since(counter(7))->value, 7);
}

TEST(Growth, DevicesAndLabelsAreApart) {
  Growth growth;
  (void)growth.since(counter(1, "gpu0"));
  EXPECT_FALSE(growth.since(counter(5, "gpu1")));
  Reading labelled = counter(3);
  labelled.labels["cgroup"] = "/a";
  EXPECT_FALSE(growth.since(labelled));
}

TEST(Growth, EveryCounterOfAnRdmaPortIsOne) {
  Growth growth;
  const auto reading = [](const char* port, double value) {
    return Reading{"rdma_link_downed", "count", "", value, "", {{"port", port}}};
  };
  EXPECT_FALSE(growth.since(reading("mlx5_0/1", 3)));
  EXPECT_FALSE(growth.since(reading("mlx5_1/1", 5)));
  EXPECT_EQ(growth.since(reading("mlx5_0/1", 4))->value, 1);
  EXPECT_EQ(growth.since(reading("mlx5_1/1", 5))->value, 0);
}

TEST(Growth, ACounterThatFellCountsFromZero) {
  Growth growth;
  (void)growth.since(counter(100));
  EXPECT_EQ(growth.since(counter(3))->value, 3);
}

TEST(Growth, OldWordsAreNotRepeated) {
  Growth growth;
  (void)growth.since(counter(1, "gpu0", "XID 79"));
  EXPECT_EQ(growth.since(counter(1, "gpu0", "XID 79"))->text, "");
  EXPECT_EQ(growth.since(counter(2, "gpu0", "XID 48"))->text, "XID 48");
}

TEST(Growth, AStatePassesAsItIs) {
  Growth growth;
  EXPECT_EQ(growth.since({reading::kTemperature, "degC", "gpu0", 55, "", {}})->value, 55);
}

}  // namespace
}  // namespace muster::env

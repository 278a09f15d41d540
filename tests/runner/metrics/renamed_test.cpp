// SPDX-License-Identifier: Apache-2.0
// Errors about a former name give the new one.
#include "runner/metrics/renamed.h"

#include <gtest/gtest.h>

namespace muster::testing {
namespace {

TEST(NameHint, GivesTheNewNameOfARenamedMetric) {
  const std::vector<std::string> known = {"collective.latency", "collective.local_compute_time",
                                          "collective.unconfirmed_settings"};
  EXPECT_EQ(nameHint("collective.own_time", known), "; it was renamed to \"collective.local_compute_time\"");
  for (const char* former : {"collective.unproven_settings", "collective.settings_unproven"})
    EXPECT_EQ(nameHint(former, known), "; it was renamed to \"collective.unconfirmed_settings\"");
}

TEST(NameHint, GivesTheNewNameOfARenamedParameter) {
  EXPECT_EQ(nameHint("own_time_probes", {"checks", "local_compute_probes"}),
            "; it was renamed to \"local_compute_probes\"");
}

TEST(NameHint, DoesNotGiveANameThatIsUnknownHere) {
  EXPECT_EQ(nameHint("collective.own_time", {"compute.gemm_throughput"}), "");
}

TEST(NameHint, SuggestsTheNearestNameOtherwise) {
  EXPECT_EQ(nameHint("collective.latncy", {"collective.latency"}), "; did you mean \"collective.latency\"?");
}

}  // namespace
}  // namespace muster::testing

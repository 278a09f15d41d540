// SPDX-License-Identifier: Apache-2.0
// Errors about a former name give the new one.
#include "runner/metrics/renamed.h"

#include <gtest/gtest.h>

namespace muster::testing {
namespace {

std::string hintAbout(std::string_view name, const std::vector<std::string>& known) {
  Suggester suggester;
  const std::string hint = nameHint(name, known, suggester);
  EXPECT_EQ(unknownName("", name, known).message, hint);
  return hint;
}

TEST(NameHint, GivesTheNewNameOfARenamedMetric) {
  const std::vector<std::string> known = {"collective.latency", "collective.local_compute_time",
                                          "collective.unconfirmed_settings"};
  EXPECT_EQ(hintAbout("collective.own_time", known), "; it was renamed to \"collective.local_compute_time\"");
  for (const char* former : {"collective.unproven_settings", "collective.settings_unproven"})
    EXPECT_EQ(hintAbout(former, known), "; it was renamed to \"collective.unconfirmed_settings\"");
}

TEST(NameHint, GivesTheNewNameOfARenamedParameter) {
  EXPECT_EQ(hintAbout("own_time_probes", {"checks", "local_compute_probes"}),
            "; it was renamed to \"local_compute_probes\"");
}

TEST(NameHint, GivesTheNewNameAsASuggestion) {
  EXPECT_EQ(unknownName("", "own_time_probes", {"checks", "local_compute_probes"}).suggestion,
            "local_compute_probes");
}

TEST(NameHint, DoesNotGiveANameThatIsUnknownHere) {
  EXPECT_EQ(hintAbout("collective.own_time", {"compute.gemm_throughput"}), "");
}

TEST(NameHint, SuggestsTheNearestNameOtherwise) {
  EXPECT_EQ(hintAbout("collective.latncy", {"collective.latency"}), "; did you mean \"collective.latency\"?");
}

}  // namespace
}  // namespace muster::testing

// SPDX-License-Identifier: Apache-2.0
// Which test a session is for, and what a case is run with.
#include "plugins/sdk/test_case.h"

#include <gtest/gtest.h>

namespace muster::sdk {
namespace {

Result<int> choose(const Json& context, const std::vector<NamedTest<int>>& tests) {
  return chooseTest<int>(context, "toy", tests);
}

TEST(ChooseTest, GivesWhatRunsTheNamedTest) {
  EXPECT_EQ(choose({{"test", "b"}}, {{"a", 1}, {"b", 2}}).value(), 2);
}

TEST(ChooseTest, ListsTheTestsThereAreForAnotherName) {
  const auto of3 = choose({{"test", "d"}}, {{"a", 1}, {"b", 2}, {"c", 3}});
  ASSERT_FALSE(of3.ok());
  EXPECT_EQ(of3.error().code, ErrorCode::kUsage);
  EXPECT_EQ(of3.error().text(), "toy has no test \"d\"; it has a, b and c");
  EXPECT_EQ(choose({{"test", ""}}, {{"a", 1}}).error().text(), "toy has no test \"\"; it has a");
}

TEST(ChooseTest, NeedsANameInTheContext) {
  EXPECT_EQ(choose(Json::object(), {{"a", 1}}).error().code, ErrorCode::kProtocol);
  EXPECT_EQ(choose({{"test", 7}}, {{"a", 1}}).error().code, ErrorCode::kProtocol);
}

TEST(ReadCase, GivesSeedAndParams) {
  const Json json = {{"seed", 7}, {"params", {{"size", 8}}}};
  const auto input = readCase(json);
  ASSERT_TRUE(input.ok()) << input.error().text();
  EXPECT_EQ(input->seed, 7u);
  EXPECT_EQ((*input->params)["size"], 8);
}

TEST(ReadCase, RefusesACaseWithoutSeedOrParams) {
  EXPECT_FALSE(readCase({{"params", Json::object()}}).ok());
  EXPECT_FALSE(readCase({{"seed", 7}}).ok());
  EXPECT_FALSE(readCase({{"seed", 7}, {"params", "none"}}).ok());
}

}  // namespace
}  // namespace muster::sdk

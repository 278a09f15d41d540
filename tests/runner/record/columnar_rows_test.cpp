// SPDX-License-Identifier: Apache-2.0
#include "runner/record/fold/columnar_rows.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

std::vector<Json> unfolded(const Json& list) {
  std::vector<Json> objects;
  const Status status = eachRow(list, "list", [&](const Json& object, const std::string&) -> Status {
    objects.push_back(object);
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.error().text();
  return objects;
}

std::string refusal(const Json& list) {
  const Status status = eachRow(list, "list", [](const Json&, const std::string&) { return Status(); });
  return status.ok() ? "" : status.error().text();
}

TEST(ColumnarRows, WritesWhatIsSharedOnce) {
  const Json folded = toColumnarRows({{"a", {{"unit", "W"}, {"rank", 0}}},
                                      {"b", {{"unit", "s"}, {"rank", 7}}},
                                      {"a", {{"unit", "W"}, {"rank", 1}, {"device", "gpu1"}}}});
  EXPECT_EQ(dumpJson(folded),
            R"([{"unit":"W","rows":{"rank":[0,1],"device":[null,"gpu1"]}},{"unit":"s","rank":7}])");
}

TEST(ColumnarRows, GivesBackEveryObject) {
  const std::vector<KeyedObject> objects = {{"a", {{"x", 1}, {"y", Json::array({1, 2})}}},
                                            {"a", {{"x", 1}, {"y", Json::array()}}},
                                            {"a", {{"x", 1}}},
                                            {"b", {{"x", 3}}}};
  const auto back = unfolded(toColumnarRows(objects));
  ASSERT_EQ(back.size(), objects.size());
  for (size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], objects[i].object) << i;
}

TEST(ColumnarRows, CountsObjectsThatAreAllTheSame) {
  const std::vector<KeyedObject> objects(3, {"a", {{"x", 1}, {"y", 2}}});
  EXPECT_EQ(dumpJson(toColumnarRows(objects)), R"([{"y":2,"rows":{"x":[1,1,1]}}])");
  EXPECT_EQ(unfolded(toColumnarRows(objects)).size(), 3u);
}

TEST(ColumnarRows, RefusesColumnsThatDoNotFit) {
  EXPECT_NE(refusal(Json::object()).find("must be a list"), std::string::npos);
  EXPECT_NE(refusal({{{"rows", 3}}}).find("list[0].rows"), std::string::npos);
  EXPECT_NE(refusal({{{"rows", Json::object()}}}), "");
  EXPECT_NE(refusal({{{"rows", {{"x", Json::array()}}}}}).find("list[0].rows.x"), std::string::npos);
  EXPECT_NE(refusal({{{"rows", {{"x", {1, 2}}, {"y", {1, 2, 3}}}}}}).find("has 3 rows"), std::string::npos);
  EXPECT_NE(refusal({{{"x", 1}, {"rows", {{"x", {1, 2}}}}}}).find("also outside the rows"),
            std::string::npos);
}

/// Finding a field goes through all of them, for each field of each row.
TEST(ColumnarRows, RefusesMoreFieldsThanARowHas) {
  Json group = {{"unit", "W"}, {"rows", Json::object()}};
  for (int i = 0; i < 63; ++i) group["rows"][std::to_string(i)] = {1, 2};
  EXPECT_EQ(refusal(Json::array({group})), "");
  group["rank"] = 0;
  EXPECT_NE(refusal(Json::array({group})).find("list[0].rows: has 65 fields; at most 64 are read"),
            std::string::npos)
      << refusal(Json::array({group}));
}

TEST(ColumnarRows, SaysHowMuchItUnfoldsTo) {
  Json list = Json::array({{{"case", std::string(1000, 'x')}, {"rows", {{"rank", Json::array()}}}}});
  for (int i = 0; i < 100; ++i) list[0]["rows"]["rank"].push_back(i);
  EXPECT_GT(expandedBytes(list), 120'000u);
  EXPECT_LT(expandedBytes(list), 130'000u);
  EXPECT_EQ(expandedBytes(Json(3)), 0u);
}

TEST(ColumnarRows, GroupsInTheSameOrder) {
  std::vector<std::string> items = {"a1", "b1", "a2", "c1", "b2"};
  groupRows(items, [](const std::string& item) { return item.substr(0, 1); });
  EXPECT_EQ(items, (std::vector<std::string>{"a1", "a2", "b1", "b2", "c1"}));
}

}  // namespace
}  // namespace muster

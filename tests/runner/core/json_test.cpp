// SPDX-License-Identifier: Apache-2.0
// Hostile JSON, and typed reading with a path in the error.
#include "runner/core/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

TEST(ParseJson, KeepsTheOrderOfKeys) {
  const auto json = parseJson(R"({"z":1,"a":[true,null,"x"]})");
  ASSERT_TRUE(json.ok()) << json.error().text();
  EXPECT_EQ(dumpJson(*json), R"({"z":1,"a":[true,null,"x"]})");
}

TEST(ParseJson, RefusesWhatIsNotOneWholeValue) {
  for (const char* bad : {"", " ", "{", "[1,]", "{} x", "{}{}", "nul", "'a'", "{\"a\":NaN}", "[1e999]",
                          "\"\xFF\"", "\"\xED\xA0\x80\"", "// c\n1", "[\"a\nb\"]", "\"\\ud800\""}) {
    const auto json = parseJson(bad);
    ASSERT_FALSE(json.ok()) << bad;
    EXPECT_EQ(json.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(json.error().message.find("not valid JSON: "), 0u) << json.error().message;
  }
}

TEST(ParseJson, SeesWhatFollowsANulByte) {
  EXPECT_FALSE(parseJson(std::string_view("{}\0garbage", 10)).ok());
}

TEST(ParseJson, BoundsTheDepthWithoutMemoryOrStack) {
  EXPECT_TRUE(parseJson(std::string(64, '[') + std::string(64, ']')).ok());
  EXPECT_FALSE(parseJson(std::string(65, '[') + std::string(65, ']')).ok());
  EXPECT_FALSE(parseJson(std::string(1'000'000, '[')).ok());
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  EXPECT_NE(parseJson(objects).error().message.find("64 levels"), std::string::npos);
}

TEST(ParseJson, RefusesAKeyThatStandsTwice) {
  EXPECT_NE(parseJson(R"({"b":{"a":1,"c":2,"a":3}})").error().message.find("the key \"a\" is defined twice"),
            std::string::npos);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  EXPECT_TRUE(parseJson("{" + many + "\"a\":1}").ok());
  EXPECT_FALSE(parseJson("{" + many + "\"k7\":1}").ok());
}

TEST(ParseJson, BoundsTheKeysOfAnObject) {
  std::string many = "{";
  for (int i = 0; i < 500'000; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  EXPECT_NE(parseJson(many + "\"a\":1}").error().message.find("more than 20000 keys"), std::string::npos);
}

TEST(ParseJson, BoundsTheValuesOfADocument) {
  std::string many = "[";
  for (int i = 0; i < 4'000'000; ++i) many += "0,";
  EXPECT_NE(parseJson(many + "0]").error().message.find("more than 4000000 values"), std::string::npos);
}

TEST(ParseJson, BracketsInTextsAreNotDepth) {
  EXPECT_TRUE(parseJson("[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"]", 2).ok());
}

TEST(ParseJson, MessagesAreSafeToPrint) {
  const auto message = parseJson("[\x1b]").error().message;
  EXPECT_EQ(message.find('\x1b'), std::string::npos) << message;
}

TEST(DumpJson, ReplacesInvalidBytesAndNeverThrows) {
  EXPECT_EQ(dumpJson(Json("a\xFF")), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(dumpJson(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

TEST(NumberJson, CarriesWhatJsonCannot) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -0.5, 0.1, 1e300, 5e-324, infinity, -infinity}) {
    double back = 42;
    ASSERT_TRUE(numberFromJson(*parseJson(dumpJson(numberToJson(value))), back));
    EXPECT_EQ(back, value);
  }
  double nan = 0, null = 0, other = 42;
  ASSERT_TRUE(numberFromJson(numberToJson(std::nan("")), nan));
  ASSERT_TRUE(numberFromJson(nullptr, null));
  EXPECT_TRUE(std::isnan(nan) && std::isnan(null));
  for (const Json& bad : {Json("1"), Json("NaN"), Json(true), Json::array({1}), Json::object()})
    EXPECT_FALSE(numberFromJson(bad, other)) << bad;
}

TEST(JsonReader, ReadsEveryType) {
  const Json json = {{"s", "x"},
                     {"d", 1},
                     {"b", true},
                     {"i", -3},
                     {"u", 18446744073709551615ull},
                     {"n", "nan"},
                     {"ds", {1, "inf"}},
                     {"ss", {"a", "b"}},
                     {"m", {{"k", "v"}}}};
  std::string s;
  double d = 0, n = 0;
  bool b = false;
  int i = 0;
  uint64_t u = 0;
  std::vector<double> ds;
  std::vector<std::string> ss;
  std::map<std::string, std::string> m;
  JsonReader r(json, "record");
  r.read("s", s);
  r.read("d", d);
  r.read("b", b);
  r.read("i", i);
  r.read("u", u);
  r.read("n", n);
  r.read("ds", ds);
  r.read("ss", ss);
  r.read("m", m);
  r.optional("absent", i);
  ASSERT_TRUE(r.ok()) << r.status().error().text();
  EXPECT_EQ(s, "x");
  EXPECT_EQ(d, 1);
  EXPECT_TRUE(b);
  EXPECT_EQ(i, -3);
  EXPECT_EQ(u, 18446744073709551615ull);
  EXPECT_TRUE(std::isnan(n));
  EXPECT_EQ(ds.size(), 2u);
  EXPECT_EQ(ss[1], "b");
  EXPECT_EQ(m["k"], "v");
}

/// The text of the error that reading `key` of `json` into a T gives.
template <typename T>
std::string readError(const Json& json, const char* key) {
  T out{};
  JsonReader r(json, "record.stages[2]");
  r.read(key, out);
  return r.ok() ? "read" : r.status().error().text();
}

TEST(JsonReader, GivesThePathTheValueFoundAndTheValueExpected) {
  const Json json = {
      {"a", 1.5}, {"t", "x"}, {"l", {1, "y"}}, {"big", 1e300}, {"huge", 18446744073709551615ull}};
  EXPECT_EQ(readError<std::string>(json, "a"), "record.stages[2].a: found 1.5; expected a text");
  EXPECT_EQ(readError<int>(json, "a"), "record.stages[2].a: found 1.5; expected a whole number of 64 bits");
  EXPECT_EQ(readError<bool>(json, "t"), "record.stages[2].t: found \"x\"; expected true or false");
  EXPECT_EQ(readError<double>(json, "t"), "record.stages[2].t: found \"x\"; expected a number");
  EXPECT_EQ(readError<std::string>(json, "none"), "record.stages[2].none: is missing; expected a text");
  EXPECT_EQ(readError<std::vector<double>>(json, "l"),
            "record.stages[2].l: item 1: found \"y\"; expected a number");
  EXPECT_EQ(readError<std::vector<std::string>>(json, "t"),
            "record.stages[2].t: found \"x\"; expected a list");
  EXPECT_EQ(readError<int64_t>(json, "huge"),
            "record.stages[2].huge: found 18446744073709551615; expected a whole number of 64 bits");
  EXPECT_EQ(readError<uint64_t>({{"a", -1}}, "a"),
            "record.stages[2].a: found -1; expected a whole number, 0 or more");
  EXPECT_EQ(readError<int>({{"a", 1ll << 40}}, "a"),
            "record.stages[2].a: found 1099511627776; expected a whole number of 32 bits");
  EXPECT_EQ(readError<int>(Json::array({1}), "a"), "record.stages[2]: found a list; expected an object");
  EXPECT_EQ((readError<std::map<std::string, std::string>>({{"m", {{"k", 1}}}}, "m")),
            "record.stages[2].m: \"k\": found 1; expected a text");
}

TEST(JsonReader, KeepsTheFirstFailureAndLeavesTheRestAlone) {
  const Json json = {{"a", 1}, {"b", 2}};
  std::string a = "before", b = "before";
  JsonReader r(json, "x");
  r.read("a", a);
  r.read("b", b);
  EXPECT_EQ(r.status().error().where, "x.a");
  EXPECT_EQ(a + b, "beforebefore");
}

TEST(JsonReader, WalksAListUntilAFailure) {
  const Json json = {{"l", {1, 2, 3}}};
  std::vector<std::string> paths;
  JsonReader r(json, "x");
  r.each("l", [&](const Json& item, const std::string& path) -> Status {
    paths.push_back(path);
    if (item == 2) return Error{ErrorCode::kProtocol, "two", path};
    return {};
  });
  EXPECT_EQ(paths, (std::vector<std::string>{"x.l[0]", "x.l[1]"}));
  EXPECT_EQ(r.status().error().text(), "x.l[1]: two");
}

}  // namespace
}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// The table of parameters: what it says in describe(), as the host understands it, and how it reads a case.
#include "plugins/sdk/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "runner/metrics/catalog.h"

namespace muster::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Color { kRed, kBlue };

Result<Color> colorFromName(const std::string& name) {
  if (name == "red") return Color::kRed;
  if (name == "blue") return Color::kBlue;
  return Error{ErrorCode::kUsage, "no such color: " + name, ""};
}

/// A row of each form.
struct Every {
  int whole = 0;
  uint64_t wide = 0;
  double number = 0;
  bool flag = false;
  std::string text, choice;
  double seconds = 0;
  uint64_t bytes = 0;
  Names list, choices;
  Color color = Color::kBlue;
  bool isLoud = false;
  std::vector<Color> colors;

  void declare(ParamTable& param) {
    param("whole", whole, -1, {-5, 7}, "of 32 bits");
    param("wide", wide, 4000000000, {0}, "of 64 bits");
    param("number", number, 0.25, {0, 1.5}, "a share");
    param("flag", flag, true, "yes or no");
    param("text", text, "", "any text");
    param("choice", choice, "a", {"a", "b"}, "one of two");
    param("seconds", seconds, "s", "1m", {"0s", "1h"}, "a time");
    param("bytes", bytes, "B", "4 KiB", {"1 B", "16 TiB"}, "a size");
    param("list", list, {"x"}, "some texts");
    param("choices", choices, {"a", "b"}, {"a", "b", "c"}, "some of three");
    param("color", color, "red", {"red", "blue"}, colorFromName, "an enumerator");
    param(
        "loud", isLoud, "loud", {"loud", "quiet"}, [](const std::string& name) { return name == "loud"; },
        "by a function that cannot fail");
    param("colors", colors, {"blue", "red"}, {"red", "blue"}, colorFromName, "enumerators");
  }
};

/// What the host makes of a test with these parameters.
template <typename Params>
Result<PluginSpec> hostsView() {
  const std::string test = R"({"name": "t", "backends": ["host"], "scopes": ["device"]})";
  MUSTER_TRY(const Json json, parseJson(describe({{test, describeParams<Params>()}})));
  return pluginSpecFromDescribe("p", json);
}

/// The parameters as run() gets them where a plan says nothing.
template <typename Params>
Json defaults() {
  Json json = Json::object();
  const auto spec = hostsView<Params>();
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().text());
  if (spec.ok())
    for (const ParamSpec& param : spec->tests[0].params) json[param.name] = param.defaultValue;
  return json;
}

Result<Every> readWith(const std::string& name, const Json& value) {
  Json json = defaults<Every>();
  json[name] = value;
  return readParams<Every>(json);
}

TEST(ParamTable, DescribesEachTypeAsTheHostUnderstandsIt) {
  const auto spec = hostsView<Every>();
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  const TestSpec& test = spec->tests[0];
  ASSERT_EQ(test.params.size(), 13U);
  const ParamSpec& whole = *test.param("whole");
  EXPECT_EQ(whole.type, ParamType::kInt);
  EXPECT_EQ(whole.defaultValue, -1);
  EXPECT_EQ(whole.min, -5);
  EXPECT_EQ(whole.max, 7);
  EXPECT_EQ(whole.summary, "of 32 bits");
  EXPECT_EQ(test.param("wide")->min, 0);
  EXPECT_FALSE(test.param("wide")->max.has_value());
  EXPECT_EQ(test.param("number")->type, ParamType::kFloat);
  EXPECT_EQ(test.param("number")->max, 1.5);
  EXPECT_EQ(test.param("flag")->type, ParamType::kBool);
  EXPECT_EQ(test.param("text")->type, ParamType::kString);
  EXPECT_THAT(test.param("text")->oneOf, IsEmpty());
  EXPECT_THAT(test.param("choice")->oneOf, ElementsAre("a", "b"));
  EXPECT_EQ(test.param("seconds")->type, ParamType::kQuantity);
  EXPECT_EQ(test.param("seconds")->unit, "s");
  EXPECT_EQ(test.param("seconds")->defaultValue, 60);
  EXPECT_EQ(test.param("seconds")->max, 3600);
  EXPECT_EQ(test.param("bytes")->unit, "B");
  EXPECT_EQ(test.param("list")->type, ParamType::kList);
  EXPECT_EQ(test.param("list")->itemType, ParamType::kString);
  EXPECT_THAT(test.param("choices")->oneOf, ElementsAre("a", "b", "c"));
  EXPECT_EQ(test.param("color")->type, ParamType::kString);
  EXPECT_THAT(test.param("colors")->oneOf, ElementsAre("red", "blue"));
}

TEST(ParamTable, ReadsEachType) {
  const auto read = readParams<Every>(defaults<Every>());
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->whole, -1);
  EXPECT_EQ(read->wide, 4000000000U);
  EXPECT_EQ(read->number, 0.25);
  EXPECT_TRUE(read->flag);
  EXPECT_EQ(read->text, "");
  EXPECT_EQ(read->choice, "a");
  EXPECT_EQ(read->seconds, 60);
  EXPECT_EQ(read->bytes, 4096U);
  EXPECT_THAT(read->list, ElementsAre("x"));
  EXPECT_THAT(read->choices, ElementsAre("a", "b"));
  EXPECT_EQ(read->color, Color::kRed);
  EXPECT_TRUE(read->isLoud);
  EXPECT_THAT(read->colors, ElementsAre(Color::kBlue, Color::kRed));
}

TEST(ParamTable, NamesAParameterThatIsMissingOrOfAnotherType) {
  const Json all = defaults<Every>();
  for (const auto& [name, value] : all.items()) {
    Json json = all;
    json.erase(name);
    const auto missing = readParams<Every>(json);
    ASSERT_FALSE(missing.ok()) << name;
    EXPECT_EQ(missing.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(missing.error().where, "params." + name);
    const auto wrong = readWith(name, Json::object());
    ASSERT_FALSE(wrong.ok()) << name;
    EXPECT_EQ(wrong.error().where, "params." + name);
  }
}

TEST(ParamTable, RefusesWhatDoesNotFitIntoItsField) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(readWith("whole", 1LL << 31).ok());
  EXPECT_FALSE(readWith("whole", 1.5).ok());
  EXPECT_FALSE(readWith("wide", -1).ok());
  for (const double bytes : {-1.0, kInfinity, -kInfinity, std::nan(""), std::ldexp(1.0, 64)}) {
    const auto read = readWith("bytes", numberToJson(bytes));
    ASSERT_FALSE(read.ok()) << bytes;
    EXPECT_EQ(read.error().where, "params.bytes");
  }
  EXPECT_EQ(readWith("bytes", 4096.9)->bytes, 4096U);
  EXPECT_EQ(readWith("bytes", std::ldexp(1.0, 63))->bytes, 1ULL << 63);
}

TEST(ParamTable, GivesTheErrorOfAConversion) {
  EXPECT_THAT(readWith("color", "green").error().text(), HasSubstr("no such color: green"));
  EXPECT_THAT(readWith("colors", {"red", "green"}).error().text(), HasSubstr("no such color: green"));
  EXPECT_FALSE(readWith("loud", "quiet")->isLoud);
}

struct Span {
  int64_t from = 0, to = 0, length = 0;

  void declare(ParamTable& param) {
    param("from", from, 1, {}, "first");
    param("to", to, 3, {}, "last");
  }
  Status complete() {
    if (from > to) return Error{ErrorCode::kUsage, "from is above to", ""};
    length = to - from + 1;
    return {};
  }
};

TEST(ReadParams, ComputesWhatFollowsAndRefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(readParams<Span>(defaults<Span>())->length, 3);
  EXPECT_EQ(readParams<Span>({{"from", 4}, {"to", 3}}).error().text(), "from is above to");
  EXPECT_EQ(readParams<Span>({{"from", 4}}).error().where, "params.to");
}

/// Rows whose values a test sets.
struct Drawn {
  static inline int64_t standard = 0, min = 0, max = 0;
  static inline double share = 0;
  static inline std::string words;
  int64_t whole = 0;
  double number = 0;
  std::string text, choice;

  void declare(ParamTable& param) {
    param("whole", whole, standard, {min, max}, "drawn");
    param("number", number, share, {}, words.c_str());
    param("text", text, words.c_str(), "drawn");
    param("choice", choice, words.c_str(), {"", words}, "drawn");
  }
};

TEST(ParamTable, ADefaultIsAcceptedWhereItIsInItsRange) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> draw(-20, 20);
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    Drawn::standard = draw(random), Drawn::min = draw(random), Drawn::max = draw(random);
    const bool fits = Drawn::min <= Drawn::standard && Drawn::standard <= Drawn::max;
    ASSERT_EQ(hostsView<Drawn>().ok(), fits) << Drawn::min << ' ' << Drawn::standard << ' ' << Drawn::max;
    if (!fits) continue;
    ++accepted;
    EXPECT_EQ(readParams<Drawn>(defaults<Drawn>())->whole, Drawn::standard);
  }
  EXPECT_GT(accepted, 100);
  Drawn::standard = Drawn::min = Drawn::max = 0;
}

TEST(ParamTable, NumbersAndTextsArriveAsTheyWereDeclared) {
  std::mt19937_64 random(7);
  const std::string letters[] = {"a", "\"", "\\", "\n", "\x01", "\x1f", "\x7f", "{", "}", ",", "µ", "—", "/"};
  for (int i = 0; i < 2000; ++i) {
    Drawn::words.clear();
    for (uint64_t left = random() % 12; left > 0; --left)
      Drawn::words += letters[random() % std::size(letters)];
    do Drawn::share = std::bit_cast<double>(random());
    while (!std::isfinite(Drawn::share));
    const auto spec = hostsView<Drawn>();
    ASSERT_TRUE(spec.ok()) << Drawn::words << ' ' << Drawn::share << ": " << spec.error().text();
    EXPECT_EQ(spec->tests[0].param("number")->summary, Drawn::words);
    const auto read = readParams<Drawn>(defaults<Drawn>());
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_EQ(read->number, Drawn::share);
    EXPECT_EQ(read->text, Drawn::words);
    EXPECT_EQ(read->choice, Drawn::words);
  }
}

}  // namespace
}  // namespace muster::sdk

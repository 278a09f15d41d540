// SPDX-License-Identifier: Apache-2.0
// Parameter values against what a plugin declares.
#include <gmock/gmock.h>

#include <limits>

#include "runner/metrics/params.h"

namespace muster {
namespace {

ParamSpec paramOf(ParamType type) {
  ParamSpec spec;
  spec.name = "p";
  spec.type = type;
  return spec;
}

/// "12" when it converts, else the message.
std::string outcome(const ParamSpec& spec, const Json& value) {
  const auto converted = convertParam(spec, value);
  return converted.ok() ? dumpJson(*converted) : converted.error().message;
}

TEST(RangeText, SaysBoundsInTheParametersUnit) {
  ParamSpec spec = paramOf(ParamType::kQuantity);
  spec.unit = "B";
  EXPECT_EQ(rangeText(spec), "");
  spec.min = 1;
  EXPECT_EQ(rangeText(spec), "at least 1 B");
  spec.max = 65536;
  EXPECT_EQ(rangeText(spec), "from 1 B to 64 KiB");
  spec.min.reset();
  EXPECT_EQ(rangeText(spec), "at most 64 KiB");
}

TEST(ConvertParam, WholeNumbersStayWhole) {
  ParamSpec spec = paramOf(ParamType::kInt);
  spec.min = 16;
  spec.max = 65536;
  EXPECT_EQ(outcome(spec, 8192), "8192");
  EXPECT_EQ(outcome(spec, 8192.0), "8192");
  EXPECT_EQ(outcome(spec, 8192.5), "found 8192.5; expected a whole number from 16 to 65536");
  EXPECT_EQ(outcome(spec, 8), "found 8; expected a whole number from 16 to 65536");
  EXPECT_EQ(outcome(spec, "8192"), "found \"8192\"; expected a whole number from 16 to 65536");
  EXPECT_EQ(outcome(spec, true), "found true; expected a whole number from 16 to 65536");
  EXPECT_EQ(outcome(spec, nullptr), "found null; expected a whole number from 16 to 65536");
}

TEST(ConvertParam, WholeNumbersBeyondDoublesAreRefused) {
  const ParamSpec spec = paramOf(ParamType::kInt);
  EXPECT_EQ(outcome(spec, 9007199254740992ll), "9007199254740992");
  EXPECT_NE(outcome(spec, 1e300).find("expected a whole number"), std::string::npos);
  EXPECT_NE(outcome(spec, std::numeric_limits<uint64_t>::max()).find("expected"), std::string::npos);
}

TEST(ConvertParam, NumbersMustBeFiniteAndInRange) {
  ParamSpec spec = paramOf(ParamType::kFloat);
  spec.min = 0;
  EXPECT_EQ(outcome(spec, 1), "1.0");
  EXPECT_EQ(outcome(spec, -0.5), "found -0.5; expected a number at least 0");
  EXPECT_NE(outcome(spec, std::numeric_limits<double>::infinity()).find("expected a number"),
            std::string::npos);
}

TEST(ConvertParam, QuantitiesBecomeNumbersInTheBaseUnit) {
  ParamSpec spec = paramOf(ParamType::kQuantity);
  spec.unit = "B";
  spec.max = 8589934592.0;
  EXPECT_EQ(outcome(spec, "8 GiB"), "8589934592.0");
  EXPECT_EQ(outcome(spec, 4096), "4096.0");
  EXPECT_EQ(outcome(spec, "9 GiB"), "found \"9 GiB\"; expected a quantity in B at most 8 GiB");
  EXPECT_EQ(outcome(spec, "5m").find("\"5m\" is in s; expected B"), 0u);
  EXPECT_EQ(outcome(spec, "nan").find("\"nan\" does not start with a finite number"), 0u);
  EXPECT_EQ(outcome(spec, false), "found false; expected a quantity in B at most 8 GiB");
}

TEST(ConvertParam, TextsMustBeAmongTheChoices) {
  ParamSpec spec = paramOf(ParamType::kString);
  EXPECT_EQ(outcome(spec, "any"), "\"any\"");
  spec.oneOf = {"float32", "bfloat16"};
  EXPECT_EQ(outcome(spec, "bfloat16"), "\"bfloat16\"");
  EXPECT_EQ(outcome(spec, "bfloat61"),
            "found \"bfloat61\"; expected one of float32, bfloat16; did you mean \"bfloat16\"?");
  EXPECT_EQ(outcome(spec, 16), "found 16; expected one of float32, bfloat16");
}

TEST(ConvertParam, BooleansAreNotGuessed) {
  const ParamSpec spec = paramOf(ParamType::kBool);
  EXPECT_EQ(outcome(spec, false), "false");
  EXPECT_EQ(outcome(spec, "true"), "found \"true\"; expected true or false");
  EXPECT_EQ(outcome(spec, 1), "found 1; expected true or false");
}

TEST(ConvertParam, ListsAreCheckedItemByItemAndEmptyOnlyAsTheirDefault) {
  ParamSpec spec = paramOf(ParamType::kList);
  spec.itemType = ParamType::kQuantity;
  spec.unit = "B";
  EXPECT_EQ(outcome(spec, {"1 KiB", 2}), "[1024.0,2.0]");
  EXPECT_EQ(outcome(spec, {"1 KiB", true}), "found true; expected a quantity in B");
  EXPECT_EQ(outcome(spec, "1 KiB"), "found \"1 KiB\"; expected a list, each item a quantity in B");
  EXPECT_EQ(outcome(spec, Json::array()),
            "found []; expected a list, each item a quantity in B; it needs at least one item");
  spec.defaultValue = Json::array();
  EXPECT_EQ(outcome(spec, Json::array()), "[]");
}

}  // namespace
}  // namespace muster

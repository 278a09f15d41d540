// SPDX-License-Identifier: Apache-2.0
// Quantities as people write them, and back.
#include "runner/core/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace muster {
namespace {

struct Written {
  const char* text;
  double value;
  const char* unit;
};

class ReadsQuantity : public ::testing::TestWithParam<Written> {};

TEST_P(ReadsQuantity, InItsBaseUnit) {
  const auto quantity = parseQuantity(GetParam().text);
  ASSERT_TRUE(quantity.ok()) << quantity.error().text();
  EXPECT_DOUBLE_EQ(quantity->value, GetParam().value) << GetParam().text;
  EXPECT_EQ(quantity->unit, GetParam().unit) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Units, ReadsQuantity,
    ::testing::Values(Written{"650 TFLOP/s", 6.5e14, "FLOP/s"}, Written{"650TFLOPS", 6.5e14, "FLOP/s"},
                      Written{"1.2 PFLOP/s", 1.2e15, "FLOP/s"}, Written{"7 TOP/s", 7e12, "OP/s"},
                      Written{"1.5e3 GB/s", 1.5e12, "B/s"}, Written{"3.35 TB/s", 3.35e12, "B/s"},
                      Written{"400 Gb/s", 5e10, "B/s"}, Written{"2 GiB/s", 2147483648.0, "B/s"},
                      Written{"8 GiB", 8589934592.0, "B"}, Written{"8 GB", 8e9, "B"},
                      Written{"1 kB", 1000, "B"}, Written{"1 KiB", 1024, "B"},
                      Written{"2 TiB", 2199023255552.0, "B"}, Written{"1 PiB", 1125899906842624.0, "B"},
                      Written{"512 B", 512, "B"}));
INSTANTIATE_TEST_SUITE_P(Times, ReadsQuantity,
                         ::testing::Values(Written{"5m", 300, "s"}, Written{"5 min", 300, "s"},
                                           Written{"250ms", 0.25, "s"}, Written{"10 us", 1e-5, "s"},
                                           Written{"10 µs", 1e-5, "s"}, Written{"3ns", 3e-9, "s"},
                                           Written{"24h", 86400, "s"}, Written{"2d", 172800, "s"},
                                           Written{"1h30m", 5400, "s"}, Written{"1h 30m 5s", 5405, "s"},
                                           Written{"1.5h", 5400, "s"}, Written{"1m500ms", 60.5, "s"},
                                           Written{"-3s", -3, "s"}));
INSTANTIATE_TEST_SUITE_P(
    Others, ReadsQuantity,
    ::testing::Values(Written{"1980 MHz", 1.98e9, "Hz"}, Written{"700 W", 700, "W"},
                      Written{"10.2 kW", 10200, "W"}, Written{"500 mW", 0.5, "W"},
                      Written{"85 °C", 85, "degC"}, Written{"85 degC", 85, "degC"},
                      Written{"-5 degC", -5, "degC"}, Written{"3%", 0.03, "ratio"},
                      Written{"0.5 ratio", 0.5, "ratio"}, Written{"12 count", 12, "count"},
                      Written{"3 count/s", 3, "count/s"}, Written{"14 ksamples/s", 14000, "samples/s"},
                      Written{"true", 1, "bool"}, Written{"false", 0, "bool"}, Written{"7", 7, ""},
                      Written{" +7.5 ", 7.5, ""}, Written{"1e3", 1000, ""}));

class RefusesQuantity : public ::testing::TestWithParam<const char*> {};

TEST_P(RefusesQuantity, AndNamesTheText) {
  const auto quantity = parseQuantity(GetParam());
  ASSERT_FALSE(quantity.ok()) << GetParam() << " was read as " << quantity->value << " " << quantity->unit;
  EXPECT_EQ(quantity.error().code, ErrorCode::kUsage);
  EXPECT_EQ(quantity.error().message.find('"'), 0u) << quantity.error().message;
}

INSTANTIATE_TEST_SUITE_P(All, RefusesQuantity,
                         ::testing::Values("", "  ", "nan", "inf", "-inf", "NaN s", "1e999", "1e308 PB",
                                           "0x10", "five minutes", "5 parsecs", "8 GIB", "8 KB", "8 gb",
                                           "650 TFLOP", "5m5m", "30m1h", "1h-5m", "-1h30m", "1h30",
                                           "1h30m GB", "8 GiB 3", "8 GiB/s/s", "5 5", "1.2.3", "--5", "+-5",
                                           "%", "T", "1e308d", "5mm", "kB", "1 kkB", "3 kdegC", "5 km",
                                           "5 Mm", "\x1b[31m"));

TEST(ParseQuantity, NamesTheUnitsThatWouldFit) {
  EXPECT_EQ(parseQuantity("8 KB").error().message.find(
                "\"8 KB\" has an unknown unit \"KB\" (write kB for 1000 or KiB "
                "for 1024 bytes); expected one of: GFLOP/s"),
            0u);
}

TEST(ParseQuantity, HostileTextIsCutAndPrintable) {
  const auto message = parseQuantity("5 \x1b]" + std::string(100000, 'x')).error().message;
  EXPECT_LT(message.size(), 1000u);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST(ParseAs, TakesABareNumberInTheBaseUnit) {
  EXPECT_DOUBLE_EQ(*parseAs("7", "count"), 7);
  EXPECT_DOUBLE_EQ(*parseAs("0.03", "ratio"), 0.03);
  EXPECT_DOUBLE_EQ(*parseAs("3%", "ratio"), 0.03);
  EXPECT_DOUBLE_EQ(*parseAs("true", "bool"), 1);
  EXPECT_DOUBLE_EQ(*parseAs("8 GiB", "B"), 8589934592.0);
}

TEST(ParseAs, RefusesAnotherUnitAndSaysWhichFits) {
  EXPECT_EQ(parseAs("5 GiB", "B/s").error().message,
            "\"5 GiB\" is in B; expected B/s (MB/s, GB/s, TB/s, GiB/s, Gb/s)");
  EXPECT_FALSE(parseAs("5m", "B").ok());
  EXPECT_FALSE(parseAs("5", "text").ok());
  EXPECT_FALSE(parseAs("true", "count").ok());
}

TEST(ParseAs, NamesOnlyTheUnitsThatWouldDo) {
  EXPECT_EQ(parseAs("5 minuts", "s").error().message,
            "\"5 minuts\" has an unknown unit \"minuts\"; expected s (ns, us, ms, s, m, h, d)");
  EXPECT_EQ(parseAs("soon", "s").error().message,
            "\"soon\" does not start with a finite number; expected s (ns, us, ms, s, m, h, d)");
  EXPECT_EQ(
      parseAs("8 KB", "B").error().message,
      "\"8 KB\" has an unknown unit \"KB\" (write kB for 1000 or KiB for 1024 bytes); expected B (B, kB, MB, "
      "GB, KiB, MiB, GiB, TiB)");
  EXPECT_EQ(parseAs("1h30", "s").error().message, parseQuantity("1h30").error().message);
}

TEST(ParseDuration, MustBeFiniteAndNotNegative) {
  EXPECT_DOUBLE_EQ(*parseDuration("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(*parseDuration("0s"), 0);
  EXPECT_DOUBLE_EQ(*parseDuration("90"), 90);
  for (const char* bad : {"-1s", "5 GiB", "inf", "nan", "", "1e308d"})
    EXPECT_FALSE(parseDuration(bad).ok()) << bad;
}

TEST(BaseUnits, AreKnownByTheirExactName) {
  for (const char* unit : {"FLOP/s", "OP/s", "B/s", "B", "s", "Hz", "W", "degC", "ratio", "number", "count",
                           "bool", "count/s", "samples/s", "text"})
    EXPECT_TRUE(isBaseUnit(unit)) << unit;
  for (const char* unit : {"", "GB", "ms", "%", "flop/s", "°C"}) EXPECT_FALSE(isBaseUnit(unit)) << unit;
}

struct Shown {
  double value;
  const char* unit;
  const char* text;
};

class ShowsQuantity : public ::testing::TestWithParam<Shown> {};

TEST_P(ShowsQuantity, AsPeopleWriteIt) {
  EXPECT_EQ(formatQuantity(GetParam().value, GetParam().unit), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    All, ShowsQuantity,
    ::testing::Values(Shown{7.1e14, "FLOP/s", "710 TFLOP/s"}, Shown{7.1234567e14, "FLOP/s", "712.3 TFLOP/s"},
                      Shown{9.99999e11, "FLOP/s", "1 TFLOP/s"}, Shown{3.35e12, "B/s", "3.35 TB/s"},
                      Shown{8589934592.0, "B", "8 GiB"}, Shown{1000, "B", "1000 B"},
                      Shown{1536, "B", "1.5 KiB"}, Shown{0, "B/s", "0 B/s"}, Shown{-2e9, "B/s", "-2 GB/s"},
                      Shown{1.98e9, "Hz", "1.98 GHz"}, Shown{700, "W", "700 W"}, Shown{85, "degC", "85 °C"},
                      Shown{0.031, "ratio", "3.1%"}, Shown{1, "ratio", "100%"},
                      Shown{5.972, "number", "5.972"}, Shown{12345, "count", "12345"},
                      Shown{0.5, "count", "0.5"}, Shown{14000, "samples/s", "14000 samples/s"},
                      Shown{1, "bool", "true"}, Shown{0, "bool", "false"}, Shown{300, "s", "5m"},
                      Shown{5400, "s", "1h30m"}, Shown{86400, "s", "1d"}, Shown{59.99999, "s", "1m"},
                      Shown{1.5, "s", "1.5s"}, Shown{0.25, "s", "250ms"}, Shown{1e-5, "s", "10us"},
                      Shown{3e-9, "s", "3ns"}, Shown{0, "s", "0s"}, Shown{-90, "s", "-1m30s"},
                      Shown{std::numeric_limits<double>::quiet_NaN(), "s", "nan"},
                      Shown{-std::numeric_limits<double>::infinity(), "B", "-inf"}));

/// Every formatted figure must be readable again, as the same figure up to its digits.
void expectRoundTrip(double value, const std::string& unit) {
  const std::string text = formatQuantity(value, unit);
  const auto back = parseAs(text, unit);
  ASSERT_TRUE(back.ok()) << value << " " << unit << " -> " << text << ": " << back.error().text();
  EXPECT_NEAR(*back, value, std::fabs(value) * 1e-3) << unit << " -> " << text;
}

TEST(FormatQuantity, RoundTripsInEveryUnit) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-9, 18);
  for (const char* unit : {"FLOP/s", "OP/s", "B/s", "B", "s", "Hz", "W", "degC", "ratio", "number", "count",
                           "count/s", "samples/s"})
    for (int i = 0; i < 500; ++i) expectRoundTrip(std::pow(10, exponent(random)), unit);
}

TEST(FormatQuantity, SurvivesExtremes) {
  for (const char* unit : {"s", "B", "B/s", "ratio", "count"})
    for (const double value : {1e300, 5e-324, 1e15, 999999999.9})
      EXPECT_FALSE(formatQuantity(value, unit).empty());
  EXPECT_EQ(formatQuantity(1.0 / 3, "B/s", 100), formatQuantity(1.0 / 3, "B/s", 17));
  EXPECT_EQ(formatQuantity(123.4, "W", -5), "100 W");
}

}  // namespace
}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
#include "runner/record/fold/sample_pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runner/core/digits.h"

namespace muster {
namespace {

/// Packed, as text, and read again.
std::vector<double> again(const std::vector<double>& samples, int exponent) {
  const auto json = parseJson(dumpJson(packedSamples(samples, exponent)));
  EXPECT_TRUE(json.ok());
  auto back = unpackedSamples(*json, exponent, "samples");
  EXPECT_TRUE(back.ok()) << back.error().text();
  return back.ok() ? std::move(back).value() : std::vector<double>{};
}

bool sameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

TEST(SamplePack, WritesWholeNumbersInOneUnit) {
  std::vector<double> samples = {2.986557e12, 2.986106e12, 2.98e12};
  while (samples.size() < 30) samples.push_back(2.987736e12);
  const int exponent = commonExponent({&samples});
  EXPECT_EQ(exponent, 6);
  EXPECT_EQ(dumpJson(packedSamples({samples.begin(), samples.begin() + 3}, exponent)),
            "[2986557,2986106,2980000]");
  EXPECT_TRUE(sameBits(again(samples, exponent), samples));
}

TEST(SamplePack, GivesBackEverySampleOfEverySize) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(1, 10);
  for (int power = -40; power <= 40; ++power) {
    std::vector<double> samples;
    for (int i = 0; i < 50; ++i) samples.push_back(roundedTo(mantissa(random) * std::pow(10, power), 7));
    const int exponent = commonExponent({&samples});
    EXPECT_TRUE(sameBits(again(samples, exponent), samples)) << power;
    if ((power > -15 && power < -3) || (power > 8 && power < 15)) {
      EXPECT_NE(exponent, 0) << power;  // in between the plain text is as short
    }
  }
}

TEST(SamplePack, KeepsUnroundedOnesAsTheyAre) {
  std::vector<double> samples(40, 1.0 / 3);
  samples[3] = 2.0 / 7e-9;
  EXPECT_EQ(commonExponent({&samples}), 0);
  EXPECT_TRUE(sameBits(again(samples, 0), samples));
  const std::vector<double> odd = {5e-324, 1.7976931348623157e308, -0.0, 0.0, 1e22};
  EXPECT_TRUE(sameBits(again(odd, 0), odd));
}

TEST(SamplePack, KeepsWhatIsNotFinite) {
  std::vector<double> samples(40, 7.1e14);
  samples[1] = std::numeric_limits<double>::infinity();
  samples[2] = std::nan("");
  const int exponent = commonExponent({&samples});
  EXPECT_NE(exponent, 0);
  const auto back = again(samples, exponent);
  EXPECT_EQ(back[1], samples[1]);
  EXPECT_TRUE(std::isnan(back[2]));
  EXPECT_EQ(back[3], 7.1e14);
}

TEST(SamplePack, SaysOnceWhatIsAlwaysTheSame) {
  EXPECT_EQ(dumpJson(packedSamples(std::vector<double>(300, 0), 0)), R"({"n":300,"value":0})");
  EXPECT_EQ(again(std::vector<double>(300, 0), 0).size(), 300u);
  EXPECT_EQ(dumpJson(packedSamples({1, 1}, 0)), "[1,1]");
  EXPECT_TRUE(packedSamples({0.0, -0.0, 0.0}, 0).is_array()) << "minus zero is another number";
  EXPECT_TRUE(packedSamples(std::vector<double>(kMostPacked + 1, 0), 0).is_array());
}

TEST(SamplePack, RefusesWhatItDoesNotWrite) {
  for (const Json& bad :
       {Json{{"n", 0}, {"value", 1}}, Json{{"n", 1001}, {"value", 1}}, Json{{"n", -1}, {"value", 1}},
        Json{{"n", 3}}, Json{{"n", 3}, {"value", "x"}}, Json("many"), Json::array({"x"})})
    EXPECT_FALSE(unpackedSamples(bad, 0, "s").ok()) << dumpJson(bad);
  EXPECT_FALSE(unpackedSamples(Json::array({1}), 23, "s").ok());
  EXPECT_FALSE(unpackedSamples(Json::array({1}), -23, "s").ok());
}

}  // namespace
}  // namespace muster

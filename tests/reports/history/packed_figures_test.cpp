// SPDX-License-Identifier: Apache-2.0
// Figures packed and read back: nothing is rounded, and bytes from a damaged file are an error.
#include "reports/history/store/packed_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace muster::history {
namespace {

std::vector<double> valuesIn(const std::string& column, size_t count) {
  std::vector<double> out;
  const Status read = unpackValues(column, count, out);
  EXPECT_TRUE(read.ok()) << read.error().text();
  return out;
}

TEST(PackedFigures, GiveBackEveryEntry) {
  const std::vector<FigurePlace> places = {{7, 0}, {7, 1}, {3, -1}, {900'000'000'000, 200}, {1, 0}};
  const std::vector<FigureValues> values = {
      {0.5, 0, 1}, {-2, 0.25, 1}, {0, 0, 65535}, {7e14F, 0, 0}, {1, 2, 3}};
  const PackedFigures packed = packFigures(places, values);
  const auto read = unpackLayout(packed.layout, 201);
  ASSERT_TRUE(read.ok()) << read.error().text();
  ASSERT_EQ(read->size(), places.size());
  const auto counts = unpackCounts(packed.counts, places.size());
  ASSERT_TRUE(counts.ok()) << counts.error().text();
  const auto medians = valuesIn(packed.medians, places.size()), cvs = valuesIn(packed.cvs, places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ((*read)[i].key, places[i].key);
    EXPECT_EQ((*read)[i].device, places[i].device);
    EXPECT_EQ((*counts)[i], values[i].n);
    EXPECT_EQ(medians[i], values[i].median);
    EXPECT_EQ(cvs[i], values[i].cv);
  }
  EXPECT_EQ(packed.medians.size(), 4 * places.size());
}

TEST(PackedFigures, KeepAllDigitsOfADouble) {
  const PackedFigures packed = packFigures({{1, 0}, {2, 0}}, {{7e14, 0, 1}, {0.1, 0, 1}});
  EXPECT_EQ(valuesIn(packed.medians, 2), (std::vector<double>{7e14, 0.1}));
}

TEST(PackedFigures, OfNothingAreEmpty) {
  const PackedFigures packed = packFigures({}, {});
  EXPECT_TRUE(unpackLayout(packed.layout, 0)->empty());
  EXPECT_TRUE(unpackCounts(packed.counts, 0)->empty());
}

TEST(PackedFigures, RefuseWhatIsDamaged) {
  const PackedFigures packed = packFigures({{300, 0}, {301, 7}}, {{1, 0, 300}, {2, 0, 1}});
  EXPECT_FALSE(unpackLayout(packed.layout, 7).ok()) << "no device 7 among seven";
  EXPECT_FALSE(unpackLayout(packed.layout.substr(0, packed.layout.size() - 1), 8).ok());
  std::vector<double> out;
  EXPECT_FALSE(unpackValues(packed.medians.substr(1), 2, out).ok());
  EXPECT_FALSE(unpackValues(packed.medians, 3, out).ok());
  EXPECT_FALSE(unpackCounts(packed.counts, 1).ok());
  EXPECT_FALSE(unpackCounts(packed.counts, 3).ok());
  EXPECT_FALSE(unpackCounts("\xff\xff\xff", 3).ok());
  EXPECT_FALSE(unpackCounts(std::string(20, '\xff'), 3).ok());
}

TEST(PackedFigures, EndOnAnyBytes) {
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const auto places = unpackLayout(bytes, 4);
    for (const FigurePlace& place : places.ok() ? *places : std::vector<FigurePlace>())
      EXPECT_LT(place.device, 4);
    const auto counts = unpackCounts(bytes, 10);
    EXPECT_TRUE(!counts.ok() || counts->size() == 10u);
  }
}

}  // namespace
}  // namespace muster::history

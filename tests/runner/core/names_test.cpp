// SPDX-License-Identifier: Apache-2.0
// The names of enumerations: back and forth, and what a name that is none of them is told.
#include "runner/core/names.h"

#include <gtest/gtest.h>

#include "runner/core/json.h"

namespace muster {
namespace {

enum class Colour { kRed, kDarkGreen };
constexpr std::array<const char*, 2> namesOf(Colour) {
  return {"red", "dark green"};
}

TEST(Names, GoBackAndForth) {
  for (const Colour colour : {Colour::kRed, Colour::kDarkGreen})
    EXPECT_EQ(fromName<Colour>(nameOf(colour)), colour);
  for (const char* none : {"", "re", "redd", "Red", "dark"})
    EXPECT_EQ(fromName<Colour>(none), std::nullopt) << none;
  EXPECT_EQ(noneOf<Colour>("bl\nue"), R"("bl\nue" is none of red, dark green)");
}

TEST(Names, AreReadFromJsonOrRefusedByTheirPath) {
  Colour colour = Colour::kRed;
  const Json good = {{"colour", "dark green"}};
  JsonReader reader(good, "paint");
  reader.read("colour", colour);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(colour, Colour::kDarkGreen);
  for (const Json& bad : {Json{{"colour", "blue"}}, Json{{"colour", 1}}, Json::object()}) {
    JsonReader refusing(bad, "paint");
    refusing.read("colour", colour);
    ASSERT_FALSE(refusing.ok()) << bad;
    EXPECT_EQ(refusing.status().error().where, "paint.colour");
    EXPECT_EQ(colour, Colour::kDarkGreen) << "what cannot be read changes nothing";
  }
}

}  // namespace
}  // namespace muster

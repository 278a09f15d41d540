// SPDX-License-Identifier: Apache-2.0
// The largest of values of ranks that are threads: one of them changes what it sends, or what it receives.
#include "kernels/checks/largest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Damage = std::function<double(double)>;

constexpr size_t kCallers = 3;
constexpr size_t kSick = 1;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNoNumbers[] = {kInfinite, -kInfinite, std::numeric_limits<double>::quiet_NaN()};

Damage stuck(int bit, bool high) {
  return [bit, high](double value) {
    const uint64_t mask = 1ull << bit, bits = std::bit_cast<uint64_t>(value);
    return std::bit_cast<double>(high ? bits | mask : bits & ~mask);
  };
}

struct Said {
  std::vector<double> values;
  std::string error;
  int exchanges = 0;
};

/// What each rank gets of `values`, a row for each. `sending`: what becomes of all that rank kSick sends;
/// `receiving`: of all that it gets. `nanWins`: over what a rank has; else it is lost.
std::vector<Said> askAll(const std::vector<std::vector<double>>& values, const Damage& sending = nullptr,
                         const Damage& receiving = nullptr, bool nanWins = false) {
  std::vector<Said> said(kCallers);
  std::vector<std::vector<double>> sent(kCallers);
  std::barrier<> all(kCallers);
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < kCallers; ++rank)
    ranks.emplace_back([&, rank] {
      const auto maximum = [&](std::span<double> own) -> Status {
        ++said[rank].exchanges;
        sent[rank].assign(own.begin(), own.end());
        all.arrive_and_wait();
        for (size_t i = 0; i < own.size(); ++i)
          for (size_t from = 0; from < kCallers; ++from) {
            if (from == rank) continue;
            double value = sent[from][i];
            if (sending && from == kSick) value = sending(value);
            if (receiving && rank == kSick) value = receiving(value);
            own[i] = std::isnan(value) && nanWins ? value : std::max(own[i], value);
          }
        all.arrive_and_wait();
        return {};
      };
      auto largest = largestOverRanks(values[rank], maximum);
      if (largest.ok())
        said[rank].values = *largest;
      else
        said[rank].error = largest.error().text();
    });
  for (std::thread& rank : ranks) rank.join();
  return said;
}

TEST(Largest, IsOneOfTheValues) {
  const auto said = askAll(
      {{1, -3, 0, -0x1p1000, 8589934591.0}, {2, -2, 0, -0x1p1000, 7}, {0.5, -5, 0, -0x1p1000, 8589934590.0}});
  for (const Said& one : said) {
    EXPECT_EQ(one.error, "");
    EXPECT_THAT(one.values, ElementsAre(2, -2, 0, -0x1p1000, 8589934591.0)) << "exact";
  }
}

TEST(Largest, KeepsTimesWellEnough) {
  std::mt19937_64 random(1);
  std::vector<std::vector<double>> values(kCallers, std::vector<double>(1000));
  std::vector<double> largest(1000);
  for (size_t i = 0; i < largest.size(); ++i)
    for (auto& row : values) {
      row[i] = std::ldexp(static_cast<double>(random() >> 11), -60 - static_cast<int>(i % 20));
      largest[i] = std::max(largest[i], row[i]);
    }
  for (const Said& one : askAll(values)) {
    ASSERT_EQ(one.error, "");
    for (size_t i = 0; i < largest.size(); ++i) ASSERT_NEAR(one.values[i], largest[i], largest[i] * 0x1p-32);
  }
}

/// What a maximum makes of NaN depends on the order: it may be lost, on some ranks or on all.
TEST(Largest, IsNeverWhatAnotherRankTellsThatIsNoNumber) {
  const std::vector<std::vector<double>> values = {{3, 1}, {2, 2}, {1, 3}};
  for (const double bad : kNoNumbers)
    for (const bool nanWins : {false, true})
      for (const bool sends : {false, true}) {
        SCOPED_TRACE(std::to_string(bad) + (nanWins ? ", wins" : "") + (sends ? ", sender" : ", receiver"));
        const Damage damage = [bad](double) { return bad; };
        const auto said = askAll(values, sends ? damage : nullptr, sends ? nullptr : damage, nanWins);
        for (const Said& one : said) {
          EXPECT_EQ(one.exchanges, 2);
          if (one.error.empty())
            for (const double value : one.values) EXPECT_THAT(value, AnyOf(1.0, 2.0, 3.0));
          else
            EXPECT_THAT(one.error, HasSubstr("from a rank that cannot be told"));
        }
        const bool wins = bad > 0 || (std::isnan(bad) && nanWins);
        for (const Said& one : said) EXPECT_EQ(one.error.empty(), !wins) << "all ranks end alike";
      }
}

TEST(Largest, ARankWhoseOwnValueIsNoNumberNamesItself) {
  for (const double bad : kNoNumbers) {
    int exchanges = 0;
    const auto largest = largestOverRanks({1, bad}, [&](std::span<double>) -> Status {
      ++exchanges;
      return {};
    });
    ASSERT_FALSE(largest.ok()) << bad;
    EXPECT_THAT(largest.error().text(),
                AllOf(HasSubstr("a value of this rank is"), Not(HasSubstr("from a rank"))));
    EXPECT_EQ(exchanges, 0);
  }
}

TEST(Largest, OfNothingNeedsNoExchange) {
  for (const Said& one : askAll({{}, {}, {}})) EXPECT_EQ(one.exchanges, 0) << one.error;
}

/// All ranks end alike, after as many exchanges: none waits for the others in vain. What they take is what
/// one of them put in.
TEST(Largest, IsNotTakenFromARankThatChangesWhatItSendsOrReceives) {
  const std::vector<std::vector<double>> values = {
      {0.1, 0.7, 3, 0, 0.25}, {0.3, 0.2, 5, 0, 0.125}, {0.2, 0.4, 4, 0, 0.5}};
  int refused = 0;
  for (int bit = 0; bit < 64; ++bit)
    for (const bool high : {false, true})
      for (const bool sends : {false, true}) {
        SCOPED_TRACE("bit " + std::to_string(bit) + (high ? " stuck at 1" : " stuck at 0") +
                     (sends ? ", sender" : ", receiver"));
        const Damage damage = stuck(bit, high);
        const auto said = askAll(values, sends ? damage : nullptr, sends ? nullptr : damage);
        for (const Said& one : said) {
          EXPECT_EQ(one.exchanges, 2);
          if (one.error.empty()) {
            for (size_t i = 0; i < values[0].size(); ++i)
              EXPECT_THAT(one.values[i], AnyOf(DoubleNear(values[0][i], 1e-9), DoubleNear(values[1][i], 1e-9),
                                               DoubleNear(values[2][i], 1e-9)));
          } else {
            EXPECT_THAT(one.error, HasSubstr("do not arrive as they were sent"));
          }
        }
        refused += said[0].error.empty() ? 0 : 1;
        EXPECT_EQ(said[0].error.empty(), said[2].error.empty()) << "those that are well do the same";
      }
  EXPECT_GT(refused, 150);
}

TEST(Largest, SaysWhereTheDamageWasSeen) {
  const auto said = askAll({{0.5}, {0.1}, {0.2}}, nullptr, stuck(40, true));
  EXPECT_THAT(said[kSick].error, HasSubstr("arrived damaged here"));
  EXPECT_THAT(said[0].error, HasSubstr("damaged at another rank"));
}

}  // namespace
}  // namespace muster

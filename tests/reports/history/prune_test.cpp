// SPDX-License-Identifier: Apache-2.0
// Thinning a history: which runs the rule keeps, and that removing them is safe at any moment.
#include "reports/history/prune.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "tests/reports/history/history_test.h"

namespace muster::history {
namespace {

using ::testing::HasSubstr;

constexpr double kDay = 86400;
constexpr double kNow = 1000 * kDay;

/// A run each day, the last today; `acceptance(age in days)`.
template <typename F>
std::vector<RunSummary> daily(int days, F acceptance, const std::string& node = "n17",
                              bool simulated = false) {
  std::vector<RunSummary> runs;
  for (int age = days - 1; age >= 0; --age)
    runs.push_back({days - age, node, kNow - age * kDay - 1, simulated, acceptance(age)});
  return runs;
}

Acceptance accepted(int) {
  return Acceptance::kAccepted;
}

size_t keptFor(const PrunePlan& plan, KeptFor reason) {
  return plan.kept[static_cast<size_t>(reason)];
}

std::vector<RunSummary> without(const std::vector<RunSummary>& runs, const std::vector<int64_t>& removed) {
  const std::set<int64_t> gone(removed.begin(), removed.end());
  std::vector<RunSummary> left;
  for (const RunSummary& run : runs)
    if (gone.count(run.number) == 0) left.push_back(run);
  return left;
}

TEST(Prune, KeepsYoungRunsAndOnePerSpanOfOldOnes) {
  const auto runs = daily(370, accepted);
  const PrunePlan plan = planPrune(runs, {90, 20, 7}, kNow);
  EXPECT_EQ(plan.runs, 370u);
  EXPECT_EQ(plan.nodes, 1u);
  EXPECT_EQ(keptFor(plan, KeptFor::kYoung), 90u);
  EXPECT_EQ(keptFor(plan, KeptFor::kNewest), 0u);
  EXPECT_NEAR(static_cast<double>(keptFor(plan, KeptFor::kSpan)), 280.0 / 7, 1);
  EXPECT_EQ(plan.remove.size(), plan.runs - 90 - keptFor(plan, KeptFor::kSpan));
  EXPECT_TRUE(planPrune(without(runs, plan.remove), {90, 20, 7}, kNow).remove.empty())
      << "applied again it removes nothing";
}

TEST(Prune, KeepsTheNewestRunsOfANodeThatIsSeldomTested) {
  const auto runs = daily(500, accepted);
  const PrunePlan plan = planPrune(runs, {90, 20, 1e6}, kNow + 300 * kDay);
  EXPECT_EQ(keptFor(plan, KeptFor::kNewest), 20u);
  EXPECT_EQ(plan.remove.size(), 480u);
  EXPECT_EQ(plan.remove.back(), 480) << "the oldest go";
}

TEST(Prune, KeepsTheLastAcceptance) {
  const auto runs =
      daily(300, [](int age) { return age > 200 ? Acceptance::kAccepted : Acceptance::kRejected; });
  const PrunePlan plan = planPrune(runs, {10, 5, 1e6}, kNow);
  EXPECT_EQ(keptFor(plan, KeptFor::kAcceptance), 1u);
  const auto left = without(runs, plan.remove);
  EXPECT_EQ(left.front().acceptance, Acceptance::kAccepted);
  EXPECT_EQ(left.front().started, kNow - 201 * kDay - 1);
}

TEST(Prune, KeepsARejectionBesideTheAcceptancesOfItsSpan) {
  const auto runs =
      daily(300, [](int age) { return age == 150 ? Acceptance::kRejected : Acceptance::kAccepted; });
  const auto left = without(runs, planPrune(runs, {10, 5, 30}, kNow).remove);
  EXPECT_EQ(std::count_if(left.begin(), left.end(),
                          [](const auto& run) { return run.acceptance == Acceptance::kRejected; }),
            1);
}

TEST(Prune, LooksAtEachNodeAndAtSimulationsApart) {
  auto runs = daily(100, accepted);
  for (RunSummary run : daily(100, accepted, "n18")) runs.push_back((run.number += 100, run));
  for (RunSummary run : daily(100, accepted, "n18", true)) runs.push_back((run.number += 200, run));
  const PrunePlan plan = planPrune(runs, {0, 3, 1e6}, kNow + 1e6 * kDay);
  EXPECT_EQ(plan.nodes, 2u);
  EXPECT_EQ(keptFor(plan, KeptFor::kNewest), 9u);
}

/// SQLite gives the largest number plus one to the next run.
TEST(Prune, KeepsTheRunThatWasAddedLastHoweverOldItIs) {
  auto runs = daily(100, accepted);
  runs.push_back({101, "n17", 0, false, Acceptance::kRejected});
  runs.push_back({100'000, "n17", 3 * kDay, false, Acceptance::kRejected});
  runs.push_back({99'999, "n17", 4 * kDay, false, Acceptance::kRejected});
  const PrunePlan plan = planPrune(runs, {1, 1, 1e6}, kNow);
  EXPECT_EQ(std::count(plan.remove.begin(), plan.remove.end(), 100'000), 0);
}

class HistoryPrune : public HistoryTest {
 protected:
  static size_t count(Store& store, const std::string& table) {
    auto statement = store.database().prepare("SELECT count(*) FROM " + table);
    return *statement->row() ? static_cast<size_t>(statement->integer(0)) : 0;
  }
  static std::vector<int64_t> upTo(int64_t last) {
    std::vector<int64_t> numbers;
    for (int64_t i = 1; i <= last; ++i) numbers.push_back(i);
    return numbers;
  }
};

TEST_F(HistoryPrune, RemovesRunsWhollyAndKnowsThemStill) {
  Store store = open();
  for (int day = 1; day <= 50; ++day) add(store, node(day));
  size_t told = 0;
  ASSERT_TRUE(store.remove(upTo(40), [&](size_t done) { told = done; }).ok());
  EXPECT_EQ(told, 40u);
  EXPECT_EQ(store.runs({})->size(), 10u);
  EXPECT_EQ(store.runs({})->front().number, 41);
  for (const char* table : {"run", "figures", "device", "deviation"})
    EXPECT_EQ(count(store, table), 10u) << table;
  EXPECT_EQ(count(store, "fact"), 20u);
  EXPECT_FALSE(add(store, node(7))) << "it is not brought back";
  EXPECT_TRUE(add(store, node(99)));
  EXPECT_EQ(valuesOf(store).size(), 11u);
  const uint64_t before = *store.size();
  ASSERT_TRUE(store.compact().ok());
  EXPECT_LT(*store.size(), before);
  EXPECT_EQ(valuesOf(store).size(), 11u);
}

TEST_F(HistoryPrune, KeepsParametersOnceAndDropsThoseThatNoRunHas) {
  Store store = open();
  for (int day = 1; day <= 10; ++day) {
    fleet::NodeSummary run = node(day);
    run.facts.push_back({-1, names_.text("stage gemm: duration"), names_.text(day < 8 ? "30" : "60")});
    add(store, run);
  }
  EXPECT_EQ(count(store, "parameters"), 2u);
  const auto facts = store.facts(*store.find("9"));
  ASSERT_TRUE(facts.ok() && !facts->empty());
  EXPECT_EQ(facts->back().name + " " + facts->back().value, "stage gemm: duration 60");
  ASSERT_TRUE(store.remove(upTo(7), [](size_t) {}).ok());
  EXPECT_EQ(count(store, "parameters"), 1u);
  EXPECT_EQ(count(store, "run_parameters"), 3u);
  EXPECT_EQ(store.facts(*store.find("9"))->size(), facts->size());
}

TEST_F(HistoryPrune, DropsLayoutsThatNoRunHas) {
  Store store = open();
  add(store, node(1));
  auto other = node(2);
  other.figures.push_back(other.figures.front());
  add(store, other);
  EXPECT_EQ(count(store, "layout"), 2u);
  ASSERT_TRUE(store.remove({2}, [](size_t) {}).ok());
  EXPECT_EQ(count(store, "layout"), 1u);
}

/// Killed at any moment, each run is there with all it had, or gone; a second prune finishes.
TEST_F(HistoryPrune, IsSafeWhenKilled) {
  constexpr int kRuns = 900;
  Store store = open();
  ASSERT_TRUE(store.database().execute("PRAGMA synchronous = OFF").ok());
  for (int day = 1; day <= kRuns; ++day) add(store, node(day));
  size_t seen = kRuns;
  for (int attempt = 0; attempt < 4; ++attempt) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto own = Store::open(file(), Access::kWrite);
      const Status removed = own->remove(upTo(kRuns - 10), [&](size_t) {
        if (write(ends[1], "x", 1) != 1) _exit(1);
      });
      _exit(removed.ok() ? 0 : 1);
    }
    char byte;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);  // the next transaction is at work, or about to be
    usleep(static_cast<useconds_t>(500 * attempt));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    Store again = open();
    const size_t runs = count(again, "run");
    EXPECT_LE(runs, seen);
    EXPECT_EQ(count(again, "figures"), runs);
    EXPECT_EQ(count(again, "device"), runs);
    EXPECT_EQ(count(again, "fact"), 2 * runs);
    EXPECT_EQ(count(again, "pruned"), kRuns - runs);
    seen = runs;
  }
  Store last = open();
  ASSERT_TRUE(last.remove(upTo(kRuns - 10), [](size_t) {}).ok());
  EXPECT_EQ(count(last, "run"), 10u);
  EXPECT_EQ(valuesOf(last).size(), 10u);
}

}  // namespace
}  // namespace muster::history

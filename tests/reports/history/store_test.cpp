// SPDX-License-Identifier: Apache-2.0
// The history's file: runs come back, the same one is kept once, and what is damaged or foreign is left as it
// is.
#include "reports/history/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/system/files.h"
#include "tests/reports/history/history_test.h"

namespace muster::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HistoryStore : public HistoryTest {};

TEST_F(HistoryStore, GivesBackWhatWasKept) {
  {
    Store store = open();
    EXPECT_TRUE(add(store, node(3)));
  }
  Store store = open(Access::kRead);
  const auto run = store.find("1");
  ASSERT_TRUE(run.ok()) << run.error().text();
  EXPECT_EQ(run->node, "n17");
  EXPECT_EQ(run->acceptance, Acceptance::kAccepted);
  const auto points = store.pointsOf(*run);
  ASSERT_TRUE(points.ok() && points->size() == 1);
  EXPECT_EQ(points->front().device.serial, "S0");
  EXPECT_EQ(points->front().figure.labels, "dtype=bf16");
  EXPECT_EQ(points->front().figure.direction, Direction::kHigher);
  EXPECT_EQ(points->front().n, 5);
  EXPECT_FLOAT_EQ(static_cast<float>(points->front().cv), 0.001F);
  EXPECT_FLOAT_EQ(static_cast<float>(points->front().median), 7e14F);
  ASSERT_EQ(store.facts(*run)->size(), 2u) << "the driver, and the device's serial";
  EXPECT_EQ(store.deviations(*run)->front().outcome, "warn");
}

/// A figure's long name many times: ten megabytes could become all memory.
TEST_F(HistoryStore, BoundsWhatTheFiguresOfARunTake) {
  fleet::NodeSummary summary = node(3);
  fleet::FigureKey key;
  key.stage = "gemm";
  key.caseId = std::string(100'000, 'x');
  key.metric = "compute.gemm_throughput";
  summary.figures.front().key = names_.figures.number("long", [&] { return key; });
  summary.figures.resize(3000, summary.figures.front());
  Store store = open();
  ASSERT_TRUE(add(store, summary));
  const auto points = store.pointsOf(*store.find("1"));
  ASSERT_FALSE(points.ok());
  EXPECT_THAT(points.error().text(), HasSubstr("take more than 256 MiB"));
}

TEST_F(HistoryStore, KeepsTheSameRecordOnce) {
  Store store = open();
  EXPECT_TRUE(add(store, node(3)));
  EXPECT_FALSE(add(store, node(3)));
  EXPECT_TRUE(add(store, node(4)));
  EXPECT_EQ(store.runs({})->size(), 2u);
  EXPECT_EQ(valuesOf(store).size(), 2u);
}

TEST_F(HistoryStore, OrdersByTimeAndSelects) {
  Store store = open();
  for (const int day : {5, 3, 4}) add(store, node(day));
  add(store, node(9, Acceptance::kRejected, "n18"));
  const auto newest = store.runs({"n17", 2});
  ASSERT_EQ(newest->size(), 2u);
  EXPECT_EQ(newest->front().started, 4 * 86400.0);
  EXPECT_EQ(valuesOf(store, {"n18", 0}).size(), 1u);
  EXPECT_EQ(store.runs({"n19", 0})->size(), 0u);
}

TEST_F(HistoryStore, KeepsFleetsOnceAndFindsTheLastAcceptedOne) {
  Store store = open();
  KeptFleet fleet;
  fleet.folder = "/runs/first";
  fleet.sha256 = "a";
  fleet.acceptance = Acceptance::kAccepted;
  fleet.plan = "node-full";
  fleet.finished = 100;
  fleet.nodes = {{"n17", fleet::NodeState::kAccepted, "", {}}, {"n18", fleet::NodeState::kAccepted, "", {}}};
  EXPECT_TRUE(*store.addFleet(fleet, 1));
  EXPECT_FALSE(*store.addFleet(fleet, 2));
  fleet.sha256 = "b";
  fleet.folder = "/runs/rejected";
  fleet.acceptance = Acceptance::kRejected;
  fleet.finished = 300;
  EXPECT_TRUE(*store.addFleet(fleet, 3));
  fleet.sha256 = "c";
  fleet.folder = "/runs/second";
  fleet.acceptance = Acceptance::kAccepted;
  fleet.finished = 200;
  fleet.nodes.pop_back();
  EXPECT_TRUE(*store.addFleet(fleet, 4));
  ASSERT_EQ(store.fleets()->size(), 3u);
  EXPECT_EQ(store.fleets()->front().nodes.size(), 2u);
  fleet.sha256 = "d";
  fleet.folder = "/runs/simulated";
  fleet.simulated = true;
  fleet.finished = 400;
  EXPECT_TRUE(*store.addFleet(fleet, 5));
  EXPECT_EQ(store.lastAcceptedFleet("n17", false)->folder, "/runs/second")
      << "a simulation accepts no hardware";
  EXPECT_EQ(store.lastAcceptedFleet("n17", true)->folder, "/runs/simulated");
  EXPECT_EQ(store.lastAcceptedFleet("n18", false)->folder, "/runs/first");
  EXPECT_THAT(store.lastAcceptedFleet("n99", false).error().text(),
              HasSubstr("no accepted fleet with node n99"));
}

TEST_F(HistoryStore, FindsEarlierAcceptances) {
  Store store = open();
  add(store, node(1));
  add(store, node(2, Acceptance::kRejected));
  add(store, node(3));
  const auto numbers = [&](const char* name, double before, bool simulated) {
    std::vector<int64_t> found;
    const auto runs = store.acceptedBefore(name, before, simulated);
    for (const auto& run : *runs) found.push_back(run.number);
    return found;
  };
  EXPECT_THAT(numbers("n17", 4 * 86400.0, false), ElementsAre(3, 1));
  EXPECT_THAT(numbers("n17", 3 * 86400.0, false), ElementsAre(1));
  EXPECT_THAT(numbers("n17", 1 * 86400.0, false), ElementsAre());
  EXPECT_THAT(numbers("n17", 4 * 86400.0, true), ElementsAre()) << "a simulated acceptance is another thing";
  EXPECT_THAT(numbers("n99", 1e9, false), ElementsAre());
}

TEST_F(HistoryStore, TellsWhichFiguresARunHasByItsLayout) {
  Store store = open();
  add(store, node(1));
  add(store, node(2));
  fleet::NodeSummary none = node(3);
  none.figures.clear();
  add(store, none);
  const auto layout = [&](const char* run) { return *store.layoutOf(*store.find(run)); };
  EXPECT_NE(layout("1"), 0);
  EXPECT_EQ(layout("1"), layout("2"));
  const auto points = store.pointsOf(*store.find("1"));
  EXPECT_THAT(*store.figuresIn(layout("1")), ElementsAre(points->front().figure.number));
  EXPECT_TRUE(store.figuresIn(layout("3"))->empty());
}

TEST_F(HistoryStore, FindsARunByItsIdOnlyIfItIsOne) {
  Store store = open();
  add(store, node(1));
  add(store, node(2));
  EXPECT_EQ(store.find("#2")->number, 2);
  EXPECT_EQ(store.find("n17-run-of-day-2")->number, 2);
  EXPECT_THAT(store.find("n17-run").error().message, HasSubstr("several runs"));
  EXPECT_THAT(store.find("77").error().message, HasSubstr("history list"));
  EXPECT_FALSE(store.find("%").ok());
}

TEST_F(HistoryStore, IsNotThereBeforeTheFirstRun) {
  EXPECT_THAT(errorOf(Access::kRead), HasSubstr("history add"));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(HistoryStore, LeavesADamagedFileAsItIs) {
  const std::string junk(8192, 'x');
  dir_.write("state/history.sqlite", junk);
  for (const Access access : {Access::kRead, Access::kWrite}) EXPECT_THAT(errorOf(access), HasSubstr("--db"));
  EXPECT_EQ(readFile(file()).value(), junk);
}

TEST_F(HistoryStore, SaysWhatIsDamagedInside) {
  {
    Store store = open();
    for (int day = 0; day < 120; ++day) add(store, node(day));
  }
  std::string text = readFile(file()).value();
  ASSERT_GT(text.size(), 20000u);
  for (size_t at = 8192; at < text.size(); ++at) text[at] = static_cast<char>(0xa5);
  dir_.write("state/history.sqlite", text);
  auto store = Store::open(file(), Access::kWrite);
  std::string error = store.ok() ? "" : store.error().text();
  if (store.ok()) {
    const auto added = store->add(node(500), names_, 1);
    ASSERT_FALSE(added.ok());
    error = added.error().text();
  }
  EXPECT_THAT(error, HasSubstr("damaged"));
}

TEST_F(HistoryStore, RefusesADatabaseOfAnotherProgram) {
  std::filesystem::create_directories(file().parent_path());
  {
    auto database = Database::open(file(), Access::kWrite);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->execute("CREATE TABLE bookmarks (url TEXT)").ok());
  }
  EXPECT_THAT(errorOf(Access::kWrite), HasSubstr("not a Muster history"));
  EXPECT_THAT(errorOf(Access::kRead), HasSubstr("not a Muster history"));
}

TEST_F(HistoryStore, RefusesOneOfANewerMuster) {
  open();
  {
    auto database = Database::open(file(), Access::kWrite);
    ASSERT_TRUE(database->execute("PRAGMA user_version = 99").ok());
  }
  EXPECT_THAT(errorOf(Access::kWrite), HasSubstr("version 99"));
}

TEST_F(HistoryStore, UndoesWhatWasNotFinished) {
  Store store = open();
  auto database = Database::open(file(), Access::kWrite);
  ASSERT_TRUE(database.ok());
  {
    auto transaction = Transaction::begin(*database);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE(database->execute("DELETE FROM figure_key; CREATE TABLE half (a)").ok());
  }
  auto half = database->prepare("SELECT count(*) FROM half");
  EXPECT_FALSE(half.ok());
  EXPECT_TRUE(add(store, node(1)));
}

TEST_F(HistoryStore, TakesTwoWritersAtOnce) {
  constexpr int kWriters = 3, kRuns = 25;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Each makes the file or finds it made, and one record is everybody's.
      auto store = Store::open(file(), Access::kWrite);
      bool good = store.ok();
      for (int i = 0; good && i < kRuns; ++i)
        good = store->add(node(i == 0 ? 7777 : writer * 100 + i), names_, 1).ok();
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  Store store = open(Access::kRead);
  EXPECT_EQ(store.runs({})->size(), static_cast<size_t>(kWriters * (kRuns - 1) + 1));
}

}  // namespace
}  // namespace muster::history

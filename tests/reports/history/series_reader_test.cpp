// SPDX-License-Identifier: Apache-2.0
// Series come figure by figure, follow parts into other nodes, and are the same in one pass and in many.
#include "reports/history/series_reader.h"

#include <gmock/gmock.h>

#include <ctime>
#include <map>

#include "tests/reports/history/history_test.h"

namespace muster::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HistorySeries : public HistoryTest {
 protected:
  /// Two figures of each of four GPUs, and one of the node.
  fleet::NodeSummary wide(int day, const std::string& name, const std::string& serials) {
    fleet::NodeSummary summary = node(day, Acceptance::kAccepted, name);
    summary.devices.clear();
    summary.figures.clear();
    for (int16_t gpu = 0; gpu < 4; ++gpu) {
      const std::string id = "gpu" + std::to_string(gpu);
      summary.devices.push_back({id, "gpu", "H100", "", serials.substr(static_cast<size_t>(gpu), 1), ""});
      for (const char* metric : {"a", "b"})
        addFigure(summary, metric, gpu, static_cast<float>(day * 10 + gpu));
    }
    addFigure(summary, "node", -1, static_cast<float>(day));
    return summary;
  }
  void addFigure(fleet::NodeSummary& summary, const std::string& metric, int16_t device, float value) {
    fleet::FigureKey key;
    key.metric = metric;
    summary.figures.push_back({names_.figures.number(metric, [&] { return key; }), device, 1, value, 0});
  }
  /// "a n17 gpu0 A" and its values, of all series that are given.
  static std::map<std::string, std::vector<double>> read(Store& store, const Selection& selection = {},
                                                         size_t mostReadings = SeriesReader::kMostReadings) {
    std::map<std::string, std::vector<double>> found;
    auto reader = SeriesReader::open(store, selection, 0, mostReadings);
    EXPECT_TRUE(reader.ok());
    const Status done = reader->each([&](const std::vector<Series>& figure) {
      for (const Series& one : figure)
        found[one.figure->metric + " " + one.node() + " " + one.device() + " " + one.serial] = one.values;
    });
    EXPECT_TRUE(done.ok()) << done.error().text();
    return found;
  }
};

TEST_F(HistorySeries, GivesEachFigureOfEachPartByTime) {
  Store store = open();
  for (const int day : {3, 1, 2}) add(store, wide(day, "n17", "ABCD"));
  const auto found = read(store);
  EXPECT_EQ(found.size(), 9u);
  EXPECT_THAT(found.at("a n17 gpu0 A"), ElementsAre(10, 20, 30));
  EXPECT_THAT(found.at("b n17 gpu3 D"), ElementsAre(13, 23, 33));
  EXPECT_THAT(found.at("node n17  "), ElementsAre(1, 2, 3));
}

TEST_F(HistorySeries, AreTheSameInManyPasses) {
  Store store = open();
  for (int day = 1; day < 9; ++day) {
    add(store, wide(day, "n17", "ABCD"));
    add(store, wide(day, "n18", day < 5 ? "EFGH" : "EFGA"));  // a part that both had: they are read together
  }
  const auto whole = read(store);
  EXPECT_EQ(whole.size(), 9u + 9u);
  EXPECT_EQ(read(store, {}, 1), whole);
  EXPECT_EQ(read(store, {}, 60), whole);
}

TEST_F(HistorySeries, TellsSerialsThatTwoDevicesHaveFromParts) {
  Store store = open();
  for (int day = 1; day < 3; ++day) {
    add(store, wide(day, "n17", "0BC0"));
    add(store, wide(day, "n18", "0FG0"));
  }
  const auto found = read(store);
  EXPECT_EQ(found.count("a n17 gpu0 "), 1u);
  EXPECT_EQ(found.count("a n18 gpu3 "), 1u);
  EXPECT_EQ(found.count("a n17 gpu1 B"), 1u);
}

TEST_F(HistorySeries, FollowsTheNodesPartsIntoOtherNodes) {
  Store store = open();
  add(store, node(1));
  add(store, node(2));
  add(store, node(3, Acceptance::kAccepted, "n18"));  // the same part, S0
  auto other = node(4, Acceptance::kAccepted, "n18");
  other.devices[0].serial = "T0";
  add(store, other);
  auto reader = SeriesReader::open(store, {"n17", 0});
  ASSERT_TRUE(reader.ok());
  size_t figures = 0;
  const Status read = reader->each([&](const std::vector<Series>& figure) {
    ++figures;
    ASSERT_EQ(figure.size(), 1u);
    EXPECT_EQ(figure.front().values.size(), 3u);
    EXPECT_EQ(figure.front().node(), "n18");
    EXPECT_EQ(figure.front().serial, "S0");
  });
  EXPECT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(figures, 1u);
  EXPECT_EQ(valuesOf(store, {"n17", 1}).size(), 2u) << "its newest run, and where its part went then";
  EXPECT_EQ(valuesOf(store, {"n18", 0}).size(), 2u) << "not what its part did before it came";
}

TEST_F(HistorySeries, LeavesOneRunOut) {
  Store store = open();
  add(store, node(1));
  add(store, node(2));
  auto reader = SeriesReader::open(store, {"n17"}, 2);
  ASSERT_TRUE(reader.ok());
  size_t values = 0;
  ASSERT_TRUE(reader->each([&](const auto& figure) { values += figure.front().values.size(); }).ok());
  EXPECT_EQ(values, 1u);
}

TEST_F(HistorySeries, LooksOnlyAtFiguresThatANodeHas) {
  Store store = open();
  add(store, node(1));
  for (const char* rows :
       {"INSERT INTO run SELECT number + i, sha256 || i, run_id, node || i, started, finished, plan, "
        "plan_sha256, "
        "profile, profile_sha256, backend, simulated, scenario, acceptance, exit_code, tool, path, added "
        "FROM run, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT "
        "i FROM n)",
        "INSERT INTO figure_key SELECT number + i, stage, case_id, metric || i, unit, labels, direction "
        "FROM figure_key, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) "
        "SELECT "
        "i FROM n)"})
    ASSERT_TRUE(store.database().execute(rows).ok());
  auto reader = SeriesReader::open(store, {});
  ASSERT_TRUE(reader.ok()) << reader.error().text();
  size_t figures = 0;
  const std::clock_t before = std::clock();
  EXPECT_TRUE(reader->each([&](const auto&) { ++figures; }).ok());
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 5);
  EXPECT_EQ(figures, 1u);
}

TEST_F(HistorySeries, NamesAFileWhoseFiguresAreDamaged) {
  for (const char* damage : {"UPDATE figures SET medians = x'00'", "UPDATE layout SET places = x'ff'",
                             "DELETE FROM layout", "UPDATE layout SET places = x'0205'"}) {
    std::filesystem::remove(file());
    Store store = open();
    add(store, node(1));
    ASSERT_TRUE(store.database().execute(damage).ok());
    auto reader = SeriesReader::open(store, {});
    ASSERT_TRUE(reader.ok());
    const Status read = reader->each([](const auto&) {});
    ASSERT_FALSE(read.ok()) << damage;
    EXPECT_THAT(read.error().text(), HasSubstr("restore a backup")) << damage;
  }
}

}  // namespace
}  // namespace muster::history

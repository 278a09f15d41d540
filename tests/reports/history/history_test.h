// SPDX-License-Identifier: Apache-2.0
// What tests of the history share: a database in a temporary folder and made runs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "reports/fleet/read/name_table.h"
#include "reports/history/series_reader.h"
#include "runner/system/files.h"
#include "tests/support/process.h"

namespace muster::history {

/// A history in a folder of its own, and made runs to put into it.
class HistoryTest : public ::testing::Test {
 protected:
  fleet::NodeSummary node(int day, Acceptance acceptance = Acceptance::kAccepted,
                          const std::string& name = "n17") {
    fleet::NodeSummary summary;
    summary.node = name;
    summary.started = day * 86400.0;
    summary.runId = name + "-run-of-day-" + std::to_string(day);
    summary.sha256 = sha256Hex(summary.runId);
    summary.planName = "node-quick";
    summary.acceptance = acceptance;
    summary.devices = {{"gpu0", "gpu", "H100", "", "S0", ""}};
    fleet::FigureKey key;
    key.stage = "gemm";
    key.metric = "compute.gemm_throughput";
    key.unit = "FLOP/s";
    key.labels = {{"dtype", "bf16"}};
    key.direction = Direction::kHigher;
    summary.figures = {{names_.figures.number("gemm", [&] { return key; }), 0, 5, 7e14F, 0.001F}};
    summary.facts = {{-1, names_.text("software.driver"), names_.text("550.1")}};
    summary.deviations = {
        {Outcome::kWarn, names_.text("gemm"), names_.text(""), "gpu0", "", "near", "", 0.0}};
    return summary;
  }
  Store open(Access access = Access::kWrite) {
    auto store = Store::open(file(), access);
    EXPECT_TRUE(store.ok()) << (store.ok() ? "" : store.error().text());
    return std::move(store).value();
  }
  bool add(Store& store, const fleet::NodeSummary& summary) {
    const auto added = store.add(summary, names_, 1.0);
    EXPECT_TRUE(added.ok()) << (added.ok() ? "" : added.error().text());
    return added.ok() && *added;
  }
  /// All values of the selected runs, in any order.
  static std::vector<double> valuesOf(Store& store, const Selection& selection = {}) {
    std::vector<double> values;
    auto reader = SeriesReader::open(store, selection);
    const Status read = reader.ok() ? reader->each([&](const std::vector<Series>& figure) {
      for (const Series& series : figure)
        values.insert(values.end(), series.values.begin(), series.values.end());
    })
                                    : Status(reader.error());
    EXPECT_TRUE(read.ok()) << read.error().text();
    return values;
  }
  std::filesystem::path file() { return dir_.path() / "state" / "history.sqlite"; }
  std::string errorOf(Access access) {
    const auto store = Store::open(file(), access);
    return store.ok() ? "" : store.error().text();
  }
  muster::testing::TempDir dir_;
  fleet::FleetNames names_;
};

}  // namespace muster::history

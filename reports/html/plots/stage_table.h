// SPDX-License-Identifier: Apache-2.0
// The verdicts of a stage as a table: one row per expectation, one column per device.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runner/record/record.h"

namespace muster {

/// One thing that was wanted of a row's figures.
struct Wanted {
  std::string text;
  const Expectation* expectation = nullptr;
  Outcome worst = Outcome::kPass;  ///< over all cells
};

/// One figure (a metric in one case, or its stability) over the devices, with everything that was wanted of
/// it.
struct TableRow {
  std::string metric;    ///< empty: the verdicts are about a whole case or stage
  std::string caseText;  ///< labels other than the device
  std::string unit;      ///< in which all cells are written, "TFLOP/s"; empty: each cell says its own
  double factor = 0;     ///< cell = observed * factor with `decimals`; 0: the cell's own text
  int decimals = 0;
  std::string stability;  ///< "coefficient of variation", "largest drop over time": what the cells are;
                          ///< empty: the metric itself
  Outcome worst = Outcome::kPass;
  Labels labels;
  std::vector<Wanted> wanted;
  std::map<std::string, std::vector<const Verdict*>> cells;  ///< by column; the worst verdict first
};

/// Points into the stage it was made from.
struct StageTable {
  std::vector<std::string> columns;  ///< devices in natural order; "node" for what belongs to no device
  std::vector<TableRow> rows;
};

/// All verdicts of a stage.
StageTable stageTable(const StageRecord& stage);

/// The same as one table for the devices and one for the node, without empty ones: few rows belong to both.
std::vector<StageTable> splitTables(const StageTable& table);

/// gpu2 before gpu10.
bool naturalLess(const std::string& a, const std::string& b);

/// What a cell shows: the value in the row's unit, its own text, or the outcome's name where there is
/// neither.
std::string cellText(const TableRow& row, const Verdict& verdict);

/// The samples behind a record's verdicts. A stage is indexed at its first use and must not change
/// afterwards.
class StageSamples {
 public:
  /// All samples behind a verdict (of its last attempt, over all repeats).
  std::vector<double> of(const StageRecord& stage, const Verdict& verdict);

 private:
  /// Metric, case, device, rank and labels.
  using Key = std::tuple<std::string, std::string, std::string, int, Labels>;
  using Index = std::map<Key, std::vector<const Measurement*>>;
  std::map<const StageRecord*, Index> stages_;
};

/// The unit of what a verdict speaks of; empty where nothing was expected of it.
std::string unitOf(const Verdict& verdict);

/// "n 30, cv 0.4%", or empty without samples. A spread has no meaning where `unit` is none of a quantity.
std::string samplesText(const std::vector<double>& samples, const std::string& unit);

}  // namespace muster

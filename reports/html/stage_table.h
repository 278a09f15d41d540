// SPDX-License-Identifier: Apache-2.0
// The verdicts of a stage as a table: one row per expectation, one column per device.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/model/record.h"

namespace muster {

/// One expectation on one metric in one case, over the devices.
struct TableRow {
  std::string metric;    ///< empty: the verdict is about a whole case or stage
  std::string caseText;  ///< labels other than the device
  std::string wanted;    ///< empty: nothing was expected
  std::string unit;      ///< in which all cells are written, "TFLOP/s"; empty: each cell says its own
  double factor = 0;     ///< cell = observed * factor with `decimals`; 0: the cell's own text
  int decimals = 0;
  Outcome worst = Outcome::kPass;
  Labels labels;
  const Expectation* expectation = nullptr;
  std::map<std::string, const Verdict*> cells;  ///< by column
};

/// Points into the stage it was made from.
struct StageTable {
  std::vector<std::string> columns;  ///< devices in natural order; "node" for what belongs to no device
  std::vector<TableRow> rows;
};

StageTable stageTable(const StageRecord& stage);

/// gpu2 before gpu10.
bool naturalLess(const std::string& a, const std::string& b);

/// What a cell shows: the value in the row's unit, its own text, or the outcome's name where there is
/// neither.
std::string cellText(const TableRow& row, const Verdict& verdict);

/// All samples behind a verdict (of its last attempt, over all repeats).
std::vector<double> samplesOf(const StageRecord& stage, const Verdict& verdict);

/// "n 30, cv 0.4%", or empty without samples.
std::string samplesText(const std::vector<double>& samples);

}  // namespace muster

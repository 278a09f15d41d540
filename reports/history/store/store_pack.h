// SPDX-License-Identifier: Apache-2.0
// Figures of a run in the history's tables: written packed, and brought there from older tables.
#pragma once

#include <string>
#include <vector>

#include "reports/history/store/database.h"
#include "reports/history/store/packed_figures.h"

namespace muster::history {

/// Writes the devices and figures of runs. Statements are prepared once, for many runs.
class FigureWriter {
 public:
  static Result<FigureWriter> prepare(Database& database);
  Status addDevice(int64_t run, int64_t place, std::string_view name, std::string_view serial);
  /// Of each place one value.
  Status addFigures(int64_t run, const std::vector<FigurePlace>& places,
                    const std::vector<FigureValues>& values);

 private:
  FigureWriter(Statement device, Statement layout, Statement find, Statement figures)
      : device_(std::move(device)),
        layout_(std::move(layout)),
        find_(std::move(find)),
        figures_(std::move(figures)) {}
  Statement device_, layout_, find_, figures_;
};

/// From tables that had a row for each figure.
Status packOldFigures(Database& database);

}  // namespace muster::history

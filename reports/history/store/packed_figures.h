// SPDX-License-Identifier: Apache-2.0
// The figures of a run as the history stores them: one layout that runs of one plan share, and columns of
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace muster::history {

/// Which figure, of which device of the run.
struct FigurePlace {
  int64_t key = 0;  ///< number of its FigureName
  int device = -1;  ///< place of the device in the run; -1: of the node
};

/// The values of one figure in one run.
struct FigureValues {
  double median = 0;  ///< base unit
  double cv = 0;
  int n = 0;  ///< samples
};

/// Binary columns, as many entries in each as the layout has. Values are 4 bytes each, 8 where 4 would round
/// one.
struct PackedFigures {
  std::string layout, medians, cvs, counts;
};

PackedFigures packFigures(const std::vector<FigurePlace>& places, const std::vector<FigureValues>& values);

/// Says that `what` of a run cannot be read back.
Error damagedFigures(const std::string& what);

/// The way back. Columns come from a file that may be damaged: an error if they do not have `count` entries,
/// or a place names a device beyond `devices`.
Result<std::vector<FigurePlace>> unpackLayout(std::string_view layout, size_t devices);
Status unpackValues(std::string_view column, size_t count, std::vector<double>& out);
Result<std::vector<int>> unpackCounts(std::string_view column, size_t count);

}  // namespace muster::history

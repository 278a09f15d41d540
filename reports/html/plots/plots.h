// SPDX-License-Identifier: Apache-2.0
// Plots as inline SVG: pure functions from numbers to text, with every label escaped and no style but
// classes.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runner/metrics/verdict.h"

namespace muster {

/// One bar: a device and what was measured on it.
struct Bar {
  std::string label;
  double value = 0;  ///< base unit; NaN draws no bar
  std::string text;  ///< the value as written beside it
  Outcome outcome = Outcome::kPass;
};

/// Bars from zero against one limit.
struct BarPlot {
  std::string title;
  std::vector<Bar> bars;
  double limit = std::numeric_limits<double>::quiet_NaN();
  std::string limitText;  ///< "at least 650 TFLOP/s"
};

/// Horizontal bars. Of more than 24 the worst are drawn and the title says so (tables hold them all).
std::string barPlotSvg(const BarPlot& plot);

/// One line; x and y have the same length. NaN breaks the line.
struct Line {
  std::string label;
  std::vector<double> x;
  std::vector<double> y;
  bool marked = false;  ///< drawn in the colour of deviations and named at its end
};

/// Values over time, or over message size.
struct LinePlot {
  std::string title;
  std::string unit;                              ///< base unit of y
  std::string xUnit;                             ///< base unit of x
  bool logX = false;                             ///< x values must be positive
  bool logY = false;                             ///< y values that are not positive break the line
  std::vector<std::pair<double, double>> bands;  ///< stretches of x to shade
  std::vector<Line> lines;
  double limit = std::numeric_limits<double>::quiet_NaN();
  std::string limitText;
};

std::string linePlotSvg(const LinePlot& plot);

/// The lines of a title, broken at spaces so that none leaves the plot: at most two, as SVG text. `height` is
/// what the second one needs.
std::string titleSvg(const std::string& title, double& height);

}  // namespace muster

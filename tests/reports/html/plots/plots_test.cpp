// SPDX-License-Identifier: Apache-2.0
// Plots: what they show, and that no label breaks out of them.
#include "reports/html/plots/plots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace muster {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kHostile = "\"><script>alert(1)</script>";

size_t countOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Nothing that a policy without inline styles would refuse, no raw text, no number that is none.
void checkSvg(const std::string& svg) {
  EXPECT_EQ(svg.rfind("<svg", 0), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 6), "</svg>");
  for (const char* bad : {"<script", "style=", "nan", "inf", "href"})
    EXPECT_EQ(svg.find(bad), std::string::npos) << bad;
}

TEST(BarPlot, DrawsABarForEachDeviceAndTheLimit) {
  BarPlot plot{"gemm",
               {{"gpu0", 700, "700 TFLOP/s", Outcome::kPass}, {"gpu1", 350, "350 TFLOP/s", Outcome::kFail}},
               650,
               "at least 650 TFLOP/s"};
  const std::string svg = barPlotSvg(plot);
  checkSvg(svg);
  EXPECT_EQ(countOf(svg, "<rect"), 2u);
  EXPECT_EQ(countOf(svg, "class=\"limit\""), 1u);
  EXPECT_NE(svg.find("at least 650 TFLOP/s"), std::string::npos);
  EXPECT_NE(svg.find("bar fail"), std::string::npos);
  EXPECT_NE(svg.find("✕"), std::string::npos) << "the failing bar needs a sign beside its colour";
}

TEST(LinePlot, EndsWithTimesThatDifferInTheirLastDigitsAlone) {
  LinePlot plot;
  plot.title = "clock";
  plot.unit = plot.xUnit = "s";
  plot.lines.push_back({"gpu0", {}, {}, false});
  for (int i = 0; i < 4; ++i) {
    plot.lines[0].x.push_back(1e20 + 16384.0 * i);
    plot.lines[0].y.push_back(i);
  }
  const std::string svg = linePlotSvg(plot);
  checkSvg(svg);
  EXPECT_LT(svg.size(), 10'000u);
}

TEST(BarPlot, DrawsBarsInProportionFromZero) {
  const std::string svg =
      barPlotSvg({"x", {{"a", 100, "", Outcome::kPass}, {"b", 50, "", Outcome::kPass}}, kNaN, ""});
  EXPECT_NE(svg.find("width=\"204.0\""), std::string::npos) << svg;
  EXPECT_NE(svg.find("width=\"102.0\""), std::string::npos) << svg;
}

TEST(BarPlot, SurvivesHostileLabelsAndNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  checkSvg(barPlotSvg({kHostile,
                       {{kHostile, kNaN, kHostile, Outcome::kError},
                        {"b", inf, "", Outcome::kError},
                        {"c", -5, "", Outcome::kFail}},
                       kNaN,
                       kHostile}));
  checkSvg(barPlotSvg({"empty", {}, kNaN, ""}));
  checkSvg(barPlotSvg({"zero", {{"a", 0, "0", Outcome::kPass}}, 0, "at most 0"}));
}

TEST(BarPlot, ShowsTheWorstOfManyAndSaysSo) {
  BarPlot plot{"many", {}, 1, "at least 1"};
  for (int i = 0; i < 64; ++i) plot.bars.push_back({std::to_string(i), 2, "2", Outcome::kPass});
  plot.bars[60].outcome = Outcome::kFail;
  const std::string svg = barPlotSvg(plot);
  EXPECT_EQ(countOf(svg, "<rect"), 24u);
  EXPECT_NE(svg.find("bar fail"), std::string::npos);
  EXPECT_NE(svg.find("24 of 64"), std::string::npos);
}

LinePlot timePlot() {
  LinePlot plot;
  plot.title = "temperature";
  plot.unit = "degC";
  plot.xUnit = "s";
  plot.lines = {{"gpu0", {0, 1, 2}, {40, 50, 60}, false}, {"gpu1", {0, 1, 2}, {40, 70, 90}, true}};
  return plot;
}

TEST(LinePlot, DrawsEveryLineAndNamesTheMarkedOne) {
  const std::string svg = linePlotSvg(timePlot());
  checkSvg(svg);
  EXPECT_EQ(countOf(svg, "<path"), 2u);
  EXPECT_EQ(countOf(svg, "class=\"line-name\""), 1u);
  EXPECT_NE(svg.find("temperature in °C"), std::string::npos);
}

TEST(LinePlot, BreaksLinesAtMissingValues) {
  LinePlot plot = timePlot();
  plot.lines = {{"gpu0", {0, 1, 2, 3, 4}, {1, 2, kNaN, 2, 1}, false}};
  const std::string svg = linePlotSvg(plot);
  const size_t at = svg.find(" d=\"");
  EXPECT_EQ(countOf(svg.substr(at, svg.find('"', at + 4) - at), "M"), 2u);
  checkSvg(svg);
}

TEST(LinePlot, SurvivesHostileInput) {
  LinePlot plot = timePlot();
  plot.title = plot.unit = plot.xUnit = plot.limitText = kHostile;
  plot.lines = {{kHostile, {}, {}, true},
                {kHostile, {kNaN, 1}, {1, kNaN}, true},
                {"short", {1, 2, 3}, {1}, true},
                {"huge", {0, 1}, {-1e308, 1e308}, false}};
  checkSvg(linePlotSvg(plot));
  plot.logX = true;
  plot.lines = {{"one", {1024}, {5}, false}};
  checkSvg(linePlotSvg(plot));
  plot.lines = {{"zero", {0, 1024}, {5, 6}, false}};
  checkSvg(linePlotSvg(plot));
  plot.lines.clear();
  checkSvg(linePlotSvg(plot));
}

TEST(LinePlot, LabelsSizesOnALogarithmicAxis) {
  LinePlot plot = timePlot();
  plot.unit = "B/s";
  plot.xUnit = "B";
  plot.logX = true;
  plot.lines = {{"gpu0", {1024, 1048576, 1073741824}, {1e9, 2e10, 5e10}, false}};
  const std::string svg = linePlotSvg(plot);
  EXPECT_NE(svg.find("1 KiB"), std::string::npos);
  EXPECT_NE(svg.find("1 GiB"), std::string::npos);
  EXPECT_NE(svg.find("in GB/s"), std::string::npos);
}

TEST(LinePlot, DrawsValuesOnALogarithmicAxis) {
  LinePlot plot = timePlot();
  plot.unit = "B/s";
  plot.logY = true;
  plot.lines = {{"gpu0", {1, 2, 3, 4}, {1e6, 1e8, 0, 1e10}, false}};
  const std::string svg = linePlotSvg(plot);
  checkSvg(svg);
  EXPECT_NE(svg.find("M46.0 138.0L142.7 82.0M"), std::string::npos) << svg;
}

TEST(LinePlot, ShadesBandsInsideItsArea) {
  LinePlot plot = timePlot();
  plot.bands = {{0.5, 1}, {1.5, 99}, {-9, -8}};
  const std::string svg = linePlotSvg(plot);
  checkSvg(svg);
  EXPECT_EQ(countOf(svg, "class=\"band\""), 2u);
}

TEST(LinePlot, KeepsTheNamesOfMarkedLinesApart) {
  LinePlot plot = timePlot();
  plot.lines.clear();
  for (const char* name : {"gpu0", "gpu1", "gpu2"}) plot.lines.push_back({name, {0, 1}, {40, 50}, true});
  const std::string svg = linePlotSvg(plot);
  std::set<std::string> places;
  for (size_t at = svg.find("class=\"line-name\""); at != std::string::npos;
       at = svg.find("class=\"line-name\"", at + 1))
    places.insert(svg.substr(svg.find("y=", at), 8));
  EXPECT_EQ(places.size(), 3u) << svg;
}

TEST(PlotTitle, IsBrokenIntoTwoLinesThatFit) {
  double height = 0;
  EXPECT_EQ(countOf(titleSvg("short", height), "<text"), 1u);
  EXPECT_EQ(height, 0);
  std::string title;
  for (int i = 0; i < 40; ++i) title += "words & more ";
  const std::string svg = titleSvg(title, height);
  EXPECT_EQ(countOf(svg, "<text"), 2u);
  EXPECT_EQ(height, 13);
  EXPECT_EQ(countOf(titleSvg(std::string(500, 'x'), height), "<text"), 1u) << "a word is cut";
}

}  // namespace
}  // namespace muster

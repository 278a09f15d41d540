// SPDX-License-Identifier: Apache-2.0
// Prints comparisons.
#include "runner/app/history/comparison_view.h"

#include <fmt/format.h>

#include <cmath>

#include "runner/core/clock.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {

std::string runLine(const history::Run& run) {
  return fmt::format("#{:<5} {}  {:<20} {:<12} {}{}{}", run.number, formatUtc(run.started),
                     printable(run.node, 64), nameOf(run.acceptance), printable(run.plan, 64),
                     run.profile.empty() ? "" : ", " + printable(run.profile, 64),
                     run.simulated ? "  SIMULATED" : "");
}

std::string figureText(const history::FigureName& figure) {
  return fmt::format("{} {}{}{}", printable(figure.stage), printable(figure.metric),
                     figure.labels.empty() ? "" : " ", printable(figure.labels));
}

std::string movedText(const history::FigureName& figure, double before, double after) {
  const double by = after - before;
  return fmt::format("{} -> {} ({})", formatQuantity(before, figure.unit), formatQuantity(after, figure.unit),
                     history::onIntervalScale(figure)
                         ? (by > 0 ? "+" : "") + formatQuantity(by, figure.unit)
                         : fmt::format("{:+.1f}%", by / std::fabs(before) * 100));
}

void printOtherStages(const std::set<std::string>& stages) {
  if (stages.empty()) return;
  printText("not compared, because their parameters differ: {}\n",
            printable(join({stages.begin(), stages.end()}, ", "), 400));
}

void printComparison(const history::Comparison& c) {
  printText("before {}\nafter  {}\n", runLine(c.before), runLine(c.after));
  for (const auto& fact : c.facts)
    printText("  {} {}: {} -> {}\n", fact.device.empty() ? "node" : printable(fact.device),
              printable(fact.name), fact.before.empty() ? "(none)" : printable(fact.before, 100),
              fact.after.empty() ? "(none)" : printable(fact.after, 100));
  size_t shown = 0;
  for (const auto& f : c.figures) {
    if (++shown > kMostShown) break;
    printText("  {} {} {}: {}\n", f.worse ? "WORSE  " : "changed",
              f.after.device.name.empty() ? "node" : f.after.device.name, figureText(f.after.figure),
              movedText(f.after.figure, f.before.median, f.after.median));
  }
  if (c.figures.size() > kMostShown)
    printText("  and {} more; --json lists them all\n", c.figures.size() - kMostShown);
  printOtherStages(c.otherStages);
  printText(
      "{} metrics changed, {} unchanged, {} in only one of the runs; counts and yes-or-no values are not "
      "compared\n",
      c.figures.size(), c.alike, c.onlyBefore + c.onlyAfter);
  if (c.after.acceptance != Acceptance::kAccepted)
    printText("the later run is {}: muster history show {}\n", nameOf(c.after.acceptance), c.after.number);
}

}  // namespace muster

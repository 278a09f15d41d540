// SPDX-License-Identifier: Apache-2.0
// A change over time in words: what was seen in which runs, how sure it is, what to do next. See trend.h.
#include <fmt/format.h>

#include <cmath>

#include "reports/history/trend.h"
#include "runner/core/clock.h"
#include "runner/core/units.h"

namespace muster::history {
namespace {

std::string runText(const Run& run) {
  return fmt::format("run #{} of {}", run.number, formatUtc(run.started).substr(0, 10));
}

}  // namespace

std::string Series::text() const {
  std::string who = device.empty() ? node : node + " " + device;
  if (!serial.empty()) who += " (serial " + serial + ")";
  return fmt::format("{}: {} {}{}{}", who, stage, metric, labels.empty() ? "" : " ", labels);
}

std::string Change::seen() const {
  const std::string levels = fmt::format("{} to {} ({:+.1f}%)", formatQuantity(before, series.unit),
                                         formatQuantity(after, series.unit), change * 100);
  if (kind == ChangeKind::kStep)
    return fmt::format("a step from {} between {} and {}", levels, runText(series.runs[at - 1]),
                       runText(series.runs[at]));
  return fmt::format("a slope from {} over {} runs, {} to {} ({:+.2f}% a day)", levels, series.runs.size(),
                     runText(series.runs.front()), runText(series.runs.back()), perDay * 100);
}

std::string Change::sure() const {
  return fmt::format(
      "{:.1f} standard errors, {:.1f} would do; runs differ by {:.2f}% by chance (from {} "
      "successive runs of this figure on this node)",
      sigmas, limit, noise * 100, differences);
}

std::string Change::next() const {
  if (!worse)
    return series.direction == Direction::kNone ? "look what changed on this node then"
                                                : "nothing: it became better";
  if (kind == ChangeKind::kStep)
    return fmt::format(
        "`muster history compare {} {}` shows what else changed then (driver, firmware, parts)",
        series.runs[at - 1].number, series.runs[at].number);
  return "a part that wears or a cooler that clogs: compare its temperature and clocks in the oldest and the "
         "newest record, and plan its replacement";
}

}  // namespace muster::history

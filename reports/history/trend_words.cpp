// SPDX-License-Identifier: Apache-2.0
// A change over time in words: what was seen in which runs, how sure it is, what to do next. See trend.h.
#include <fmt/format.h>

#include <cmath>

#include "reports/history/trend.h"
#include "runner/core/clock.h"
#include "runner/core/units.h"

namespace muster::history {
namespace {

std::string runText(const Run* run) {
  return fmt::format("run #{} of {}", run->number, formatUtc(run->started).substr(0, 10));
}

}  // namespace

std::string Series::place(size_t i) const {
  const std::string& where = devices[i]->name;
  return where.empty() ? runs[i]->node : runs[i]->node + " " + where;
}

bool Series::stayed(size_t i) const {
  return i == 0 || (devices[i]->name == devices[i - 1]->name && runs[i]->node == runs[i - 1]->node);
}

std::string Series::text() const {
  std::string who = place(runs.size() - 1);
  if (!serial.empty()) {
    std::string before;
    for (size_t i = 1; i < runs.size(); ++i)
      if (!stayed(i)) before = ", before in " + place(i - 1);
    who += " (serial " + serial + before + ")";
  }
  return fmt::format("{}: {} {}{}{}", who, figure->stage, figure->metric, figure->labels.empty() ? "" : " ",
                     figure->labels);
}

std::string Change::seen() const {
  const std::string levels = fmt::format("{} to {} ({:+.1f}%)", formatQuantity(before, series.figure->unit),
                                         formatQuantity(after, series.figure->unit), change * 100);
  if (kind == ChangeKind::kStep)
    return fmt::format(
        "a step from {} between {} and {}{}", levels, runText(series.runs[at - 1]), runText(series.runs[at]),
        series.stayed(at)
            ? ""
            : fmt::format("; in between it moved from {} to {}", series.place(at - 1), series.place(at)));
  constexpr double kDay = 86400;  // seconds; from less of it no rate per day can be told
  const bool longEnough = series.runs.back()->started - series.runs.front()->started >= kDay;
  return fmt::format("a slope from {} over {} runs, {} to {}{}", levels, series.runs.size(),
                     runText(series.runs.front()), runText(series.runs.back()),
                     longEnough ? fmt::format(" ({:+.2f}% a day)", perDay * 100) : "");
}

std::string Change::sure() const {
  return fmt::format(
      "{:.1f} standard errors (threshold {:.1f}); runs vary by {:.2f}% by chance (from {} successive runs of "
      "this metric on this node)",
      sigmas, limit, noise * 100, differences);
}

std::string Change::next() const {
  if (!worse)
    return series.figure->direction == Direction::kNone ? "check what changed on this node at that time"
                                                        : "no action: it improved";
  if (kind == ChangeKind::kStep && !series.stayed(at))
    return fmt::format(
        "check its new position, {}: slot, links, power and cooling; the part was normal in the old one",
        series.place(at));
  if (kind == ChangeKind::kStep)
    return fmt::format("`muster history compare {} {}` shows what else changed (driver, firmware, parts)",
                       series.runs[at - 1]->number, series.runs[at]->number);
  return "possible wear or blocked cooling: compare its temperature and clocks in the oldest and newest "
         "record, and plan its replacement";
}

}  // namespace muster::history

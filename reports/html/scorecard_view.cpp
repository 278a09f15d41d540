// SPDX-License-Identifier: Apache-2.0
// The scorecard: every device as a dot for each key metric, on an axis of the distance to the limit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/html/page_one/categories.h"
#include "reports/html/plots/stage_table.h"
#include "reports/html/sections.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/markup.h"

namespace muster {
namespace {

constexpr size_t kMostMetrics = 14;
constexpr size_t kMostDevices = 1'000;  ///< of a metric, the worst
constexpr double kReach =
    0.5;  ///< of the axis to both sides of the limit; what lies beyond is drawn at its end
constexpr double kCardLeft = 250, kCardRight = 560, kCardTop = 28, kCardRow = 20, kCardWidth = 700;

/// A metric in the case that comes nearest to its limit: of each device the verdict with the least margin.
struct ScoreRow {
  std::string name;
  Category category = Category::kHealth;
  std::map<std::string, const Verdict*, bool (*)(const std::string&, const std::string&)> devices{
      naturalLess};
  double least = 1e9;
  std::string note;
};

bool isScored(const Verdict& verdict) {
  if (verdict.device.empty() || !verdict.expectation || !std::isfinite(verdict.margin)) return false;
  const std::string& unit = verdict.expectation->unit;
  return unit != "count" && unit != "bool" && unit != "text";
}

void addScore(ScoreRow& row, const StageRecord& stage, const Verdict& verdict) {
  row.category = categoryOf(stage, verdict);
  row.name = metricWords(verdict.metric);
  if (const std::string where = caseText(verdict); !where.empty()) row.name += " " + where;
  const Verdict*& worst = row.devices[verdict.device];
  if (worst == nullptr || verdict.margin < worst->margin) worst = &verdict;
  row.least = std::min(row.least, verdict.margin);
}

/// The devices that failed, else how near the nearest came.
std::string noteOf(const ScoreRow& row) {
  std::vector<std::string> failed;
  const Verdict* worst = nullptr;
  for (const auto& [device, verdict] : row.devices) {
    if (verdict->outcome <= Outcome::kFlaky) failed.push_back(device);
    if (worst == nullptr || verdict->margin < worst->margin) worst = verdict;
  }
  if (!failed.empty()) return "✕ " + devicesText(failed);
  return marginText(*worst);
}

void keepWorst(ScoreRow& row) {
  if (row.devices.size() <= kMostDevices) return;
  std::vector<const Verdict*> verdicts;
  for (const auto& [device, verdict] : row.devices) verdicts.push_back(verdict);
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const Verdict* a, const Verdict* b) { return a->margin < b->margin; });
  for (size_t i = kMostDevices; i < verdicts.size(); ++i) row.devices.erase(verdicts[i]->device);
}

std::vector<ScoreRow> scoreRows(const Record& record) {
  std::map<std::string, std::map<std::string, ScoreRow>> byMetric;  // metric -> stage and case -> row
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      if (isScored(verdict))
        addScore(byMetric[verdict.metric][stage.name + "\n" + caseText(verdict)], stage, verdict);
  const auto nearer = [](const ScoreRow& a, const ScoreRow& b) { return a.least < b.least; };
  std::vector<ScoreRow> rows;
  for (const auto& [metric, cases] : byMetric) {
    const auto worst = std::min_element(
        cases.begin(), cases.end(), [&](const auto& a, const auto& b) { return nearer(a.second, b.second); });
    rows.push_back(worst->second);
  }
  std::stable_sort(rows.begin(), rows.end(), nearer);
  if (rows.size() > kMostMetrics) rows.erase(rows.begin() + kMostMetrics, rows.end());
  for (ScoreRow& row : rows) {
    row.note = noteOf(row);
    keepWorst(row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ScoreRow& a, const ScoreRow& b) { return a.category < b.category; });
  return rows;
}

double placeOf(double margin) {
  const double share = (std::clamp(margin, -kReach, kReach) + kReach) / (2 * kReach);
  return kCardLeft + (kCardRight - kCardLeft) * share;
}

std::string dot(const std::string& device, const Verdict& verdict, double y) {
  const std::string tip =
      escapeMarkup(fmt::format("{}: {}, {}", device, verdict.observedText, marginText(verdict)));
  const bool failed = verdict.outcome <= Outcome::kFlaky;
  return fmt::format(
      "<g class=\"dot {0}\" data-tip=\"{1}\"><title>{1}</title><circle cx=\"{2:.1f}\" cy=\"{3:.1f}\" "
      "r=\"{4}\"/></g>",
      outcomeName(verdict.outcome), tip, placeOf(verdict.margin), y, failed ? 5 : 4);
}

std::string rowSvg(const ScoreRow& row, double y) {
  std::string svg = fmt::format(
      "<text class=\"card-name\" x=\"0\" y=\"{0:.1f}\">{1}</text>"
      "<line class=\"grid\" x1=\"{2}\" y1=\"{3:.1f}\" x2=\"{4}\" y2=\"{3:.1f}\"/>",
      y + 4, escapeMarkup(printable(row.name, 44)), kCardLeft, y, kCardRight);
  for (const auto& [device, verdict] : row.devices) svg += dot(device, *verdict, y);
  return svg + fmt::format("<text class=\"{}\" x=\"{}\" y=\"{:.1f}\">{}</text>",
                           row.least < 0 ? "card-note fail" : "card-note", kCardRight + 14, y + 4,
                           escapeMarkup(printable(row.note, 24)));
}

std::string scorecardSvg(const std::vector<ScoreRow>& rows) {
  const double bottom = kCardTop + kCardRow * static_cast<double>(rows.size());
  std::string svg = fmt::format(
      "<svg class=\"plot card\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"Distance of every "
      "device to its limits; the table below has the values\">",
      kCardWidth, bottom + 6);
  for (const double margin : {-0.5, -0.25, 0.25, 0.5})
    svg += fmt::format("<text class=\"tick middle\" x=\"{:.1f}\" y=\"12\">{:+.0f}%</text>", placeOf(margin),
                       100 * margin);
  svg += fmt::format(
      "<text class=\"tick middle\" x=\"{0:.1f}\" y=\"12\">limit</text>"
      "<line class=\"limit\" x1=\"{0:.1f}\" y1=\"17\" x2=\"{0:.1f}\" y2=\"{1:.1f}\"/>",
      placeOf(0), bottom);
  for (size_t i = 0; i < rows.size(); ++i)
    svg += rowSvg(rows[i], kCardTop + kCardRow * (static_cast<double>(i) + 0.3));
  return svg + "</svg>";
}

View scoreView(const ScoreRow& row, const std::vector<std::string>& columns) {
  View view;
  view.text("category", nameOf(row.category)).text("metric", row.name);
  view.list("cells", viewsOf(columns, [&](const std::string& column) {
              View cell;
              const auto found = row.devices.find(column);
              const Verdict* verdict = found == row.devices.end() ? nullptr : found->second;
              cell.text("value", verdict == nullptr ? "" : verdict->observedText);
              cell.text("margin", verdict == nullptr ? "" : marginText(*verdict));
              return cell;
            }));
  return view;
}

}  // namespace

void addScorecard(View& page, const Record& record) {
  const auto rows = scoreRows(record);
  std::set<std::string> devices;
  for (const ScoreRow& row : rows)
    for (const auto& [device, verdict] : row.devices) devices.insert(device);
  std::vector<std::string> columns(devices.begin(), devices.end());
  std::stable_sort(columns.begin(), columns.end(), naturalLess);
  page.markup("scorecard", rows.empty() ? std::string() : scorecardSvg(rows));
  page.list("score_columns", viewsOf(columns, [](const std::string& column) {
              View view;
              view.text("name", column);
              return view;
            }));
  page.list("scores", viewsOf(rows, [&](const ScoreRow& row) { return scoreView(row, columns); }));
}

}  // namespace muster

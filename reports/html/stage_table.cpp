// SPDX-License-Identifier: Apache-2.0
// See stage_table.h.
#include "reports/html/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "reports/html/axis.h"
#include "reports/model/deviations.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

std::string rowKey(const Verdict& verdict) {
  const std::string wanted = verdict.expectation ? verdict.expectation->text() : "";
  return join({verdict.metric, verdict.caseId, caseText(verdict), wanted, verdict.limitText}, "\n");
}

/// Several ranks may share a device: then a column is a rank.
bool ranksShareDevices(const StageRecord& stage) {
  std::map<std::string, std::set<int>> ranks;
  for (const auto& verdict : stage.verdicts)
    if (!verdict.device.empty() && verdict.rank >= 0) ranks[verdict.device].insert(verdict.rank);
  return std::any_of(ranks.begin(), ranks.end(), [](const auto& entry) { return entry.second.size() > 1; });
}

std::string columnOf(const Verdict& verdict, bool byRank) {
  if (verdict.device.empty()) return "node";
  if (byRank && verdict.rank >= 0) return fmt::format("{} rank {}", verdict.device, verdict.rank);
  return verdict.device;
}

TableRow makeRow(const Verdict& verdict) {
  TableRow row;
  row.metric = verdict.metric;
  row.caseText = caseText(verdict);
  row.labels = verdict.labels;
  row.labels.erase("device");
  if (verdict.expectation) {
    row.expectation = &*verdict.expectation;
    row.wanted = wantedText(verdict);
  }
  return row;
}

/// The base unit of what the row compares; empty where cells are texts.
std::string baseUnitOf(const TableRow& row) {
  if (row.expectation == nullptr || row.expectation->kind == CheckKind::kPredicate) return "";
  if (row.expectation->kind == CheckKind::kCvMax) return "ratio";
  const std::string& unit = row.expectation->unit;
  return unit == "text" || unit == "bool" || unit == "s" ? "" : unit;
}

/// One unit and one number of decimals for the whole row, so that its figures can be compared at a glance.
void settleUnit(TableRow& row) {
  const std::string unit = baseUnitOf(row);
  if (unit.empty()) return;
  double largest = 0;
  bool whole = true;
  for (const auto& [column, verdict] : row.cells) {
    if (!std::isfinite(verdict->observed)) continue;
    largest = std::max(largest, std::fabs(verdict->observed));
    whole = whole && verdict->observed == std::floor(verdict->observed);
  }
  const DisplayUnit shown = displayUnit(largest, unit);
  row.factor = shown.factor;
  row.unit = shown.suffix;
  const double top = largest * shown.factor;
  const bool countsOnly = whole && shown.factor == 1;
  row.decimals =
      countsOnly || top == 0 ? 0 : std::clamp(3 - static_cast<int>(std::floor(std::log10(top))), 0, 6);
}

}  // namespace

bool naturalLess(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t k = 0;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && k < b.size()) {
    if (digit(a[i]) && digit(b[k])) {
      const size_t iEnd = std::find_if_not(a.begin() + i, a.end(), digit) - a.begin();
      const size_t kEnd = std::find_if_not(b.begin() + k, b.end(), digit) - b.begin();
      if (iEnd - i != kEnd - k) return iEnd - i < kEnd - k;
      const int order = a.compare(i, iEnd - i, b, k, kEnd - k);
      if (order != 0) return order < 0;
      i = iEnd;
      k = kEnd;
    } else {
      if (a[i] != b[k]) return a[i] < b[k];
      ++i;
      ++k;
    }
  }
  return a.size() - i < b.size() - k;
}

StageTable stageTable(const StageRecord& stage) {
  StageTable table;
  const bool byRank = ranksShareDevices(stage);
  std::map<std::string, std::vector<size_t>> known;
  for (const auto& verdict : stage.verdicts) {
    const std::string column = columnOf(verdict, byRank);
    auto& candidates = known[rowKey(verdict)];
    // Two verdicts on one device that look alike (repeats told apart by nothing else) get a row each.
    auto free = std::find_if(candidates.begin(), candidates.end(),
                             [&](size_t at) { return table.rows[at].cells.count(column) == 0; });
    if (free == candidates.end()) {
      table.rows.push_back(makeRow(verdict));
      free = candidates.insert(candidates.end(), table.rows.size() - 1);
    }
    TableRow& row = table.rows[*free];
    row.cells[column] = &verdict;
    row.worst = std::min(row.worst, verdict.outcome);
  }
  std::set<std::string> columns;
  for (auto& row : table.rows) {
    settleUnit(row);
    for (const auto& [column, verdict] : row.cells) columns.insert(column);
  }
  table.columns.assign(columns.begin(), columns.end());
  std::sort(table.columns.begin(), table.columns.end(), [](const std::string& a, const std::string& b) {
    if ((a == "node") != (b == "node")) return a == "node";
    return naturalLess(a, b);
  });
  return table;
}

std::string cellText(const TableRow& row, const Verdict& verdict) {
  if (row.factor != 0 && std::isfinite(verdict.observed))
    return fmt::format("{:.{}f}", verdict.observed * row.factor, row.decimals);
  return verdict.observedText.empty() ? outcomeName(verdict.outcome) : verdict.observedText;
}

std::vector<double> samplesOf(const StageRecord& stage, const Verdict& verdict) {
  int attempt = 0;
  std::vector<double> samples;
  for (const auto& m : stage.measurements) {
    if (m.metric != verdict.metric || m.caseId != verdict.caseId || m.device != verdict.device) continue;
    if (verdict.rank >= 0 && m.rank != verdict.rank) continue;
    if (!labelsMatch(m.labels, verdict.labels) || m.attempt < attempt) continue;
    if (m.attempt > attempt) samples.clear();
    attempt = m.attempt;
    samples.insert(samples.end(), m.samples.begin(), m.samples.end());
  }
  return samples;
}

std::string samplesText(const std::vector<double>& samples) {
  if (samples.empty()) return "";
  const Summary summary = summarize(samples);
  if (samples.size() == 1 || !std::isfinite(summary.cv)) return fmt::format("n {}", samples.size());
  return fmt::format("n {}, cv {}", samples.size(), formatQuantity(summary.cv, "ratio", 2));
}

}  // namespace muster

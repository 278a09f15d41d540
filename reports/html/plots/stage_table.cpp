// SPDX-License-Identifier: Apache-2.0
// Builds the verdict table of a stage.
#include "reports/html/plots/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "reports/html/plots/axis.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/findings/deviations.h"

namespace muster {
namespace {

std::string stabilityOf(const Verdict& verdict) {
  if (!verdict.expectation || !verdict.expectation->comparesStability()) return "";
  return verdict.expectation->kind == CheckKind::kCvMax ? "coefficient of variation"
                                                        : "largest drop over time";
}

/// What cells of one row have in common: the figure, not what was wanted of it.
std::string rowKey(const Verdict& verdict) {
  return join({verdict.metric, verdict.caseId, caseText(verdict), stabilityOf(verdict)}, "\n");
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
  row.stability = stabilityOf(verdict);
  row.labels = verdict.labels;
  row.labels.erase("device");
  return row;
}

/// Places in a row's `wanted`, by the text and its source.
using KnownWanted = std::map<std::pair<std::string, std::string>, size_t>;

void addWanted(TableRow& row, KnownWanted& known, const Verdict& verdict) {
  if (!verdict.expectation) return;
  const std::string text = wantedText(verdict);
  const auto [at, isNew] = known.try_emplace({text, verdict.expectation->source}, row.wanted.size());
  if (isNew) row.wanted.push_back({text, &*verdict.expectation, verdict.outcome});
  Outcome& worst = row.wanted[at->second].worst;
  worst = std::min(worst, verdict.outcome);
}

void addCell(TableRow& row, const std::string& column, const Verdict& verdict) {
  auto& cell = row.cells[column];
  const auto after = [](const Verdict* a, const Verdict* b) { return a->outcome < b->outcome; };
  cell.insert(std::upper_bound(cell.begin(), cell.end(), &verdict, after), &verdict);
  row.worst = std::min(row.worst, verdict.outcome);
}

/// The base unit of what the row compares; empty where cells are texts.
std::string baseUnitOf(const TableRow& row) {
  if (!row.stability.empty()) return "ratio";
  if (row.wanted.empty()) return "";
  const Expectation& wanted = *row.wanted.front().expectation;
  if (wanted.kind == CheckKind::kPredicate || wanted.unit == "text" || wanted.unit == "bool" ||
      wanted.unit == "s")
    return "";
  return wanted.unit;
}

/// One unit and one number of decimals for the whole row, so that its figures can be compared at a glance.
void settleUnit(TableRow& row) {
  const std::string unit = baseUnitOf(row);
  if (unit.empty()) return;
  double largest = 0;
  bool whole = true;
  for (const auto& [column, cell] : row.cells) {
    const double observed = cell.front()->observed;
    if (!std::isfinite(observed)) continue;
    largest = std::max(largest, std::fabs(observed));
    whole = whole && observed == std::floor(observed);
  }
  const DisplayUnit shown = displayUnit(largest, unit);
  row.factor = shown.factor;
  row.unit = shown.suffix;
  const double top = largest * shown.factor;
  const bool countsOnly = whole && shown.factor == 1;
  const int most = unit == "ratio" ? 3 : 4;
  row.decimals =
      countsOnly || top == 0 ? 0 : std::clamp(3 - static_cast<int>(std::floor(std::log10(top))), 0, most);
}

/// The rows that have cells in `columns`, with just those.
StageTable part(const StageTable& table, const std::vector<std::string>& columns) {
  StageTable result;
  result.columns = columns;
  const std::set<std::string> wanted(columns.begin(), columns.end());
  for (const auto& row : table.rows) {
    TableRow kept = row;
    std::erase_if(kept.cells, [&](const auto& cell) { return wanted.count(cell.first) == 0; });
    if (!kept.cells.empty()) result.rows.push_back(std::move(kept));
  }
  return result;
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
  std::map<std::string, size_t> known;
  std::vector<KnownWanted> wanted;  ///< of each row
  std::set<std::string> columns;
  for (const auto& verdict : stage.verdicts) {
    const auto [at, isNew] = known.try_emplace(rowKey(verdict), table.rows.size());
    if (isNew) table.rows.push_back(makeRow(verdict)), wanted.emplace_back();
    const std::string column = columnOf(verdict, byRank);
    addCell(table.rows[at->second], column, verdict);
    addWanted(table.rows[at->second], wanted[at->second], verdict);
    columns.insert(column);
  }
  for (auto& row : table.rows) settleUnit(row);
  table.columns.assign(columns.begin(), columns.end());
  std::sort(table.columns.begin(), table.columns.end(), naturalLess);
  return table;
}

std::vector<StageTable> splitTables(const StageTable& table) {
  std::vector<std::string> devices = table.columns;
  const auto node = std::remove(devices.begin(), devices.end(), "node");
  const bool hasNode = node != devices.end();
  devices.erase(node, devices.end());
  std::vector<StageTable> tables;
  if (!devices.empty()) tables.push_back(part(table, devices));
  if (hasNode) tables.push_back(part(table, {"node"}));
  return tables;
}

std::string cellText(const TableRow& row, const Verdict& verdict) {
  if (row.factor != 0 && std::isfinite(verdict.observed))
    return fmt::format("{:.{}f}", verdict.observed * row.factor, row.decimals);
  return verdict.observedText.empty() ? outcomeName(verdict.outcome) : verdict.observedText;
}

std::vector<double> StageSamples::of(const StageRecord& stage, const Verdict& verdict) {
  const auto [index, isNew] = stages_.try_emplace(&stage);
  const auto key = [](const auto& of) { return Key(of.metric, of.caseId, of.device, of.rank, of.labels); };
  if (isNew)
    for (const auto& m : stage.measurements) index->second[key(m)].push_back(&m);
  int attempt = 0;
  std::vector<double> samples;
  for (const Measurement* m : index->second[key(verdict)]) {
    if (m->attempt < attempt) continue;
    if (m->attempt > attempt) samples.clear();
    attempt = m->attempt;
    samples.insert(samples.end(), m->samples.begin(), m->samples.end());
  }
  return samples;
}

std::string unitOf(const Verdict& verdict) {
  return verdict.expectation ? verdict.expectation->unit : "";
}

std::string samplesText(const std::vector<double>& samples, const std::string& unit) {
  if (samples.empty()) return "";
  const Summary summary = summarize(samples);
  const bool quantity = unit != "count" && unit != "bool";
  if (samples.size() == 1 || !quantity || !std::isfinite(summary.cv))
    return fmt::format("n {}", samples.size());
  return fmt::format("n {}, cv {}", samples.size(), formatQuantity(summary.cv, "ratio", 2));
}

}  // namespace muster

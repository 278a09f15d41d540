// SPDX-License-Identifier: Apache-2.0
// One tile for each category: how many checks passed, and the margin of the worst.
#include <fmt/format.h>

#include <cmath>

#include "reports/html/page/symbols.h"
#include "reports/html/page_one/categories.h"
#include "reports/html/page_one/page_one.h"
#include "runner/record/findings/deviations.h"

namespace muster {
namespace {

struct Tile {
  Accounting counts;
  const Verdict* worst = nullptr;  ///< with the least margin

  [[nodiscard]] size_t failed() const {
    return counts.of(Outcome::kFail) + counts.of(Outcome::kError) + counts.of(Outcome::kFlaky);
  }
};

void add(Tile& tile, const Verdict& verdict) {
  tile.counts.add(verdict);
  if (!verdict.expectation || !std::isfinite(verdict.margin)) return;
  const bool isState = verdict.expectation->unit == "count" || verdict.expectation->unit == "bool";
  if (isState && verdict.outcome == Outcome::kPass) return;
  if (tile.worst == nullptr || verdict.margin < tile.worst->margin) tile.worst = &verdict;
}

/// The outcome that a tile shows: the worst of those that a reader must see.
Outcome outcomeOf(const Tile& tile) {
  for (const Outcome outcome : {Outcome::kFail, Outcome::kError, Outcome::kFlaky, Outcome::kSkipped,
                                Outcome::kWarn, Outcome::kWaived})
    if (tile.counts.of(outcome) > 0) return outcome;
  return tile.counts.of(Outcome::kPass) > 0 ? Outcome::kPass : Outcome::kUnjudged;
}

std::string countText(const Tile& tile) {
  const size_t total = tile.counts.total();
  switch (outcomeOf(tile)) {
    case Outcome::kFail:
    case Outcome::kError:
    case Outcome::kFlaky:
      return fmt::format("{} of {} failed", tile.failed(), total);
    case Outcome::kSkipped:
      return fmt::format("{} not run", tile.counts.of(Outcome::kSkipped));
    case Outcome::kWarn:
      return plural(tile.counts.of(Outcome::kWarn), "warning");
    case Outcome::kWaived:
      return fmt::format("{} waived", tile.counts.of(Outcome::kWaived));
    case Outcome::kPass:
      return fmt::format("{} passed", tile.counts.of(Outcome::kPass));
    default:
      return "not checked";
  }
}

std::string worstText(const Tile& tile) {
  if (tile.worst == nullptr) return "";
  const std::string device = tile.worst->device.empty() ? "" : " " + tile.worst->device;
  return (tile.worst->margin < 0 ? "worst" : "nearest") + device + ": " + marginText(*tile.worst);
}

}  // namespace

void addCategories(View& page, const Record& record) {
  std::array<Tile, namesOf(Category{}).size()> tiles;
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      add(tiles[static_cast<size_t>(categoryOf(stage, verdict))], verdict);
  std::vector<View> views;
  for (size_t i = 0; i < tiles.size(); ++i) {
    const Outcome outcome = outcomeOf(tiles[i]);
    View view;
    view.text("name", nameOf(static_cast<Category>(i))).text("outcome", outcomeName(outcome));
    view.text("symbol", outcomeSymbol(outcome)).text("count", countText(tiles[i]));
    view.text("note", worstText(tiles[i]));
    views.push_back(std::move(view));
  }
  page.list("tiles", std::move(views));
}

}  // namespace muster

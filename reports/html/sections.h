// SPDX-License-Identifier: Apache-2.0
// The sections of the report: each adds its part of a record to the template's data.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/acceptance/acceptance_document.h"
#include "reports/html/page/view.h"
#include "reports/html/plots/plots.h"
#include "runner/record/record.h"

namespace muster {

/// Numbers the distinct sources in the order of their first mention, so that tables cite them as [1].
class Sources {
 public:
  /// The number of `text`, from 1; 0 for an empty text.
  int number(const std::string& text);
  [[nodiscard]] const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::map<std::string, int> numbers_;
};

void addDeviations(View& page, const Record& record, Sources& sources);
/// The clauses of the requirements, if there are any.
void addClauses(View& page, const Record& record, const AcceptanceDocument& document);
/// Eight devices at a glance: dots on an axis of the distance to the limit.
void addScorecard(View& page, const Record& record);
void addStages(View& page, const Record& record, Sources& sources);
void addNotJudged(View& page, const Record& record, Sources& sources);
void addWaivers(View& page, const Record& record, Sources& sources);
void addInventory(View& page, const Record& record);
void addMethod(View& page, const Record& record);
/// Call after all sections that cite.
void addSources(View& page, const Sources& sources);
/// `schema` is the text of the record's JSON Schema.
void addProvenance(View& page, const Record& record, const std::string& digest, const std::string& schema);

/// The unit of a theoretical peak, by its name.
std::string peakUnit(const std::string& name);

/// Line plots of one list of a stage, and points that those of a page may hold together: that a plot repeats
/// what others hold too must not multiply.
inline constexpr size_t kMostLinePlots = 24;
inline constexpr size_t kMostPlotPoints = 2'000'000;

/// The first kMostLinePlots that fit into `pointsLeft`, which they take, each with its data as a table:
/// `svg`, `data_columns`, `data_rows`.
std::vector<View> linePlotViews(const std::vector<LinePlot>& plots, size_t& pointsLeft);
/// Values over message size and over steps.
void addCurves(View& view, const StageRecord& stage, size_t& pointsLeft);

/// Telemetry of one stage: a table of all series and plots of those that vary, those with findings first.
/// Returns what is left out: " · 24 of 30 telemetry plots drawn ..."; empty: nothing.
std::string addTelemetry(View& view, const StageRecord& stage, size_t& pointsLeft);

}  // namespace muster

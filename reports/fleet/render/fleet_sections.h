// SPDX-License-Identifier: Apache-2.0
// The sections of the fleet's page that are made here: the first page, the map, plots and the table of nodes.
#pragma once

#include <string>

#include "reports/fleet/fleet_record.h"
#include "reports/fleet/render/fleet_html.h"
#include "reports/html/page/view.h"

namespace muster::fleet {

/// Where each node's own report lies, as the page links it.
class ReportLinks {
 public:
  ReportLinks(const FleetRecords& records, std::string recordsAt);
  /// "../run/n1/report.html", percent-encoded; empty: the node has no record, or nobody said where records
  /// are.
  [[nodiscard]] std::string of(const FleetNode& node) const;

 private:
  const FleetRecords& records_;
  std::string recordsAt_;
};

/// A view with `line` for each of them.
std::vector<View> linesOf(const std::vector<std::string>& lines);

/// "ACCEPTED WITH CONCESSIONS" where waivers were used, else the acceptance.
std::string verdictText(const Fleet& fleet);

/// "Repair 2 GPUs and 1 link, test 1 missing node: then 64 of 64 nodes can be accepted."
std::string summarySentence(const Fleet& fleet);

/// Document line, verdict strip, concessions and signatures.
void addFirstPage(View& page, const Fleet& fleet, const AcceptanceDocument& document);

/// The rows of the table of incidents.
void addIncidents(View& page, const Fleet& fleet, const ReportLinks& links,
                  const AcceptanceDocument& document);

/// All nodes as cells by rack and slot, each with its state and how far it is behind; as markup.
std::string rackMap(const Fleet& fleet);

/// All nodes as rows of a table; as markup.
std::string nodeRows(const Fleet& fleet, const ReportLinks& links);
/// The columns of key metrics: "<th>…".
std::string keyColumns(const Fleet& fleet);

/// One dot for each device, limit and median, outliers named; as markup. Empty: nothing was measured.
std::string stripPlot(const Fleet& fleet, const KeyFigure& figure, const std::string& title);

/// How a metric is spread.
std::string histogram(const std::vector<size_t>& bins);

}  // namespace muster::fleet

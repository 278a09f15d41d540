// SPDX-License-Identifier: Apache-2.0
// fleet.html: the acceptance of a whole fleet as one self-contained page.
#pragma once

#include <filesystem>
#include <string>

#include "reports/acceptance/acceptance_document.h"
#include "reports/acceptance/fleet_clauses.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// What the page has beside the fleet itself.
struct PageExtras {
  std::string recordsAt;        ///< relative path from the page to the folder of the records; empty: no links
  AcceptanceDocument document;  ///< what only people know; fields that it lacks are blanks
  FleetClauses clauses{};       ///< of the document's requirements, over the nodes that have records
};

/// The text of fleet.json with the clauses of a contract: none gives the text without them.
std::string fleetText(const Fleet& fleet, const FleetRecords& records, const FleetClauses& clauses);

/// Renders `fleet` with the templates in `templates`/fleet and the style of `templates`/report. The page
/// loads nothing, all text is escaped, and every table is bounded and says what it left out, so that ten
/// thousand nodes stay under 5 MB. `recordSha256` is the digest of fleet.json. Errors name the template file
/// that is missing or damaged.
Result<std::string> renderFleetHtml(const Fleet& fleet, const FleetRecords& records,
                                    const std::string& recordSha256, const std::filesystem::path& templates,
                                    const PageExtras& extras = {});

}  // namespace muster::fleet

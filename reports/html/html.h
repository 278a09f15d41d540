// SPDX-License-Identifier: Apache-2.0
// report.html: the acceptance report as one self-contained page.
#pragma once

#include <filesystem>
#include <string>

#include "reports/acceptance/acceptance_document.h"
#include "runner/record/record.h"

namespace muster {

/// Renders `record` with the template in `templates`/report (share/muster/templates in an installed tree),
/// `digest`, the SHA-256 of its record.json, and `document`, what people say about the acceptance. The page
/// loads nothing, its policy forbids everything but its own style and script (by digest), and every text of
/// the record is escaped. Errors name the template file that is missing or damaged.
Result<std::string> renderHtml(const Record& record, const std::string& digest,
                               const std::filesystem::path& templates,
                               const AcceptanceDocument& document = {});

}  // namespace muster

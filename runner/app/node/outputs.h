// SPDX-License-Identifier: Apache-2.0
// Writes the record and every report that is derived from it.
#pragma once

#include <filesystem>

#include "reports/acceptance/acceptance_document.h"
#include "runner/record/record.h"

namespace muster {

inline constexpr int kSummaryColumns = 100;  ///< of the summaries that commands print

/// Puts copies of `document` and its requirements beside the reports in `folder`; takes the copies that are
/// there in place of what is not given. So whoever renders the reports again has what they show.
Status keepDocuments(AcceptanceDocument& document, const std::filesystem::path& folder);

/// report.html, which shows `digest` (of record.json) and `document`, and junit.xml.
Status writeReports(const Record& record, const std::string& digest, const std::filesystem::path& folder,
                    const std::filesystem::path& templates, const AcceptanceDocument& document = {});

/// record.json (the canonical one), and report.html and junit.xml beside it.
Status writeOutputs(const Record& record, const std::filesystem::path& folder,
                    const std::filesystem::path& templates);

}  // namespace muster

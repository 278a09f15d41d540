// SPDX-License-Identifier: Apache-2.0
// Writes the record and every report that is derived from it.
#pragma once

#include <filesystem>

#include "reports/acceptance/acceptance_document.h"
#include "runner/record/record.h"

namespace muster {

/// report.html, which shows `digest` (of record.json) and `document`, and junit.xml.
Status writeReports(const Record& record, const std::string& digest, const std::filesystem::path& folder,
                    const std::filesystem::path& templates, const AcceptanceDocument& document = {});

/// record.json (the canonical one), and report.html and junit.xml beside it.
Status writeOutputs(const Record& record, const std::filesystem::path& folder,
                    const std::filesystem::path& templates);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// The first page: each function adds one of its parts to the template's data. It holds one A4 page, so every
// text is short and every list has a limit.
#pragma once

#include <string>

#include "reports/acceptance/acceptance_document.h"
#include "reports/html/page/view.h"
#include "reports/html/page_one/document_fields.h"
#include "runner/record/record.h"

namespace muster {

inline constexpr size_t kLongestCell = 64;  ///< bytes of a table's cell

/// Number, contract, parties, node, test window: what the record knows, and blanks for what it does not.
void addDocument(View& page, const Record& record, const AcceptanceDocument& document);
/// The verdict, how many checks it counts, and one sentence about the worst finding.
void addVerdict(View& page, const Record& record);
void addCategories(View& page, const Record& record);
/// One line for each incident: part, fault, measured, required, action, owner.
void addPunchList(View& page, const Record& record, const AcceptanceDocument& document);
/// Parts ordered, found and accepted; the concessions; the checks nearest to their limits.
void addParts(View& page, const Record& record, const AcceptanceDocument& document);

/// What a device's telemetry in `stage` says about it, compared with its peers: "its clock was 1440 MHz, its
/// peers' 1755 MHz"; empty where nothing stands out.
std::string telemetryHint(const StageRecord& stage, const std::string& device);

/// CSS that prints node, run and digest at the head of every page.
std::string printHead(const Record& record, const std::string& digest);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// Fields of the document line and the signatures, as reports of nodes and of fleets show them.
#pragma once

#include <string>

#include "reports/acceptance/acceptance_document.h"
#include "reports/html/page/view.h"

namespace muster {

inline constexpr size_t kLongestText = 120;  ///< bytes of a line

/// `name`, `value`, and `blank` where the value is empty: it is filled in by hand.
View fieldView(const std::string& name, const std::string& value);
/// "ATR-2026-0117, rev. 1".
std::string numberText(const AcceptanceDocument& document);
/// "a, b"; only one of them where the other is empty.
std::string pairText(const std::string& a, const std::string& b);
/// "2026-11-22 02:17 to 02:22 UTC"; both dates where they differ. Unix times; empty where nothing began.
std::string windowText(double started, double finished);
/// `exclusions`, `signers` and `document_sha256`.
void addSigners(View& page, const AcceptanceDocument& document);

}  // namespace muster

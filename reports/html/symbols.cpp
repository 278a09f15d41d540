// SPDX-License-Identifier: Apache-2.0
// Maps outcomes and acceptances to symbols.
#include "reports/html/symbols.h"

#include <cctype>

namespace muster {

const char* outcomeSymbol(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "✓";
    case Outcome::kFail:
      return "✕";
    case Outcome::kError:
      return "!";
    case Outcome::kFlaky:
      return "≈";
    case Outcome::kWarn:
      return "▲";
    case Outcome::kUnjudged:
      return "?";
    case Outcome::kSkipped:
      return "–";
    case Outcome::kWaived:
      return "w";
    case Outcome::kDeferred:
      return "…";
    case Outcome::kElsewhere:
      return "↗";
  }
  return "?";
}

const char* acceptanceSymbol(const std::string& acceptance) {
  if (acceptance == "accepted") return "✓";
  if (acceptance == "rejected") return "✕";
  return "!";
}

std::string acceptanceText(const std::string& acceptance) {
  std::string text;
  for (const char c : acceptance) text += c == '-' ? ' ' : static_cast<char>(std::toupper(c));
  return text;
}

std::string acceptanceMeaning(const std::string& acceptance, size_t waived) {
  if (acceptance == "accepted") {
    const std::string met = "All requirements were met";
    return waived == 0 ? met + "." : met + " or waived; see the waivers.";
  }
  if (acceptance == "rejected") return "At least one requirement was not met.";
  if (acceptance == "incomplete") return "Some required tests produced no result.";
  if (acceptance == "interrupted")
    return "The run was interrupted; this report shows the finished stages. Continue with \"muster run "
           "--resume\" and the run directory.";
  if (acceptance == "no-gpu") return "No GPU was found, and --no-gpu=skip was given.";
  return "Unknown verdict: the record was written by a newer version.";
}

}  // namespace muster

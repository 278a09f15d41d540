// SPDX-License-Identifier: Apache-2.0
// Maps outcomes and acceptances to symbols.
#include "reports/html/page/symbols.h"

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

const char* acceptanceSymbol(Acceptance acceptance) {
  if (acceptance == Acceptance::kAccepted) return "✓";
  if (acceptance == Acceptance::kRejected) return "✕";
  return "!";
}

std::string acceptanceMeaning(Acceptance acceptance, size_t waived) {
  switch (acceptance) {
    case Acceptance::kAccepted:
      return std::string("All requirements were met") +
             (waived == 0 ? "." : " or waived; see the concessions.");
    case Acceptance::kRejected:
      return "At least one requirement was not met.";
    case Acceptance::kIncomplete:
      return "Some required tests produced no result, or a clause is not met.";
    case Acceptance::kInterrupted:
      return "The run was interrupted; this report shows the finished stages. Continue with \"muster run "
             "--resume\" and the run directory.";
    case Acceptance::kNoGpu:
      return "No GPU was found, and --no-gpu=skip was given.";
    case Acceptance::kPartial:
      return "Only a part of the plan was run, and it passed. This is no acceptance: run the whole plan.";
  }
  return "";
}

}  // namespace muster

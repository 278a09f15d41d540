// SPDX-License-Identifier: Apache-2.0
// Checks the outcome of a verdict against its values.
#include "runner/record/verdict_check.h"

#include <fmt/format.h>

#include <cmath>

namespace muster {
namespace {

constexpr double kRounding = 1e-9;

bool same(double a, double b) {
  return std::fabs(a - b) <= kRounding * std::max(std::fabs(a), std::fabs(b));
}

bool isUpper(CheckKind kind) {
  return kind == CheckKind::kMax || kind == CheckKind::kCvMax || kind == CheckKind::kDropMax;
}

bool isMissed(const VerdictClaim& claim) {
  if (claim.margin < -kRounding) return true;
  const double room = kRounding * std::fabs(claim.limit);
  return (claim.kind == CheckKind::kMin && claim.observed < claim.limit - room) ||
         (isUpper(claim.kind) && claim.observed > claim.limit + room);
}

/// Whether the figure is held against a bound, so that a pass must show it.
bool hasBound(CheckKind kind) {
  return kind != CheckKind::kEquals && kind != CheckKind::kOneOf && kind != CheckKind::kContains &&
         kind != CheckKind::kExcludes && kind != CheckKind::kPredicate;
}

/// Whether a miss only warns: by its own severity, or as a slow stretch of time does.
bool missWarns(const VerdictClaim& claim) {
  return claim.severity == Severity::kWarn || (claim.dropsWarn && !isUpper(claim.kind)) ||
         (claim.dropsWarn && claim.kind == CheckKind::kMax);
}

std::string figures(const VerdictClaim& claim, const char* does) {
  return fmt::format("it {} with {} against a limit of {}", does, claim.observed, claim.limit);
}

/// What an outcome may say of figures that met their limit, or of a miss that only warns.
std::string ofFigures(const VerdictClaim& claim) {
  const bool fixed =
      claim.kind == CheckKind::kMin || claim.kind == CheckKind::kMax || claim.kind == CheckKind::kCvMax;
  if (fixed && std::isfinite(claim.limit) && !same(claim.limit, claim.wanted))
    return fmt::format("its limit is {}, and its expectation's {}", claim.limit, claim.wanted);
  if (claim.kind == CheckKind::kBaseline && std::isfinite(claim.limit) &&
      !same(claim.limit, claim.wanted - std::fabs(claim.wanted) * claim.tolerance) &&
      !same(claim.limit, claim.wanted + std::fabs(claim.wanted) * claim.tolerance))
    return fmt::format("its limit is {}, and its expectation's baseline {} within {}", claim.limit,
                       claim.wanted, claim.tolerance);
  const bool missed = isMissed(claim);
  if (claim.outcome == Outcome::kPass) {
    if (missed) return figures(claim, "passes");
    if (hasBound(claim.kind) && !(std::isfinite(claim.observed) && std::isfinite(claim.limit)))
      return "it passes without a value or a limit";
  }
  const bool warns = claim.outcome == Outcome::kWarn || claim.outcome == Outcome::kFlaky;
  if (warns && missed && !missWarns(claim)) return figures(claim, "only warns");
  return "";
}

}  // namespace

std::string contradictionIn(const VerdictClaim& claim) {
  if (claim.stageState == StageState::kIdle && claim.outcome != Outcome::kSkipped)
    return "its stage was idle";
  switch (claim.outcome) {
    case Outcome::kElsewhere:
      return claim.stageState == StageState::kElsewhere ? "" : "it is left elsewhere, and its stage is not";
    case Outcome::kDeferred:
      if (claim.stageState != StageState::kRan) return "it is deferred, and its stage did not run";
      return claim.hasExpectation && claim.kind == CheckKind::kWithin
                 ? ""
                 : "it is deferred, and its expectation is not relative to the fleet";
    case Outcome::kWaived:
      if (!claim.underWaivers) return "it is waived, and the record names no waiver for it";
      if (claim.stageState == StageState::kSkipped || claim.stageState == StageState::kElsewhere)
        return "it is waived, and its stage measured nothing";
      break;
    case Outcome::kUnjudged:
      if (claim.hasExpectation) return "it is unjudged, and has an expectation";
      break;
    default:
      break;
  }
  return claim.hasExpectation ? ofFigures(claim) : "";
}

}  // namespace muster

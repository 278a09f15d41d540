// SPDX-License-Identifier: Apache-2.0
// What must hold between the parts of one verdict, whoever reads it: an outcome that its own figures deny was
// edited.
#pragma once

#include <limits>
#include <string>

#include "runner/metrics/states.h"
#include "runner/metrics/verdict.h"

namespace muster {

/// A verdict and the values that it is based on, as stored in a record. NaN: the value is absent.
struct VerdictClaim {
  Outcome outcome = Outcome::kError;
  StageState stageState = StageState::kRan;
  bool hasExpectation = false;
  CheckKind kind = CheckKind::kMin;  ///< this and what follows is of its expectation
  Severity severity = Severity::kFail;
  double wanted = 0;
  double tolerance = 0;
  bool dropsWarn = false;  ///< a drop_max of the same metric only warns, and so does a slow stretch of time
  double observed = std::numeric_limits<double>::quiet_NaN();
  double limit = std::numeric_limits<double>::quiet_NaN();
  double margin = std::numeric_limits<double>::quiet_NaN();
  bool underWaivers = false;  ///< the record names a waiver of this stage and metric
};

/// Why the outcome cannot be that of the figures: "it passes with 5 against a limit of 7"; empty: it can.
std::string contradictionIn(const VerdictClaim& claim);

}  // namespace muster

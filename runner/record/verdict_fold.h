// SPDX-License-Identifier: Apache-2.0
// Verdicts inside their stage: what many share, or what follows from the rest, is not written again, so that
// a record stays small.
#pragma once

#include <string>

#include "runner/record/record.h"

namespace muster {

/// The stage's verdicts as JSON, in the order of groupVerdicts: one object for an expectation on a metric of
/// a case, with a row for each device (see columnar_rows.h). `expectation` is an index into the stage's
/// evidence.expectations where it stands there. Left out are the stage's name, a remedy that is the
/// expectation's own, and the texts of a pass where they are what comparisonText makes of its figures.
Json foldedVerdicts(const StageRecord& stage);

/// Reads what foldedVerdicts wrote (and whole verdicts too). The measurements of `stage` must be there: they
/// tell the units. An index that leads nowhere is an error.
Result<std::vector<Verdict>> unfoldedVerdicts(const Json& list, const StageRecord& stage,
                                              const std::string& path);

/// Puts those of one expectation, metric, case and set of labels (but the device) beside each other. A record
/// holds them in this order, so what is shown before it is written had better be in it, too.
void groupVerdicts(std::vector<Verdict>& verdicts);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// The end of a run on a terminal: verdict, counts, and each deviation with what to do about it.
#pragma once

#include <string>

#include "runner/record/record.h"

namespace muster {

/// The summary as lines of at most `width` columns (60 at least); `colour` adds ANSI colours. A healthy run
/// fits one screen. Control characters of the record never reach the terminal.
std::string renderSummary(const Record& record, bool colour, int width);

}  // namespace muster

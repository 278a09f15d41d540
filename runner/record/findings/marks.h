// SPDX-License-Identifier: Apache-2.0
// Marks: what every report must say of a record that is not plainly a run of Muster on this hardware.
#pragma once

#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

struct Mark {
  std::string word;  ///< "SIMULATED"
  std::string text;  ///< "by scenario h100x8-healthy: no hardware was measured"
};

/// SIMULATED, IMPORTED (one for each file), RE-JUDGED, REDACTED, PARTIAL, as far as they apply, in this
/// order.
std::vector<Mark> marksOf(const Record& record);

/// Their words, each once, for the begin of a title: "SIMULATED PARTIAL "; empty for a plain run.
std::string markPrefix(const Record& record);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// What of a run did not happen at once.
#pragma once

#include <string>

#include "runner/record/record.h"

namespace muster {

/// "resumed 2 times, stage gemm tried 3 times"; of many stages the first three. Empty: the run went through
/// at once.
std::string attemptsText(const Record& record);

}  // namespace muster

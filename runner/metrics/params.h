// SPDX-License-Identifier: Apache-2.0
// How a parameter's range reads for people; convertParam() of catalog.h holds values to it.
#pragma once

#include <string>

#include "runner/metrics/catalog.h"

namespace muster {

/// "from 1 B to 64 KiB", "at least 1", or an empty text where any number or quantity will do.
std::string rangeText(const ParamSpec& spec);

}  // namespace muster

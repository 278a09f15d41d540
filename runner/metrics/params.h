// SPDX-License-Identifier: Apache-2.0
// How a parameter's range reads for people; convertParam() of catalog.h holds values to it.
#pragma once

#include <string>

#include "runner/metrics/catalog.h"

namespace muster {

/// "a whole number from 1 to 64": which values the parameter takes.
std::string requiredText(const ParamSpec& spec);

/// The JSON Schema of the values that convertParam() takes.
Json paramSchema(const ParamSpec& spec);

/// The default as a plan may write it: "5s", 4096, ["copy"].
std::string defaultText(const ParamSpec& spec);

/// "from 1 B to 64 KiB", "at least 1", or an empty text where any number or quantity will do.
std::string rangeText(const ParamSpec& spec);

}  // namespace muster

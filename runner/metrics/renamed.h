// SPDX-License-Identifier: Apache-2.0
// Former names of metrics and parameters, so that an error about an old name gives the new one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/mistake.h"

namespace muster {

/// What to add to an error about an unknown metric or parameter: `; it was renamed to "x"` for a former name
/// whose new name is among `known`, else didYouMean(). For one of many names.
std::string nameHint(std::string_view name, const std::vector<std::string>& known, Suggester& suggester);
/// The error that `sentence` begins, about the metric or parameter `found`, which is none of `known`.
Mistake unknownName(const std::string& sentence, std::string_view found,
                    const std::vector<std::string>& known);

}  // namespace muster

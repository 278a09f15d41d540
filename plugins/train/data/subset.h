// SPDX-License-Identifier: Apache-2.0
// A part of a data set, taken evenly over all of it.
#pragma once

#include <memory>

#include "plugins/train/data/dataset.h"

namespace muster::train {

/// `limit` samples of `whole`, spread evenly so that sorted data keeps all its classes; 0: all. More than
/// there are is an error.
Result<std::unique_ptr<Dataset>> limitTo(std::unique_ptr<Dataset> whole, uint64_t limit);

}  // namespace muster::train

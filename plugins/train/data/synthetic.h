// SPDX-License-Identifier: Apache-2.0
// Samples that are computed: nothing to download, nothing to wait for, and still something to learn.
#pragma once

#include <memory>

#include "plugins/train/data/dataset.h"

namespace muster::train {

/// As many samples as ImageNet has for training, and as for its validation.
inline constexpr uint64_t kSyntheticTrain = 1281167;
inline constexpr uint64_t kSyntheticTest = 50000;

/// Images: a smooth pattern of their class under noise, mean 0 and sigma about 1. Tokens: a walk over few of
/// the tokens that goes on by one rule, nine times of ten. Of the classes only the first 16 occur, so that a
/// loss falls within few steps where everything works.
Result<std::unique_ptr<Dataset>> makeSynthetic(const DatasetSpec& spec);

}  // namespace muster::train

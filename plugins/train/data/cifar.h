// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100 (Krizhevsky 2009) in their binary version.
#pragma once

#include "plugins/train/data/dataset.h"

namespace muster::train {

/// Reads data_batch_1.bin ... 5 and test_batch.bin (cifar10), or train.bin and test.bin (cifar100), of
/// `spec.folder` or of the folder that their archive has inside (cifar-10-batches-bin, cifar-100-binary).
Result<std::unique_ptr<Dataset>> openCifar(const DatasetSpec& spec);

}  // namespace muster::train

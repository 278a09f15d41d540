// SPDX-License-Identifier: Apache-2.0
// FashionMNIST (Xiao, Rasul, Vollgraf 2017) as the IDX files of its authors, or of MNIST: they have the same
// form.
#pragma once

#include "plugins/train/data/dataset.h"

namespace muster::train {

/// Where Debian's package dataset-fashion-mnist puts it.
inline constexpr const char* kDebianFashionMnist = "/usr/share/datasets/fashion-mnist";

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz, of `spec.folder`.
Result<std::unique_ptr<Dataset>> openFashionMnist(const DatasetSpec& spec);

}  // namespace muster::train

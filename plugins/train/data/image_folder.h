// SPDX-License-Identifier: Apache-2.0
// ImageNet's layout: a folder a class, JPEG files in it.
#pragma once

#include "plugins/train/data/dataset.h"

namespace muster::train {

/// Reads `spec.folder`/train and /val (or /test), each with one folder a class; classes are numbered in the
/// order of their names, and both splits must have the same. Training crops at random and mirrors, testing
/// takes the middle, as in Krizhevsky, Sutskever, Hinton 2012 and Szegedy et al. 2014.
Result<std::unique_ptr<Dataset>> openImageFolder(const DatasetSpec& spec);

}  // namespace muster::train

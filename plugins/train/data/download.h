// SPDX-License-Identifier: Apache-2.0
// Fetches data sets from their publishers.
#pragma once

#include <filesystem>

#include "plugins/sdk/plugin.h"
#include "plugins/train/data/dataset.h"

namespace muster::train {

/// Where the files of `spec` go: a directory of Muster's own in the one that the plan names, so that nothing
/// of a download is seen by whoever reads that one, and nobody else's file is taken for one of them.
std::filesystem::path downloadFolder(const DatasetSpec& spec);

/// Makes sure that the files of `spec` are in downloadFolder(): what is missing is fetched, going on where an
/// earlier try was cut off, over HTTPS, and is put in place only once its SHA-256 is right; what is there
/// already must have it too. Several processes may call it at once. `url` replaces the publisher's address of
/// the folder that holds the files; empty: the publisher's.
Status fetchDataset(const sdk::Host& host, const DatasetSpec& spec, const std::string& url);

}  // namespace muster::train

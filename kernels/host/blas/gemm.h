// SPDX-License-Identifier: Apache-2.0
// The host's Gemm: operands in device memory, one or several libraries to choose from.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/host/blas/multiplier.h"

namespace muster::host {

/// A library that may do the work: its algorithm's name and its multiplier.
using Candidate = std::pair<std::string, std::unique_ptr<Multiplier>>;

/// `chosen` is the name of the algorithm that an earlier Gemm of this shape found fastest, or empty.
/// prepare() fills it, so that repeats of one case measure one algorithm.
Result<std::unique_ptr<Gemm>> makeGemm(Device& device, const GemmSpec& spec,
                                       std::vector<Candidate> candidates, std::string& chosen);

}  // namespace muster::host

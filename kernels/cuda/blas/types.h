// SPDX-License-Identifier: Apache-2.0
// What cuBLASLt needs to know of a product's element type, and which GPUs have it.
#pragma once

#include <cublasLt.h>

#include <vector>

#include "kernels/interfaces/ops.h"

namespace muster::cuda {

/// One input type of products.
struct GemmType {
  Dtype dtype;
  Dtype b;  ///< type of B: e4m3 where A is e5m2, as there are no products of two e5m2 matrices
  cudaDataType_t aType, bType, outputType;
  cublasComputeType_t computeType;
  cudaDataType_t scaleType;  ///< of alpha and beta
  int leastCapability;       ///< 90 for 9.0
  int multiple;              ///< m, n and k must be multiples of it
  bool transposedOnly;       ///< tensor cores take it only with B held transposed
  bool fastAccumulation;     ///< has a mode that is faster and less exact
  int scaleBlock;            ///< elements that share a scale; 0: one scale for all; -1: no scales
};

/// The types that this build's cuBLASLt multiplies.
const std::vector<GemmType>& gemmTypes();

/// kUnsupported names a type that this build or a GPU of `capability` lacks, and what has it.
Result<GemmType> gemmType(Dtype dtype, int capability);

/// kUsage for dimensions that no algorithm takes in this type.
Status checkMultiples(const GemmSpec& spec, const GemmType& type);

/// Bytes of the scales of a matrix of `rows` rows of `k` elements, as cuBLASLt lays them out: tiles of 128
/// rows by 4 blocks.
uint64_t blockScaleBytes(const GemmType& type, int64_t rows, int64_t k);

}  // namespace muster::cuda

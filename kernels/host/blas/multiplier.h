// SPDX-License-Identifier: Apache-2.0
// One library's matrix multiplication of one shape.
#pragma once

#include <memory>
#include <string>

#include "kernels/interfaces/ops.h"

namespace muster::host {

/// C = A x B on row-major matrices of the shape it was made for. C is in gemmOutput().
class Multiplier {
 public:
  virtual ~Multiplier() = default;
  virtual Status run(const void* a, const void* b, void* c) = 0;
  /// Library, version, kernel and threads: "onednn 2.6.3 brg:avx512_core, 8 threads".
  [[nodiscard]] virtual std::string name() const = 0;
};

/// kUnsupported where the library has no fast kernel for the type on this processor.
Result<std::unique_ptr<Multiplier>> makeOnednn(const GemmSpec& spec, int threads);
Result<std::unique_ptr<Multiplier>> makeOpenblas(const GemmSpec& spec, int threads);

}  // namespace muster::host

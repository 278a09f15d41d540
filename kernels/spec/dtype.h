// SPDX-License-Identifier: Apache-2.0
// The element types, alone: for code that a GPU compiler reads too.
#pragma once

namespace muster {

/// Element types by the field's names.
enum class Dtype { kF64, kF32, kTf32, kF16, kBf16, kFp8E4m3, kFp8E5m2, kI8, kFp4 };

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// The verdict as reports write it, and the waivers under which it holds.
#pragma once

#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

/// A waiver that covers at least one failure of this node.
struct Concession {
  std::string part;  ///< "gpu3 (serial 1650523012345)", or the node
  std::string what;  ///< "gemm compute.gemm_throughput dtype=bf16"
  std::string reason;
  std::string approver;
  std::string expires;  ///< "2026-12-31"
  size_t covered = 0;   ///< failures

  /// "gpu3 (serial 1650523012345), gemm compute.gemm_throughput: approved by J. Doe, until 2026-12-31".
  [[nodiscard]] std::string text() const;
};

std::vector<Concession> concessionsOf(const Record& record);

/// "ACCEPTED WITH CONCESSIONS" where a waiver was used, else "ACCEPTED", "REJECTED", "NO GPU" ...
std::string verdictText(const Record& record);

}  // namespace muster

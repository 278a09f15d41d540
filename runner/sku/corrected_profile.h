// SPDX-License-Identifier: Apache-2.0
// Corrects the limits of a profile by what few machines measured: too few to learn how far healthy ones
// spread.
#pragma once

#include "runner/sku/learn.h"
#include "runner/sku/learned_profile.h"
#include "runner/sku/profile.h"

namespace muster {

/// One limit of the base beside what was measured.
struct Correction {
  std::string what;    ///< "compute.gemm_throughput dtype=bf16 size=8192"
  std::string before;  ///< "at least 657 TFLOP/s"
  std::string after;
  std::string measured;  ///< "612 TFLOP/s"
  bool looser = false;   ///< the machines miss the limit of the base
};

struct CorrectedProfile {
  Profile profile;
  std::vector<Correction> corrections;
  std::vector<std::string> confirmed;   ///< limits that were met and stay, with what was measured
  std::vector<std::string> notCounted;  ///< figures that too few nodes measured, with how many did
  size_t kept = 0;  ///< limits that nothing was measured for, or that are no bound of a rate or time
};

/// `base` with those bounds of rates and times moved that the healthy nodes miss, or exceed so far that the
/// bound would be more than 1% tighter. What they measured is the median over nodes of each node's median
/// over its devices; only what most of them measured counts. A bound lies by the base's own tolerance, or by
/// `tolerance` where the base states none, from the median. Each new limit's source says where, when and on
/// how many samples it was measured, and what stood in its place. Errors (kUsage): no healthy node, no
/// measured limit, figures that are damaged or physically impossible.
Result<CorrectedProfile> correctedProfile(const Profile& base, const LearnInput& input, double tolerance,
                                          const Provenance& provenance);

}  // namespace muster

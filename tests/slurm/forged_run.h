// SPDX-License-Identifier: Apache-2.0
// Run folders of Slurm that a job of the run's own user has forged: for the test that a sample of them
// drains, accepts and spares nobody, and for `./dev bench attack forgery`, which takes a thousand. What Slurm
// says is given, as it would say it: no forger can change that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runner/slurm/scheduler.h"
#include "tests/support/process.h"

namespace muster::testing {

/// n1, n2 and n5 are accepted, n3 is rejected, n4 was drained before and never ran.
class ForgedRuns {
 public:
  ForgedRuns();
  /// How many ways of forging there are.
  static size_t kinds();
  struct Trial {
    std::string kind;
    std::string problem;  ///< what is wrong with the verdicts; empty: they are right
  };
  /// Forges a copy of the run in one to three ways and asks `muster fleet` and `slurm drain`. The first way
  /// is number `seed % kinds()`. The same seed gives the same.
  [[nodiscard]] Trial forge(uint64_t seed) const;
  /// What is wrong with the verdicts on the run as it is.
  [[nodiscard]] std::string honest() const;

 private:
  struct Verdicts {
    std::set<std::string> drained, accepted, rejected;
    std::set<std::string> lines;  ///< all that is told
    std::string refused;          ///< why nothing was judged at all
  };
  [[nodiscard]] Verdicts judge(const std::filesystem::path& folder) const;
  TempDir folder_;
  std::filesystem::path run_;
  std::vector<slurm::JobInfo> jobs_;  ///< as Slurm has them
  std::set<std::string> told_;        ///< of the run as it is
};

}  // namespace muster::testing

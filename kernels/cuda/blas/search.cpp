// SPDX-License-Identifier: Apache-2.0
// The search for the fastest algorithm.
#include "kernels/cuda/blas/search.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace muster::cuda {
namespace {

constexpr int kBriefly = 2;   ///< runs of each candidate
constexpr int kAtLength = 8;  ///< runs in each round of the final
constexpr int kRounds = 5;    ///< clocks move: finalists take turns, and the fastest round of each counts
constexpr size_t kFinalists = 6;

struct Candidate {
  size_t index = 0;
  double seconds = std::numeric_limits<double>::infinity();  ///< of one run
};

}  // namespace

Result<size_t> fastest(size_t candidates, const std::function<Result<double>(size_t, int)>& seconds) {
  std::vector<Candidate> able;
  Error reason = {ErrorCode::kUnsupported, "there is no algorithm to choose from", ""};
  for (size_t i = 0; i < candidates; ++i) {
    Result<double> took = seconds(i, kBriefly);
    if (took.ok())
      able.push_back({i, *took / kBriefly});
    else if (took.error().code == ErrorCode::kUnsupported)
      reason = std::move(took).error();
    else
      return std::move(took).error();
  }
  if (able.empty()) return reason;
  const auto faster = [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; };
  std::stable_sort(able.begin(), able.end(), faster);
  able.resize(std::min(able.size(), kFinalists));
  if (able.size() == 1) return able[0].index;
  for (Candidate& one : able) one.seconds = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round)
    for (Candidate& one : able) {
      MUSTER_TRY(double took, seconds(one.index, kAtLength));
      one.seconds = std::min(one.seconds, took / kAtLength);
    }
  return std::min_element(able.begin(), able.end(), faster)->index;
}

}  // namespace muster::cuda

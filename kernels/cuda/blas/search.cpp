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
  bool failed = false;
};

}  // namespace

Result<size_t> fastest(size_t candidates, const std::function<Result<double>(size_t, int)>& seconds,
                       const std::function<Status()>& usable) {
  std::vector<Candidate> able(candidates);
  for (size_t i = 0; i < candidates; ++i) able[i].index = i;
  Error reason = {ErrorCode::kUnsupported, "there is no algorithm to choose from", ""};
  // Times all that are left, and leaves out those that fail.
  const auto run = [&](int runs) -> Status {
    for (Candidate& one : able) {
      Result<double> took = seconds(one.index, runs);
      one.failed = !took.ok();
      if (took.ok()) {
        one.seconds = std::min(one.seconds, *took / runs);
        continue;
      }
      MUSTER_CHECK_OK(usable());
      if (reason.code == ErrorCode::kUnsupported) reason = std::move(took).error();
    }
    std::erase_if(able, [](const Candidate& one) { return one.failed; });
    return able.empty() ? Status(reason) : Status();
  };
  if (able.empty()) return reason;
  MUSTER_CHECK_OK(run(kBriefly));
  const auto faster = [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; };
  std::stable_sort(able.begin(), able.end(), faster);
  able.resize(std::min(able.size(), kFinalists));
  if (able.size() == 1) return able[0].index;
  for (Candidate& one : able) one.seconds = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) MUSTER_CHECK_OK(run(kAtLength));
  return std::min_element(able.begin(), able.end(), faster)->index;
}

}  // namespace muster::cuda

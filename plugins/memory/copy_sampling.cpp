// SPDX-License-Identifier: Apache-2.0
// Timing and checking of copies, for the tests host_copy and peer.
#include "plugins/memory/copy_sampling.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/spec/pattern.h"

namespace muster::memory {

Result<std::vector<double>> sampleCopy(const Bench& bench, Copies& copies,
                                       const std::vector<Transfer>& transfers, CopyEngine engine,
                                       const SamplingOptions& options,
                                       const std::function<bool(double)>& keepGoing) {
  MUSTER_TRY(Sampling sampling,
             sampleWork(
                 bench.device, [&] { return copies.copy(transfers, engine); }, options, keepGoing));
  double bytes = 0;
  for (const Transfer& transfer : transfers) bytes += static_cast<double>(transfer.to->bytes());
  std::vector<double> rates;
  for (double seconds : sampling.seconds) rates.push_back(bytes / seconds);
  return rates;
}

void Steps::announce(const std::string& text) const {
  host_.progress(static_cast<double>(done_) / static_cast<double>(count_), text);
}

std::function<bool(double)> Steps::next(const std::string& text) {
  const size_t done = done_++;
  return [this, done, text](double fraction) {
    host_.progress((static_cast<double>(done) + fraction) / static_cast<double>(count_), text);
    return !host_.cancelled();
  };
}

uint64_t randomPattern(uint64_t seed, uint64_t use) {
  return std::max(scatter(scatter(seed) + use), static_cast<uint64_t>(Pattern::kFirstRandom));
}

void WrongBytes::add(const Bench& bench, const Mismatch& mismatch, const std::string& path) {
  count_ += mismatch.wrong;
  if (mismatch.wrong == 0 || !logged_.insert(path).second) return;
  bench.host.log(
      MUSTER_LOG_ERROR,
      fmt::format("{}: {} bytes differ after a copy, the first at byte offset {:#x}: expected {:#018x}, "
                  "found {:#018x}",
                  path, mismatch.wrong, mismatch.firstOffset, mismatch.expectedBits, mismatch.actualBits));
}

}  // namespace muster::memory

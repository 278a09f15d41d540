// SPDX-License-Identifier: Apache-2.0
// Which samples a rank reads in which batch: shuffled by seed and epoch, no sample twice, none for two ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runner/core/result.h"

namespace muster::train {

struct SamplerSpec {
  uint64_t size = 0;  ///< samples of the data set
  int rank = 0;
  int ranks = 1;
  int batch = 1;          ///< samples of one rank's batch
  bool shuffle = true;    ///< anew in each epoch, by `seed`
  bool wholeSet = false;  ///< the last batches may be short, so that every sample is read: for a test set
  uint64_t seed = 0;
};

/// Batches of one rank, numbered from 0 on through all epochs. A training epoch has as many full batches as
/// every rank can have; the few samples left over are others in each epoch. Thread-safe.
class Sampler {
 public:
  static Result<std::unique_ptr<Sampler>> make(const SamplerSpec& spec);

  [[nodiscard]] uint64_t batchesPerEpoch() const { return batchesPerEpoch_; }
  [[nodiscard]] uint64_t epochOf(uint64_t batch) const { return batch / batchesPerEpoch_; }
  /// Sample numbers of a batch; fewer than `batch` (none, even) at the end of a test set.
  [[nodiscard]] std::vector<uint64_t> batch(uint64_t number);

 private:
  using Order = std::shared_ptr<const std::vector<uint32_t>>;
  explicit Sampler(const SamplerSpec& spec);
  Order order(uint64_t epoch);

  SamplerSpec spec_;
  uint64_t batchesPerEpoch_ = 0;
  std::mutex mutex_;
  std::map<uint64_t, Order> orders_;  ///< of the epochs that are being read
};

}  // namespace muster::train

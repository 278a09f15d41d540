// SPDX-License-Identifier: Apache-2.0
// Reads batches ahead on several threads, and hands them out in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "plugins/train/data/dataset.h"
#include "plugins/train/data/sampler.h"

namespace muster::train {

/// Samples of one step of one rank. Rows beyond `valid` (only at the end of a test set) hold what was
/// there before, and have label 0.
struct Batch {
  uint64_t number = 0;
  int valid = 0;
  std::vector<float> images;    ///< [batch, channels, height, width]
  std::vector<int32_t> tokens;  ///< [batch, tokens]
  std::vector<int32_t> labels;  ///< [batch] or [batch, tokens]
};

struct LoaderSpec {
  SamplerSpec sampler;
  int workers = 2;       ///< threads
  int prefetch = 4;      ///< batches that are ready at most
  uint64_t batches = 0;  ///< to hand out in all
  bool augment = false;  ///< random crops and flips, by seed, epoch and sample
};

/// Batches are the same whatever the number of workers. A failed read is the error of its batch; the reader
/// gets it in its turn.
class Loader {
 public:
  /// `dataset` must outlive the loader.
  static Result<std::unique_ptr<Loader>> start(const Dataset& dataset, const LoaderSpec& spec);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; waits for it. Valid until the next call. Past the last one is an error.
  Result<const Batch*> next();
  [[nodiscard]] const Sampler& sampler() const { return *sampler_; }

 private:
  struct Slot {
    Batch batch;
    Status status;
    bool ready = false;
  };
  Loader(const Dataset& dataset, const LoaderSpec& spec, std::unique_ptr<Sampler> sampler);
  void work();
  Status fill(uint64_t number, Batch& batch);

  const Dataset& dataset_;
  LoaderSpec spec_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::condition_variable freed_;
  uint64_t claimed_ = 0;   ///< batches that workers have begun
  uint64_t released_ = 0;  ///< batches whose memory may be used again
  uint64_t handed_ = 0;    ///< batches that next() gave out
  bool holding_ = false;   ///< the reader has a batch
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace muster::train

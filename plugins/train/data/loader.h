// SPDX-License-Identifier: Apache-2.0
// Reads batches ahead on several threads, and hands them out in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <vector>

#include "plugins/train/data/dataset.h"
#include "plugins/train/data/sampler.h"

namespace muster::train {

/// Gives whole pages, so that they can be pinned without their neighbours.
template <typename T>
struct PageAllocator {
  using value_type = T;
  static constexpr size_t kPage = 1 << 16;  ///< the largest of the kernels for Grace

  PageAllocator() = default;
  template <typename U>
  // NOLINTNEXTLINE(google-explicit-constructor): as the standard asks of allocators
  PageAllocator(const PageAllocator<U>& /*other*/) {}
  T* allocate(size_t count) {
    const size_t pages = (count * sizeof(T) + kPage - 1) / kPage;
    return static_cast<T*>(::operator new (pages* kPage, std::align_val_t{kPage}));
  }
  void deallocate(T* memory, size_t /*count*/) { ::operator delete (memory, std::align_val_t{kPage}); }
  bool operator==(const PageAllocator& /*other*/) const { return true; }
};

/// Samples of one step of one rank. Rows beyond `valid` (only at the end of a test set) hold what was
/// there before, and have label 0.
struct Batch {
  uint64_t number = 0;
  int valid = 0;
  std::vector<float, PageAllocator<float>> images;  ///< [batch, channels, height, width]
  std::vector<int32_t> tokens;                      ///< [batch, tokens]
  std::vector<int32_t> labels;                      ///< [batch] or [batch, tokens]
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
  /// Where the images of all batches lie, as long as the loader lives.
  std::vector<std::span<float>> imageMemory();

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

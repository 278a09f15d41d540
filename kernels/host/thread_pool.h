// SPDX-License-Identifier: Apache-2.0
// Threads that are pinned once and woken for every kernel, so that memory stays with the thread that touched
// it first.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace muster::host {

/// One worker per processor. With a single processor the caller does the work itself.
class ThreadPool {
 public:
  explicit ThreadPool(const std::vector<int>& cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] size_t size() const { return size_; }

  /// Calls task(worker) once on each worker, 0 to size()-1, and waits for all. Tasks must not throw.
  void run(const std::function<void(size_t)>& task);

  /// Calls task(worker, begin, end) on a page-aligned share of `bytes`: always the same share for the same
  /// size.
  void split(uint64_t bytes, const std::function<void(size_t, uint64_t, uint64_t)>& task);

 private:
  void work(size_t worker, int cpu);

  size_t size_;
  std::vector<std::thread> threads_;
  const std::function<void(size_t)>* task_ = nullptr;
  std::atomic<uint32_t> round_{0};    ///< counts up to start a round; ~0 ends the workers
  std::atomic<uint32_t> pending_{0};  ///< workers that have not finished the round
};

}  // namespace muster::host

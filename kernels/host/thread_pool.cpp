// SPDX-License-Identifier: Apache-2.0
// The pool of pinned workers; see thread_pool.h.
#include "kernels/host/thread_pool.h"

#include <algorithm>

#include "kernels/host/cpus.h"

namespace muster::host {
namespace {

constexpr uint32_t kEnd = ~0u;
constexpr uint64_t kPage = 4096;

}  // namespace

ThreadPool::ThreadPool(const std::vector<int>& cpus) : size_(std::max<size_t>(cpus.size(), 1)) {
  if (size_ == 1) return;
  threads_.reserve(size_);
  for (size_t i = 0; i < size_; ++i) threads_.emplace_back([this, i, cpu = cpus[i]] { work(i, cpu); });
}

ThreadPool::~ThreadPool() {
  round_.store(kEnd, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::work(size_t worker, int cpu) {
  // The processor is one of this process's own; should it vanish meanwhile, running elsewhere is right.
  (void)bindThread({cpu});
  for (uint32_t seen = 0;;) {
    round_.wait(seen, std::memory_order_acquire);
    seen = round_.load(std::memory_order_acquire);
    if (seen == kEnd) return;
    (*task_)(worker);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

void ThreadPool::run(const std::function<void(size_t)>& task) {
  if (threads_.empty()) return task(0);
  task_ = &task;
  pending_.store(static_cast<uint32_t>(size_), std::memory_order_relaxed);
  const uint32_t next = round_.load(std::memory_order_relaxed) + 1;
  round_.store(next == kEnd ? 1 : next, std::memory_order_release);
  round_.notify_all();
  for (uint32_t left = pending_.load(std::memory_order_acquire); left != 0;
       left = pending_.load(std::memory_order_acquire))
    pending_.wait(left, std::memory_order_acquire);
}

void ThreadPool::split(uint64_t bytes, const std::function<void(size_t, uint64_t, uint64_t)>& task) {
  const uint64_t pages = (bytes + kPage - 1) / kPage;
  const uint64_t share = (pages + size_ - 1) / size_ * kPage;
  run([&](size_t worker) {
    const uint64_t begin = std::min<uint64_t>(worker * share, bytes);
    const uint64_t end = std::min<uint64_t>(begin + share, bytes);
    task(worker, begin, end);
  });
}

}  // namespace muster::host

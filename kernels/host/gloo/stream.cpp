// SPDX-License-Identifier: Apache-2.0
// A queue and its thread.
#include "kernels/host/gloo/stream.h"

#include <utility>

namespace muster::host {

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    queued_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Stream::queue(Work work) {
  const std::lock_guard lock(mutex_);
  queued_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  changed_.notify_all();
}

Status Stream::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queued_.empty() && !busy_; });
  return failure_;
}

bool Stream::idle() {
  const std::lock_guard lock(mutex_);
  return queued_.empty() && !busy_;
}

void Stream::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !queued_.empty(); });
    if (ending_) return;
    const Work work = std::move(queued_.front());
    queued_.pop_front();
    busy_ = true;
    lock.unlock();
    Status status = work();
    lock.lock();
    busy_ = false;
    if (!status.ok()) {
      if (failure_.ok()) failure_ = std::move(status);
      queued_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace muster::host

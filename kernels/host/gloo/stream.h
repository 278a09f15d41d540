// SPDX-License-Identifier: Apache-2.0
// Work that a thread of its own does in order, beside the caller's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "runner/core/result.h"

namespace muster::host {

/// The thread starts with the first work. After a failure what is queued is dropped.
class Stream {
 public:
  using Work = std::function<Status()>;

  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void queue(Work work);
  /// Waits until all queued work is done; the first failure since the stream was made.
  Status drain();
  /// Whether nothing is queued or being done.
  bool idle();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queued_;
  bool busy_ = false;
  bool ending_ = false;
  Status failure_;
  std::thread thread_;
};

}  // namespace muster::host

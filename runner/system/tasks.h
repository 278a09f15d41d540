// SPDX-License-Identifier: Apache-2.0
// Concurrency as a seam: what one object runs at the same time, and how that waits; replaceable in
// simulations.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

namespace muster {

/// The tasks of one object, all of which wait for one kind of news. They share the object's data under a
/// mutex that none of them holds while it waits for anything else.
class Tasks {
 public:
  virtual ~Tasks() = default;
  /// Runs `body` beside the caller.
  virtual void start(std::function<void()> body) = 0;
  /// Releases the lock until notify() or until `seconds` have passed (infinity: no limit); may return early.
  virtual void wait(std::unique_lock<std::mutex>& lock, double seconds) = 0;
  virtual void notify() = 0;
  /// Waits until all tasks have ended, as the owner must have told them to; before it goes.
  virtual void join() = 0;
};

/// Threads of this process.
std::unique_ptr<Tasks> makeThreads();

}  // namespace muster

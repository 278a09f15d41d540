// SPDX-License-Identifier: Apache-2.0
// A connected Gloo context: formed through the group's store, its exceptions turned into errors.
#pragma once

#include <gloo/rendezvous/context.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/host/gloo/endpoint.h"
#include "kernels/interfaces/communicator.h"

namespace muster::host {

/// One rank's connections to all others. Operations run one after the other; abort() may come from any
/// thread.
class GlooGroup {
 public:
  static Result<std::unique_ptr<GlooGroup>> form(const CommunicatorSpec& spec, GroupStore& store);

  [[nodiscard]] int rank() const { return context_->rank; }
  [[nodiscard]] int size() const { return context_->size; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] const std::shared_ptr<gloo::rendezvous::Context>& context() const { return context_; }

  /// Runs one operation of Gloo, `what` in words. Its first failure, or abort(), is the error of every later
  /// one.
  Status run(const char* what, const std::function<void()>& operation);
  /// A tag that no other operation in flight has. The same on all ranks, as all run the same operations.
  uint32_t nextTag() { return ++tag_; }
  /// Breaks all connections: whoever waits on them, here or there, gets an error at once.
  void abort();

 private:
  GlooGroup(const CommunicatorSpec& spec, Endpoint endpoint);
  Status breakWith(const char* what, const std::string& reason);
  /// Remembers the first failure, which is what later calls get.
  Status lost(const char* what, const std::string& reason);
  void closePairs();

  std::string name_;
  Endpoint endpoint_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::atomic<uint32_t> tag_ = 0;
  std::mutex mutex_;  ///< guards broken_
  Status broken_;
};

}  // namespace muster::host

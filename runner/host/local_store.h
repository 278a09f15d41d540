// SPDX-License-Identifier: Apache-2.0
// The key-value store of a group of one rank: the same promises as the shared one, inside the process.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "runner/core/result.h"

namespace muster {

/// Bounded in key length, value size and total size; every wait ends.
class LocalStore {
 public:
  static constexpr size_t kMaxKey = 512;
  static constexpr size_t kMaxTotal = 256u << 20;

  Status set(const std::string& key, std::string value);
  void clear();
  /// Waits until another thread has set `key`, at most `timeout` seconds and until `cancelled` says so.
  Result<std::string> get(const std::string& key, double timeout, const std::function<bool()>& cancelled);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  size_t total_ = 0;
};

}  // namespace muster

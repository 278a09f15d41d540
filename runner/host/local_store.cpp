// SPDX-License-Identifier: Apache-2.0
// Implements the store of a group with one rank.
#include "runner/host/local_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runner/core/text.h"

namespace muster {

Status LocalStore::set(const std::string& key, std::string value) {
  const std::lock_guard lock(mutex_);
  if (key.empty() || key.size() > kMaxKey)
    return Error{ErrorCode::kUsage,
                 fmt::format("store key of {} bytes, expected 1 to {}", key.size(), kMaxKey), ""};
  const auto old = values_.find(key);
  const size_t kept = old == values_.end() ? 0 : key.size() + old->second.size();
  if (total_ - kept + key.size() + value.size() > kMaxTotal)
    return Error{ErrorCode::kUsage, fmt::format("the store would hold more than {} bytes", kMaxTotal), ""};
  total_ += key.size() + value.size() - kept;
  values_[key] = std::move(value);
  changed_.notify_all();
  return {};
}

void LocalStore::clear() {
  const std::lock_guard lock(mutex_);
  values_.clear();
  total_ = 0;
}

Result<std::string> LocalStore::get(const std::string& key, double timeout,
                                    const std::function<bool()>& cancelled) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLongest = 1e6;
  if (!(timeout >= 0))
    return Error{ErrorCode::kUsage, fmt::format("store timeout {}, expected 0 or more", timeout), ""};
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(timeout < kLongest ? timeout : kLongest));
  std::unique_lock lock(mutex_);
  while (true) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    if (cancelled())
      return Error{ErrorCode::kTimeout, "cancelled while waiting for store key " + printable(key), ""};
    const auto now = Clock::now();
    if (now >= deadline)
      return Error{ErrorCode::kTimeout,
                   fmt::format("store key {} was not set in {} s", printable(key), timeout), ""};
    // A signal handler cannot notify a condition variable, so cancellation is looked at now and then.
    changed_.wait_until(lock, std::min(deadline, now + std::chrono::milliseconds(50)));
  }
}

}  // namespace muster

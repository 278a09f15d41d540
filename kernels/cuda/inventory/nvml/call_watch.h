// SPDX-License-Identifier: Apache-2.0
// Names a call of NVML that does not return: the process that hangs in it is killed at its deadline, and what
// it wrote last is all that is left of it.
#pragma once

#include <string>

namespace muster::cuda {

/// Around one call. When it takes longer than kSlow, a thread writes a line to stderr, once: "NVML:
/// nvmlDeviceGetPowerUsage of gpu2 has not returned for 0.5 s".
class WatchedCall {
 public:
  static constexpr double kSlow = 0.5;  ///< seconds; calls of a healthy driver take milliseconds

  WatchedCall(const char* function, const void* device);
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  /// What `device` is called in messages.
  static void name(const void* device, const std::string& id);
};

}  // namespace muster::cuda

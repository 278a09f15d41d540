// SPDX-License-Identifier: Apache-2.0
// What NCCL keeps once a process: its environment, which it reads once, and its log.
#pragma once

#include <mutex>

#include "kernels/cuda/nccl/log.h"
#include "kernels/cuda/nccl/settings.h"

namespace muster::cuda {

/// The log lies in memory (memfd), so that nothing is left behind and no disk fills up.
class NcclProcess {
 public:
  static NcclProcess& get();

  /// Puts the settings into the environment, before NCCL's first call. kUsage where an earlier group of this
  /// process had others: NCCL would go on with those.
  Status configure(const Settings& settings);
  /// What NCCL has said until now. What was read is given back to the system.
  Result<NcclLog> log();

 private:
  Status openLog();

  std::mutex mutex_;
  bool configured_ = false;
  Settings settings_;
  int file_ = -1;
  int64_t read_ = 0;  ///< bytes
  NcclLogReader reader_;
};

}  // namespace muster::cuda

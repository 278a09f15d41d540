// SPDX-License-Identifier: Apache-2.0
// How long the clocks of GPUs were held down, and by what.
#pragma once

#include <map>

#include "kernels/cuda/inventory/gpu.h"

namespace muster::cuda {

/// Reads throttle times. The driver's counters are used where their ids are certain; what it has none for is
/// taken from the event reasons of the samples: a reason that holds now is taken to hold since the last
/// sample. Thermal time that is not certainly the software's counts as the hardware's.
class Throttling {
 public:
  /// Adds the readings of the collector's GPU at time `at`, in seconds.
  void read(GpuCollector& collector, double at);

 private:
  /// A cause's time: its counter at the first sample, and the time that samples saw since.
  struct Cause {
    double counterAtFirst = 0;
    double sampled = 0;
  };
  struct Seen {
    double at = 0;
    Cause thermal, software, brake, hardware;
    bool slowedBySoftware = false;  ///< in the sample
    bool slowedByHardware = false;
    double policy = 0;            ///< thermal time that the driver counted whatever its cause, seconds
    double policyOfSoftware = 0;  ///< what of it is the software's
  };
  struct Times {
    Answer<double> thermal, software, brake;
  };
  static Times countedTimes(const Nvml& nvml, nvmlDevice_t device, Seen& seen, bool bySoftwareAlone);
  std::map<nvmlDevice_t, Seen> seen_;
};

}  // namespace muster::cuda

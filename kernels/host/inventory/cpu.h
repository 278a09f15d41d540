// SPDX-License-Identifier: Apache-2.0
// The processors: which ones we may use, what they are, how busy and how fast they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/host/inventory/root.h"

namespace muster {

/// What /proc/cpuinfo says of the first processor; all of a machine are taken to be alike.
struct CpuModel {
  std::string name;
  std::string vendor;
  std::string microcode;
  int family = 0;
  std::string flags;  ///< " fpu vme ... " with a space on both sides of each
  [[nodiscard]] bool has(const std::string& flag) const {
    return flags.find(" " + flag + " ") != std::string::npos;
  }
};
CpuModel readCpuModel(const Root& root);

/// Processors that this process may run on (sched_getaffinity), in order.
std::vector<int> affinity();

/// Processors that are online; the affinity where the kernel does not tell.
std::vector<int> onlineCpus(const Root& root);

/// CPU time of the whole machine since boot, in seconds, from the first line of /proc/stat. Its steps are
/// those of the kernel's tick, 0.01 s.
struct CpuTimes {
  double busy = 0;        ///< user, nice, system, interrupts
  double idle = 0;        ///< idle and waiting for I/O
  double steal = 0;       ///< taken by the hypervisor for others
  double interrupts = 0;  ///< of the busy time: hard and soft interrupts, which no process has
};
Result<CpuTimes> readCpuTimes(const Root& root);

/// The clock that cpufreq reports now, the fastest of at most eight of `cpus`; none where there is no cpufreq
/// (most virtual machines).
std::optional<double> reportedClockHz(const Root& root, const std::vector<int>& cpus);

/// The clock of the processor we are on: one dependent integer addition takes one cycle on every x86 and Arm
/// core, so a chain of them counts cycles. Takes about a millisecond; what other work disturbs is repeated.
double measureClockHz();

/// Seconds that `cpus` spent throttled by heat since boot, the longest of them; none where the kernel does
/// not tell.
std::optional<double> thermalThrottleSeconds(const Root& root, const std::vector<int>& cpus);

}  // namespace muster

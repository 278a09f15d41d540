// SPDX-License-Identifier: Apache-2.0
// The kernel's log: hardware errors that it reported since boot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

/// Hardware errors among the lines of a kernel log.
struct HardwareErrors {
  uint64_t count = 0;  ///< events: one line each of machine checks, memory failures and PCIe errors
  std::string last;    ///< the last such line, printable
};

/// The whole kernel log as far back as its ring buffer reaches, by syslog(2), so without a /dev/kmsg. Where
/// it is forbidden (dmesg_restrict, seccomp in a container) the error says what to do.
Result<std::string> readKernelLog();

/// Finds hardware errors: "[Hardware Error]" (machine checks, APEI), "Memory failure:" (a page lost), "EDAC
/// ... UE" (uncorrected memory error), "AER: " with "Uncorrect" (PCIe).
HardwareErrors findHardwareErrors(std::string_view log);

}  // namespace muster

// SPDX-License-Identifier: Apache-2.0
// What one line of the kernel's log says about the hardware.
#pragma once

#include <string>
#include <string_view>

namespace muster {

enum class LogKind {
  kNone,           ///< nothing, or the details of an event that another line reports
  kXid,            ///< of NVIDIA's driver; `xidClass` says what it means
  kFallenOffBus,   ///< the same event as XID 79, in other words
  kSxid,           ///< of an NVSwitch
  kHardwareError,  ///< machine check, lost memory page, uncorrected memory or PCIe error, NVLink training
  kHcaError,       ///< of an HCA: its power, PCIe link, temperature, cable or firmware
};

struct LogLine {
  LogKind kind = LogKind::kNone;
  std::string address;  ///< of kXid, kFallenOffBus and kSxid: "0000:4e:00"; empty where the line has none
  int code = 0;         ///< the XID or SXid
  bool fatal = true;    ///< of an SXid, and of an XID whose text says Fatal or Nonfatal
};

/// Reads a line as printk writes it, with or without level, time and host.
LogLine readLogLine(std::string_view line);

/// The address in a line that begins a report of several lines about a GPU ("NVRM: The NVIDIA GPU
/// 0000:4e:00.0"), of which only a later one says what happened; else empty.
std::string gpuInLogLine(std::string_view line);

}  // namespace muster

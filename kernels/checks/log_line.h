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
  kHcaLinkDown,    ///< an Ethernet port of an HCA has lost its link, or has none yet after its driver's start
  kHcaLinkUp,      ///< it has its link
};

struct LogLine {
  LogKind kind = LogKind::kNone;
  std::string address;  ///< of kXid, kFallenOffBus and kSxid: "0000:4e:00"; of a link its interface: "ens1f0"
  int code = 0;         ///< the XID or SXid
  bool fatal = true;    ///< of an SXid, and of an XID whose text says Fatal or Nonfatal
};

/// Reads one message of the log, with or without level, time and host. It counts only if it is the kernel's
/// and begins as the driver begins it: what a user may choose, a process' name or a file's, stands elsewhere.
LogLine readLogLine(std::string_view line);

}  // namespace muster

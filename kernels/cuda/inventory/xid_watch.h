// SPDX-License-Identifier: Apache-2.0
// Counts XIDs of each GPU, by NVML's events from now on and by the kernel's log; and SXids, by the log.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/inventory/gpu.h"

namespace muster::cuda {

/// Events of one kind: how many, and the last one's number.
struct XidTally {
  int count = 0;
  int last = 0;  ///< 0: none
};

/// XIDs of one GPU that were seen; those that ask for nothing are left out.
struct XidCount {
  XidTally fatal, application, information;
  /// An XID whose line in the log says Fatal or Nonfatal counts as that.
  void add(int xid, bool fatalByText = true);
};

/// SXids of all NVSwitches: "SXid 20034 at 0000:c1:00: ..." is the text of the last one.
struct SxidCount {
  int fatal = 0, nonfatal = 0;
  std::string lastFatal, lastNonfatal;
};

/// What the kernel's log says of GPUs, by PCI address without function ("0000:4e:00"), and of NVSwitches.
struct GpuLog {
  std::map<std::string, XidCount> xids;
  SxidCount sxids;
};
GpuLog readGpuLog(std::string_view log);

class XidWatch {
 public:
  /// Registers for events of all `gpus`; those that were lost before are left out.
  XidWatch(std::shared_ptr<const Nvml> nvml, const std::vector<Gpu>& gpus,
           std::function<Result<std::string>()> kernelLog);
  ~XidWatch();
  XidWatch(const XidWatch&) = delete;
  XidWatch& operator=(const XidWatch&) = delete;

  /// Takes in what happened since the last look. Call once before count() of all GPUs.
  void look();
  /// Adds the counts of the collector's GPU: what the log held at the first look and every event since, or
  /// what the log holds now if that is more. Unreadable when neither events nor the log can be had.
  void count(GpuCollector& collector) const;
  /// Adds the SXids that the log holds; nothing where it cannot be read.
  void countSwitches(Readings& out) const;

 private:
  void takeEvents();
  [[nodiscard]] XidCount eventsOf(nvmlDevice_t device) const;

  std::shared_ptr<const Nvml> nvml_;
  std::function<Result<std::string>()> kernelLog_;
  nvmlEventSet_t set_ = nullptr;
  std::string setProblem_;
  std::map<nvmlDevice_t, std::string> problems_;  ///< of devices whose events cannot be had
  std::map<nvmlDevice_t, std::vector<int>> events_;
  GpuLog before_;           ///< at the first look
  GpuLog logged_;           ///< and now
  std::string logProblem_;  ///< why the log cannot be read; empty: it can
  bool looked_ = false;
};

}  // namespace muster::cuda

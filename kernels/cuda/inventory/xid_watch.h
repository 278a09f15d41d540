// SPDX-License-Identifier: Apache-2.0
// Counts XIDs of each GPU: by NVML's events from now on, and by the kernel's log as far as it reaches back.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/inventory/gpu.h"

namespace muster::cuda {

/// XIDs of one GPU that were seen.
struct XidCount {
  int fatal = 0;
  int application = 0;
  int lastFatal = 0;  ///< the XID; 0: none
  int lastApplication = 0;
  void add(int xid);
};

/// XIDs in a kernel log by PCI address without function ("0000:4e:00"): lines such as
/// "NVRM: Xid (PCI:0000:4e:00): 79, pid=1234, GPU has fallen off the bus."
std::map<std::string, XidCount> xidsInLog(std::string_view log);

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

 private:
  void takeEvents();

  std::shared_ptr<const Nvml> nvml_;
  std::function<Result<std::string>()> kernelLog_;
  nvmlEventSet_t set_ = nullptr;
  std::string setProblem_;
  std::map<nvmlDevice_t, std::string> problems_;  ///< of devices whose events cannot be had
  std::map<nvmlDevice_t, XidCount> events_;
  std::map<std::string, XidCount> before_;  ///< in the log at the first look
  std::map<std::string, XidCount> logged_;  ///< and now
  std::string logProblem_;                  ///< why the log cannot be read; empty: it can
  bool looked_ = false;
};

}  // namespace muster::cuda

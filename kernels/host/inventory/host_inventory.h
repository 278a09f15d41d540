// SPDX-License-Identifier: Apache-2.0
// The inventory of a Linux machine, with its seams: where /proc and /sys are, and who reads the kernel's log.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/host/inventory/kernel_log.h"
#include "kernels/host/inventory/processes.h"
#include "kernels/host/inventory/root.h"
#include "kernels/interfaces/inventory.h"

namespace muster {

/// Where a HostInventory looks.
struct HostSources {
  Root root;
  std::function<Result<KernelLog>()> kernelLog;
  std::string syntheticTopology;   ///< hwloc's words for a made-up machine; empty: the real one
  int self = 0;                    ///< our pid as /proc shows it
  ProcessClock processClock;       ///< none: ticks must do
  std::function<double()> uptime;  ///< seconds since boot, as the kernel's log counts them
};

/// The sources of the running machine.
HostSources machineSources();

/// Inventory and health of this machine.
class HostInventory : public Inventory {
 public:
  explicit HostInventory(HostSources sources);

  Result<std::vector<DeviceInfo>> devices() override;
  Result<Json> node() override;
  /// The first call starts the watch over processes, so shares of CPU time come from the second call on.
  Result<Readings> health(double at, const std::string& load) override;
  Result<Readings> surroundings(const std::string& folder) override;
  void setLogWindow(double seconds) override { askedWindow_ = seconds; }
  [[nodiscard]] double logPosition() const override { return log_.last(); }
  void resumeLog(double position) override;
  [[nodiscard]] double logWindow() const { return askedWindow_.value_or(kLogWindow); }
  /// The kernel's log from the window before the first call on.
  Result<std::string> kernelLog();
  /// That messages were overwritten between two calls of kernelLog(); empty: none were.
  [[nodiscard]] const std::string& missedLog() const { return missedLog_; }

 private:
  void addSensors(Readings& readings) const;
  [[nodiscard]] double externalLoad(const CpuUse& use, double throttled) const;
  void addCpuUse(Readings& readings, double throttledSeconds);
  /// The seconds that our control group was throttled so far.
  double addThrottling(Readings& readings) const;
  void addRdma(Readings& readings) const;
  void addLogErrors(Readings& readings);
  /// Reads the log; the first call fixes where the window begins.
  Status takeLog();

  HostSources sources_;
  CpuWatch watch_;
  std::vector<int> allowed_;
  double throttledSeconds_ = 0;        ///< at the last look
  std::optional<double> askedWindow_;  ///< seconds before the first look that the log has to cover
  std::optional<double> logBegin_;     ///< seconds since boot
  LogHistory log_;
  std::string windowGap_;  ///< what of the window that was asked for the log does not cover; empty: nothing
  std::string missedLog_;
};

}  // namespace muster

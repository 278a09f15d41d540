// SPDX-License-Identifier: Apache-2.0
// The parameters of this plugin's tests.
#pragma once

#include "plugins/sdk/params.h"

namespace muster::env {

struct HealthParams {
  double idleWindow = 0;
  std::string folder;
  std::string kernelLog;
  double kernelLogWindow = 0;

  void declare(sdk::ParamTable& param) {
    param("idle_window", idleWindow, "s", "1s", {"0s", "60s"},
          "How long to measure CPU use by other processes; at least 20 ms, because Linux counts in steps of "
          "10 ms");
    param("folder", folder, "", "Directory whose free space is measured; empty: the run's own");
    param("kernel_log", kernelLog, "required", {"required", "optional", "off"},
          "Handling of an unreadable kernel log: required (error), optional (note) or off (not read)");
    param("kernel_log_window", kernelLogWindow, "s", "2h", {"0s"},
          "How far back before this test the kernel log counts; older lines are history");
  }
};

struct TelemetryParams {
  double interval = 0;
  double duration = 0;
  double start = 0;
  double end = 0;
  int maxSamples = 0;
  std::string load;

  void declare(sdk::ParamTable& param) {
    param("interval", interval, "s", "1s", {"10ms", "1h"}, "Time between samples");
    param("duration", duration, "s", "0s", {"0s"},
          "How long to sample; 0s: until told to stop (real devices)");
    param("start", start, "s", "0s", {"0s"}, "Start of the simulated time span (simulation)");
    param("end", end, "s", "0s", {"0s"}, "End of the simulated time span (simulation)");
    param("max_samples", maxSamples, 600, {2, 100000},
          "Maximum samples of a simulated time span; longer spans use a longer interval");
    param("load", load, "idle", "Simulated load: idle, compute or memory (simulation)");
  }
};

}  // namespace muster::env

// SPDX-License-Identifier: Apache-2.0
// Temperatures and the memory controllers' error counters, from sysfs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/host/inventory/root.h"

namespace muster {

/// The hottest point that one CPU sensor chip or thermal zone reports.
struct CpuTemperature {
  std::string sensor;  ///< "coretemp/Package id 0"
  double celsius = 0;
};

/// One sensor per package where there are hwmon CPU chips (coretemp, k10temp, zenpower, cpu_thermal), else
/// the thermal zones of CPUs; none in most virtual machines.
std::vector<CpuTemperature> readCpuTemperatures(const Root& root);

/// Memory errors that one memory controller counted since its EDAC driver was loaded.
struct MemoryErrors {
  std::string controller;  ///< "mc0", with the DIMM that counts most: "mc0 CPU_SrcID#0_DIMM#1"
  int64_t corrected = 0;
  int64_t uncorrected = 0;
};

/// None where the machine has no EDAC driver: that says nothing about its memory.
Result<std::vector<MemoryErrors>> readMemoryErrors(const Root& root);

}  // namespace muster

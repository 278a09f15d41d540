// SPDX-License-Identifier: Apache-2.0
// What the versions of nvml.h say, as far as the fake NVML answers differently under each. The numbers are
// not those of the code under test; tests/kernels/cuda_inventory/nvml_headers_test.py compares both with the
// headers.
#pragma once

#include <unistd.h>
#include <cstdio>
#include <string>

struct HeaderFacts {
  const char* version;   ///< of NVIDIA's package
  const char* reported;  ///< what a library of that time reports as its version
  unsigned fieldsEnd;    ///< NVML_FI_MAX: fields from here on are unknown
  unsigned slowdowns;    ///< NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, two more after it; 0: none
  unsigned fabricInfo;   ///< the newest version of nvmlGpuFabricInfo
};

/// The fields in this range that are no slowdowns are settings of power smoothing, or unknown.
inline constexpr unsigned kFirstMovingField = 251, kEndOfMovingFields = 274;

inline constexpr HeaderFacts kHeaders[] = {
    {"11.8.86", "11.520.61.05", 167, 0, 0},   {"12.0.140", "12.525.85.12", 170, 0, 1},
    {"12.3.101", "12.545.23.08", 197, 0, 1},  {"12.4.127", "12.550.54.15", 200, 0, 2},
    {"12.6.77", "12.560.35.03", 230, 0, 2},   {"12.8.90", "12.570.124.06", 269, 0, 2},
    {"12.9.79", "12.575.57.08", 274, 251, 2}, {"13.0.39", "13.580.65.06", 274, 251, 3},
    {"13.0.87", "13.580.95.05", 274, 269, 3}, {"13.1.115", "13.590.48.01", 289, 269, 3},
};

inline const HeaderFacts& headerFacts(const std::string& version) {
  for (const HeaderFacts& facts : kHeaders)
    if (version == facts.version) return facts;
  fprintf(stderr, "fake NVML: headers.h has no header %s\n", version.c_str());
  _exit(99);
}

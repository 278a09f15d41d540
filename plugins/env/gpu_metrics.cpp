// SPDX-License-Identifier: Apache-2.0
// Metrics of GPUs that the driver's library alone tells, in the JSON of describe().
#include "plugins/env/gpu_metrics.h"

namespace muster::env {

const char* const kGpuState = R"json([
  {"name": "device_lost", "unit": "bool", "direction": "lower", "labels": ["device", "reason"],
   "summary": "A GPU does not respond: it fell off the bus or needs a reset",
   "standing": {"max": 0, "remedy": "Drain the node and power-cycle it; if the GPU is lost again, reseat or replace it; see dmesg | grep -E 'NVRM|pcieport'"}},
  {"name": "clock_capped", "unit": "bool", "direction": "lower", "labels": ["device"], "optional": true,
   "summary": "An application clock setting limits the clocks",
   "standing": {"max": 0, "severity": "warn", "remedy": "Remove the limit: nvidia-smi -rac, nvidia-smi -rgc"}},
  {"name": "pcie_link_width", "unit": "count", "direction": "higher", "labels": ["device"], "informational": true,
   "summary": "Current PCIe link width in lanes"},
  {"name": "pcie_errors_uncorrected", "unit": "count", "direction": "lower", "labels": ["device"], "optional": true,
   "summary": "Uncorrected PCIe errors of a GPU (AER): since boot, or while a stage ran",
   "standing": {"max": 0, "severity": "warn", "remedy": "Reseat the GPU, check riser and retimer; see dmesg | grep AER"}},
  {"name": "pcie_errors_corrected", "unit": "count", "direction": "lower", "labels": ["device"], "informational": true,
   "optional": true, "summary": "Corrected PCIe errors of a GPU (AER): since boot, or while a stage ran"},
  {"name": "nvlinks_active", "unit": "count", "direction": "higher", "labels": ["device", "inactive"], "informational": true,
   "summary": "NVLinks that are up"},
  {"name": "fabric_ready", "unit": "bool", "direction": "higher", "labels": ["device", "reason"], "informational": true,
   "summary": "The fabric manager has admitted a GPU to the NVSwitches"}
])json";

const char* const kGpuSetup = R"json([
  {"name": "mig_mode", "unit": "bool", "direction": "lower", "labels": ["device"],
   "summary": "MIG is enabled, so the GPU cannot be measured as a whole",
   "standing": {"max": 0, "remedy": "Turn MIG off: nvidia-smi -i GPU -mig 0, then reset the GPU"}},
  {"name": "gpu_processes", "unit": "count", "direction": "lower", "labels": ["device", "processes"],
   "summary": "Compute processes on a GPU before the test",
   "standing": {"max": 0, "severity": "error", "remedy": "Stop the processes that the label names (nvidia-smi), then run again"}},
  {"name": "persistence_mode", "unit": "bool", "direction": "higher", "labels": ["device"],
   "summary": "Persistence mode: the driver stays loaded while the GPU is unused",
   "standing": {"min": 1, "severity": "warn", "remedy": "Start nvidia-persistenced, or nvidia-smi -pm 1: otherwise each start takes seconds and counters are lost"}},
  {"name": "compute_mode_default", "unit": "bool", "direction": "higher", "labels": ["device"], "optional": true,
   "summary": "Compute mode allows several processes per GPU",
   "standing": {"min": 1, "severity": "warn", "remedy": "nvidia-smi -i GPU -c DEFAULT"}},
  {"name": "vbios", "unit": "text", "labels": ["device"], "informational": true, "summary": "Version of a GPU's VBIOS"},
  {"name": "vbios_differs", "unit": "bool", "direction": "lower", "labels": ["device", "versions"],
   "summary": "The VBIOS of a GPU differs from most GPUs of the node",
   "standing": {"max": 0, "remedy": "Flash the VBIOS that its peers have, or ask the vendor which one this board needs"}},
  {"name": "ecc_mode", "unit": "bool", "direction": "higher", "labels": ["device"], "informational": true,
   "summary": "ECC of a GPU's memory is on"},
  {"name": "ecc_errors", "unit": "count", "direction": "lower", "labels": ["device", "memory", "kind", "since"],
   "informational": true, "summary": "ECC errors by memory (sram, dram), kind (corrected, uncorrected) and time (load: since the driver was loaded; ever)"},
  {"name": "remapped_rows", "unit": "count", "direction": "lower", "labels": ["device"], "informational": true, "optional": true,
   "summary": "Memory rows replaced by spare rows"},
  {"name": "retired_pages", "unit": "count", "direction": "lower", "labels": ["device"], "informational": true, "optional": true,
   "summary": "Retired memory pages (GPUs before Ampere)"},
  {"name": "power_limit", "unit": "W", "direction": "higher", "labels": ["device"], "informational": true,
   "summary": "Power limit of a GPU"},
  {"name": "clock_max", "unit": "Hz", "direction": "higher", "labels": ["device"], "informational": true,
   "summary": "Highest clock of a GPU's multiprocessors"},
  {"name": "pcie_link_width_max", "unit": "count", "direction": "higher", "labels": ["device"], "informational": true,
   "summary": "Maximum PCIe lanes of GPU and slot"},
  {"name": "pcie_link_generation_max", "unit": "count", "direction": "higher", "labels": ["device"], "informational": true,
   "summary": "Maximum PCIe generation of GPU and slot"},
  {"name": "nvlink_speed", "unit": "B/s", "direction": "higher", "labels": ["device"], "informational": true,
   "summary": "Rate of a GPU's slowest active NVLink, one-way"},
  {"name": "iommu_translates", "unit": "bool", "direction": "lower", "labels": ["device"], "optional": true,
   "summary": "The IOMMU translates GPU memory accesses, which slows down or breaks peer-to-peer traffic",
   "standing": {"max": 0, "severity": "warn", "remedy": "Boot with iommu=pt (pass-through), or turn the IOMMU off in the BIOS"}},
  {"name": "acs_redirecting_bridges", "unit": "count", "direction": "lower", "labels": ["device", "bridges"], "optional": true,
   "summary": "PCIe bridges above a GPU whose Access Control Services (ACS) redirect peer-to-peer traffic to the root complex",
   "standing": {"max": 0, "severity": "warn", "remedy": "Turn ACS off in the BIOS, or with setpci on the bridges that the label names"}},
  {"name": "acs_state", "unit": "text", "labels": ["device"], "informational": true, "optional": true,
   "summary": "Reason why the ACS state is unknown"},
  {"name": "gpudirect_rdma", "unit": "bool", "direction": "higher", "labels": ["by"], "optional": true,
   "summary": "RDMA devices can reach GPU memory (nvidia_peermem, or DMA-BUF of the open kernel modules)",
   "standing": {"min": 1, "severity": "warn", "remedy": "modprobe nvidia_peermem, or install the driver with its open kernel modules"}}
])json";

}  // namespace muster::env

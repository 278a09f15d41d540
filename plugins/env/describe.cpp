// SPDX-License-Identifier: Apache-2.0
// What the env plugin offers. The texts below are JSON as plugins/abi/README.md describes it, without the
// parameters.
#include "plugins/env/describe.h"

#include <algorithm>

#include "plugins/env/gpu_metrics.h"
#include "plugins/env/growth.h"
#include "plugins/env/params.h"

namespace muster::env {

namespace {

constexpr const char* kInventoryTest = R"json({
  "name": "inventory",
  "summary": "Inventory of devices, host, software and network interfaces, stored as inventory.json",
  "backends": ["host", "sim", "cuda"], "scopes": ["node", "device"], "ranks": 1,
  "metrics": [
    {"name": "device_count", "unit": "count", "direction": "higher", "informational": true,
     "summary": "Devices of the backend that this process can see"},
    {"name": "device_name", "unit": "text", "labels": ["device"], "informational": true, "summary": "Model of a device"},
    {"name": "device_memory", "unit": "B", "direction": "higher", "labels": ["device"], "informational": true,
     "summary": "Memory of a device; on the host of a NUMA node"}
  ]})json";

constexpr const char* kHealthTest = R"json({
  "name": "health",
  "summary": "Preconditions for measuring: limits, control groups, clock, disk space, network, errors, idle CPUs",
  "backends": ["host", "sim", "cuda"], "scopes": ["node", "device"], "ranks": 1})json";

/// Of the node's surroundings: Inventory::surroundings().
constexpr const char* kSurroundings = R"json([
  {"name": "cpu_count", "unit": "count", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Processors that are online"},
  {"name": "cpu_allowed", "unit": "count", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Processors that this process may run on"},
  {"name": "cpu_affinity", "unit": "text", "informational": true, "backends": ["host", "cuda"],
   "summary": "List of these processors"},
  {"name": "cpu_model", "unit": "text", "informational": true, "backends": ["host", "cuda"], "summary": "Model of the CPU"},
  {"name": "numa_nodes", "unit": "count", "informational": true, "backends": ["host", "cuda"],
   "summary": "NUMA nodes that are online"},
  {"name": "kernel", "unit": "text", "informational": true, "backends": ["host", "cuda"], "summary": "Release of the kernel"},
  {"name": "container", "unit": "text", "informational": true, "backends": ["host", "cuda"],
   "summary": "Type of container, or none"},
  {"name": "virtualization", "unit": "text", "informational": true, "backends": ["host", "cuda"],
   "summary": "Type of virtual machine, or none"},
  {"name": "memory_total", "unit": "B", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Memory of the machine"},
  {"name": "memory_available", "unit": "B", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Memory available without swapping"},
  {"name": "swap_total", "unit": "B", "informational": true, "backends": ["host", "cuda"], "summary": "Swap space"},
  {"name": "memory_limit_ratio", "unit": "ratio", "direction": "higher", "labels": ["cgroup"], "informational": true,
   "backends": ["host", "cuda"],
   "summary": "Share of the machine's memory allowed by the strictest control group; 1: no limit"},
  {"name": "memory_errors_uncorrected", "unit": "count", "direction": "lower", "labels": ["controller"],
   "backends": ["host", "cuda"], "optional": true,
   "summary": "Uncorrected errors that a memory controller counted since boot (EDAC)",
                     "standing" : {
  "max" : 0, "remedy" : "Replace the DIMM that the label names; see edac-util -v and the BMC's event log"
}
},
  {"name": "memory_errors_corrected", "unit": "count", "direction": "lower", "labels": ["controller"], "informational": true,
   "backends": ["host", "cuda"], "optional": true, "summary": "Corrected errors since boot (EDAC)"},
  {"name": "memory_error_counters", "unit": "text", "informational": true, "backends": ["host", "cuda"],
   "summary": "Whether this machine counts memory errors"},
  {"name": "hardware_errors", "unit": "count", "direction": "lower", "backends": ["host", "cuda"], "optional": true,
   "summary": "Machine checks, lost memory pages and uncorrected PCIe errors in the kernel log",
   "standing": {"max": 0, "severity": "warn",
                "remedy": "Read dmesg for [Hardware Error], Memory failure, EDAC and AER lines, and the BMC's event log"}},
  {"name": "last_hardware_error", "unit": "text", "informational": true, "backends": ["host", "cuda"], "optional": true,
   "summary": "The last such line"},
  {"name": "hca_log_errors", "unit": "count", "direction": "lower", "labels": ["message"], "finding_labels": ["message"], "backends": ["host", "cuda"], "optional": true,
   "summary": "Messages of HCAs about power, PCIe link, temperature, cables or firmware in the kernel log",
   "standing": {"max": 0, "severity": "warn",
                "remedy": "Read dmesg | grep mlx5_core: check the slot's power and PCIe link, the module's cooling and the cable; then update the firmware"}},
  {"name": "hca_link_flaps", "unit": "count", "direction": "lower", "labels": ["message"], "finding_labels": ["message"], "backends": ["host", "cuda"], "optional": true,
   "summary": "Number of times an Ethernet port of an HCA lost its link, according to the kernel log",
   "standing": {"max": 0, "severity": "warn",
                "remedy": "Read dmesg | grep -E 'mlx5_core.*Link'; unless the link was taken down on purpose, reseat or replace cable and transceiver and look at the switch port"}},
  {"name": "kernel_log", "unit": "text", "informational": true, "backends": ["host", "cuda"],
   "summary": "Whether the kernel log was read, and if not, why"},
  {"name": "limit_memlock", "unit": "B", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Memory that this process may lock (RDMA pins its buffers); 16 EiB: unlimited"},
  {"name": "limit_nofile", "unit": "count", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Files that this process may have open"},
  {"name": "limit_stack", "unit": "B", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Stack that a thread may have; 16 EiB: unlimited"},
  {"name": "shm_size", "unit": "B", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Size of /dev/shm, through which the ranks of a node exchange data"},
  {"name": "disk_free", "unit": "B", "direction": "higher", "labels": ["folder"], "informational": true,
   "backends": ["host", "cuda"], "summary": "Free disk space for results",
     "remedy": "Free space in the directory that the label names, or choose another one with --out"},
  {"name": "clock_source_fast", "unit": "bool", "direction": "higher", "labels": ["source"], "backends": ["host", "cuda"],
   "summary": "The kernel clock can be read in user space (tsc, kvm-clock and similar)",
   "standing": {"min": 1, "severity": "warn",
                "remedy": "The clock is slow or coarse: boot with clocksource=tsc; dmesg | grep -i tsc shows why tsc was rejected"}},
  {"name": "cpu_quota_ratio", "unit": "ratio", "direction": "higher", "labels": ["cgroup"], "backends": ["host", "cuda"],
   "summary": "CPU time allowed by the strictest control group, as a share of the usable processors; 1: no limit",
     "remedy": "Raise or lift the CPU quota of the control group that the label names (cpu.max, cpu.cfs_quota_us, docker --cpus, a pod's limits.cpu)"},
  {"name": "cpu_quota_source", "unit": "text", "informational": true, "backends": ["host", "cuda"],
   "summary": "Description of the quota: amount, base and control group"},
  {"name": "cgroup_throttled_periods", "unit": "count", "direction": "lower", "labels": ["cgroup"], "informational": true,
   "backends": ["host", "cuda"], "summary": "Periods in which the control group was throttled, since its creation"},
  {"name": "nic_up", "unit": "bool", "direction": "higher", "labels": ["interface"], "informational": true,
   "backends": ["host", "cuda"], "optional": true, "summary": "The network interface has a link"},
  {"name": "nic_rate", "unit": "B/s", "direction": "higher", "labels": ["interface"], "informational": true,
   "backends": ["host", "cuda"], "optional": true, "summary": "Line rate, one way"},
  {"name": "nic_errors", "unit": "count", "direction": "lower", "labels": ["interface"], "informational": true,
   "backends": ["host", "cuda"], "optional": true, "summary": "Receive and transmit errors since the interface came up"},
  {"name": "rdma_ports", "unit": "count", "direction": "higher", "informational": true, "backends": ["host", "cuda"],
   "summary": "Ports of RDMA devices (InfiniBand, RoCE)"},
  {"name": "rdma_active", "unit": "bool", "direction": "higher", "labels": ["port"], "informational": true,
   "backends": ["host", "cuda"], "optional": true, "summary": "RDMA port is active"},
  {"name": "rdma_rate", "unit": "B/s", "direction": "higher", "labels": ["port"], "informational": true,
   "backends": ["host", "cuda"], "optional": true, "summary": "Line rate, one way"},
  {"name": "rdma_errors", "unit": "count", "direction": "lower", "labels": ["port"], "informational": true,
   "backends": ["host", "cuda"], "optional": true, "summary": "Sum of the error counters"},
  {"name": "hca_pcie_share", "unit": "ratio", "direction": "higher", "labels": ["hca", "link"], "finding_labels": ["link"], "informational": true,
   "optional": true,
   "summary": "Lanes times speed of an HCA's own PCIe link, as a share of the HCA's maximum; the profile limits it",
     "remedy": "Unless the slot is smaller by design: reseat the HCA, check riser and the BIOS's link speed; see lspci -vv -s ADDRESS (LnkCap, LnkSta)"}
])json";

constexpr const char* kTelemetryTest = R"json({
  "name": "telemetry",
  "summary": "Used by the runner: samples every device during a stage. Counters are reported as their total growth since the last reading of the stage before",
  "backends": ["host", "sim", "cuda"], "scopes": ["node"],
  "metrics": [
    {"name": "unreadable_sources", "unit": "count", "direction": "lower", "labels": ["sources"], "finding_labels": ["sources"],
     "summary": "Telemetry sources that could not be read",
     "standing": {"max": 0, "severity": "error", "remedy": "Give this process access to what the label names, then run again"}},
    {"name": "throttle_thermal", "unit": "s", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
     "summary": "Time throttled by the hardware because of its temperature, or by temperature where the driver does not say by what",
     "standing": {"max": 0, "remedy": "Check fans, inlet temperature, heat sink and neighbours; see nvidia-smi -q -d TEMPERATURE,PERFORMANCE"}},
    {"name": "throttle_software_share", "unit": "ratio", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
     "optional": true, "summary": "Share of the time in which the driver lowered the clocks to keep a GPU at its target temperature; any is a warning",
     "standing": {"max": "1%", "statistic": "mean", "warn_band": 0.9999,
                  "remedy": "The GPU reached its target temperature: check fans, inlet temperature, heat sink and neighbours; see nvidia-smi -q -d TEMPERATURE,PERFORMANCE"}},
    {"name": "throttle_power_brake", "unit": "s", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
     "summary": "Time throttled by the board's external power brake",
     "standing": {"max": 0, "remedy": "Check power supplies, their cables and the rack's power budget"}},
    {"name": "throttle_power_cap", "unit": "s", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
     "informational": true, "summary": "Time throttled by the power limit; normal under full load"},
    {"name": "throttle_power_excess", "unit": "s", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
     "optional": true,
     "summary": "Time throttled by the power limit at a clock more than a quarter below the median of the node's GPUs",
     "standing": {"max": 0, "remedy": "The power limit slows this GPU down far more than its peers: check its limit and power supply; see nvidia-smi -q -d POWER,CLOCK,PERFORMANCE"}},
    {"name": "throttle_hardware", "unit": "s", "direction": "lower", "labels": ["device"], "backends": ["cuda"], "optional": true,
     "summary": "Time in which samples found a hardware slowdown that neither temperature nor the power brake explains",
     "standing": {"max": 0, "severity": "warn", "remedy": "Seen in one sample it can be a change of clocks; if it lasts, check the GPU's power supply; see nvidia-smi -q -d PERFORMANCE"}},
    {"name": "cpu_throttle_thermal", "unit": "s", "direction": "lower", "backends": ["host", "cuda"], "optional": true,
     "summary": "Time a CPU package was throttled by temperature",
     "standing": {"max": 0, "severity": "warn", "remedy": "Check fans, inlet temperature and the CPU's heat sink"}},
    {"name": "cgroup_throttled", "unit": "s", "direction": "lower", "labels": ["cgroup"], "backends": ["host", "cuda"],
     "summary": "Time this control group was throttled by its CPU quota",
     "standing": {"max": 0, "severity": "error", "remedy": "Raise the CPU quota of the control group that the label names (cpu.max, cpu.cfs_quota_us, a container's CPU limit)"}},
    {"name": "pcie_replay", "unit": "count", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
     "informational": true, "summary": "PCIe transfers that were repeated"},
    {"name": "pcie_replays_per_minute", "unit": "count", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
     "informational": true, "optional": true, "summary": "PCIe transfers that were repeated in the last minute; the profile limits them",
     "remedy": "Reseat the GPU, check riser and retimer; see the AER counts in dmesg and nvidia-smi -q (Replays Since Reset)"},
    {"name": "nvlink_errors", "unit": "count", "direction": "lower", "labels": ["device", "links"], "finding_labels": ["links"], "backends": ["sim", "cuda"],
     "informational": true, "optional": true,
     "summary": "NVLink replays and recoveries, from Blackwell on receive and integrity errors too; the profile limits them",
     "remedy": "See nvidia-smi nvlink -e and dmesg | grep -E 'Xid|nvlink' for the link; reset all GPUs, then reseat or replace the baseboard"},
    {"name": "nvlink_crc_errors", "unit": "count", "direction": "lower", "labels": ["device", "links"], "finding_labels": ["links"], "backends": ["sim", "cuda"],
     "informational": true, "optional": true, "summary": "NVLink CRC errors (up to Hopper)"},
    {"name": "nvlink_crc_per_second", "unit": "count", "direction": "lower", "labels": ["device", "links"], "finding_labels": ["links"], "backends": ["sim", "cuda"],
     "informational": true, "optional": true, "summary": "NVLink CRC errors of the last second; the profile limits them",
     "remedy": "See nvidia-smi nvlink -e and dmesg | grep -E 'Xid|nvlink' for the link; reset all GPUs, then reseat or replace the baseboard"},
    {"name": "pcie_link_generation", "unit": "count", "direction": "higher", "labels": ["device"], "backends": ["cuda"],
     "informational": true, "optional": true,
     "summary": "PCIe link generation under load; idle links slow down to save power",
     "remedy": "The link trained below its rate: check the BIOS's link speed setting, riser and retimer; see lspci -vv -s ADDRESS (LnkSta)"},
    {"name": "counters", "unit": "text", "informational": true, "optional": true, "backends": ["host", "cuda"],
     "summary": "Last readings of the error counters, from which the next stage goes on; kept by the runner"}
  ]
})json";

/// Of each RDMA port while a stage runs: kRdmaCounters of kernels/interfaces/rdma.h.
constexpr const char* kRdmaTelemetry = R"json([
  {"name": "rdma_link_downed", "summary": "Number of times the link of an RDMA port went down",
   "standing": {"max": 0, "remedy": "Reseat or replace cable and transceiver, then look at the switch port; see dmesg and mlxlink -d DEVICE"}},
  {"name": "rdma_symbol_errors", "summary": "Symbol errors of an RDMA port after error correction",
   "standing": {"max": 0, "remedy": "Clean or replace cable and transceiver; see mlxlink -d DEVICE --show_ber"}},
  {"name": "rdma_link_error_recoveries", "summary": "Number of times the link of an RDMA port was retrained",
   "standing": {"max": 0, "remedy": "Reseat or replace cable and transceiver"}},
  {"name": "rdma_receive_errors", "summary": "Corrupted packets received at an RDMA port",
   "standing": {"max": 0, "remedy": "Clean or replace cable and transceiver"}},
  {"name": "rdma_link_integrity_errors", "summary": "Number of times the error rate of an RDMA port exceeded the link's limit",
   "standing": {"max": 0, "remedy": "Reseat or replace cable and transceiver"}},
  {"name": "rdma_buffer_overruns", "summary": "Receive buffer overruns of an RDMA port",
   "standing": {"max": 0, "remedy": "Update the firmware of HCA and switch; check the cable"}},
  {"name": "rdma_transmit_discards", "summary": "Packets an RDMA port could not send and dropped",
   "standing": {"max": 0, "severity": "warn", "remedy": "Look for congestion and links that are down"}},
  {"name": "rdma_retransmits", "summary": "Packets retransmitted by an RDMA port",
   "standing": {"max": 0, "severity": "warn", "remedy": "Check flow control (PFC, ECN) on RoCE, cables and switch buffers"}},
  {"name": "rdma_congestion_marks", "summary": "Congestion notifications of an RDMA port", "informational": true},
  {"name": "rdma_transmit_waits", "summary": "Ticks an RDMA port waited for credits", "informational": true}
])json";

/// Of each device and of the node, now: Inventory::health(). Both health and telemetry report them.
constexpr const char* kState = R"json([
  {"name": "temperature", "unit": "degC", "direction": "lower", "labels": ["device", "sensor"], "informational": true,
   "optional": true, "summary": "Temperature of a chip",
     "remedy": "Check fans, inlet temperature and the neighbours' load; compare the GPUs of the node (nvidia-smi -q -d TEMPERATURE)"},
  {"name": "memory_temperature", "unit": "degC", "direction": "lower", "labels": ["device"], "informational": true,
   "backends": ["sim", "cuda"], "optional": true, "summary": "Temperature of a device's memory"},
  {"name": "slowdown_margin", "unit": "degC", "direction": "higher", "labels": ["device"], "informational": true,
   "backends": ["sim", "cuda"], "optional": true, "summary": "Degrees left until a GPU's hardware slows its clocks down; the profile limits it",
     "remedy": "Check fans, inlet temperature and the neighbours' load; compare the GPUs of the node (nvidia-smi -q -d TEMPERATURE)"},
  {"name": "power", "unit": "W", "labels": ["device"], "informational": true, "backends": ["sim", "cuda"],
   "summary": "Power draw of a device"},
  {"name": "clock", "unit": "Hz", "direction": "higher", "labels": ["device"], "informational": true, "optional": true,
   "summary": "Clock of a device's cores"},
  {"name": "utilization", "unit": "ratio", "labels": ["device"], "informational": true, "optional": true,
   "summary": "Utilization of a device or of the machine's CPUs"},
  {"name": "load", "unit": "count", "informational": true, "backends": ["host", "cuda"],
   "summary": "Runnable tasks, averaged over one minute"},
  {"name": "busy_share", "unit": "ratio", "direction": "lower", "labels": ["process", "device"], "finding_labels": ["process"], "optional": true,
   "summary": "CPU utilization of the busiest process outside this run, in CPUs (2: two full CPUs); lower bound",
   "standing": {"max": "25%", "severity": "warn",
                "remedy": "Stop the process that the label names, or move it off this node, then run again"}},
  {"name": "busiest_process", "unit": "text", "labels": ["device"], "informational": true, "optional": true,
   "summary": "Busiest process and its CPU"},
  {"name": "external_load", "unit": "ratio", "direction": "lower", "informational": true, "backends": ["host", "cuda"],
   "optional": true,
   "summary": "Share of CPU time this run lost to other processes, the hypervisor or a CPU quota"},
  {"name": "steal_share", "unit": "ratio", "direction": "lower", "backends": ["host", "cuda"], "optional": true,
   "summary": "Share of CPU time the hypervisor gave to other machines (steal)",
   "standing": {"max": "5%", "severity": "warn", "remedy": "Another virtual machine is busy on this host: ask for dedicated CPUs"}},
  {"name": "ecc_uncorrected", "unit": "count", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
   "summary": "Memory errors not corrected by ECC",
   "standing": {"max": 0, "remedy": "Drain the node, reset the GPU, run again; if errors come back, replace it; see nvidia-smi -q -d ECC"}},
  {"name": "ecc_corrected", "unit": "count", "direction": "lower", "labels": ["device", "memory"], "backends": ["sim", "cuda"],
   "informational": true, "summary": "Memory errors corrected by ECC, by memory (sram, dram) where the driver tells it; the profile limits them",
     "remedy": "Reset the GPU and run the memory pattern test; if the errors come back, ask for a replacement"},
  {"name": "row_remap_pending", "unit": "bool", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
   "summary": "Row remap pending; applied at next GPU reset",
   "standing": {"max": 0, "remedy": "Reset the GPU (nvidia-smi -r) or reboot, then run again"}},
  {"name": "row_remap_failed", "unit": "bool", "direction": "lower", "labels": ["device"], "backends": ["sim", "cuda"],
   "summary": "Row remap failed; no spare row left",
   "standing": {"max": 0, "remedy": "Replace the GPU"}},
  {"name": "xid_fatal", "unit": "count", "direction": "lower", "labels": ["device", "xid"], "finding_labels": ["xid"], "backends": ["sim", "cuda"],
   "summary": "Driver XID errors that report a fault of the GPU or its driver",
   "standing": {"max": 0, "remedy": "Look the XID up in NVIDIA's catalogue; see dmesg | grep Xid; reset or replace the GPU"}},
  {"name": "xid_application", "unit": "count", "direction": "lower", "labels": ["device", "xid"], "finding_labels": ["xid"], "backends": ["sim", "cuda"],
   "summary": "Application XIDs (13, 31, 32, 43, 45, 69, 94); Muster's own kills can cause them",
   "standing": {"max": 0, "severity": "warn", "remedy": "See dmesg | grep Xid for the process that caused it"}},
  {"name": "xid_information", "unit": "count", "direction": "lower", "labels": ["device", "xid"], "finding_labels": ["xid"], "backends": ["sim", "cuda"],
   "informational": true, "summary": "XIDs that report no fault by themselves (154, 162, NVLink errors the driver calls nonfatal)"},
  {"name": "sxid_fatal", "unit": "count", "direction": "lower", "labels": ["sxid"], "finding_labels": ["sxid"], "backends": ["sim", "cuda"], "optional": true,
   "summary": "Fatal SXid errors of NVSwitches in the kernel log",
   "standing": {"max": 0, "remedy": "Look the SXid up in NVIDIA's Fabric Manager guide; see dmesg | grep SXid; reset all GPUs and switches, then replace the baseboard or the cable that the label names"}},
  {"name": "sxid_nonfatal", "unit": "count", "direction": "lower", "labels": ["sxid"], "finding_labels": ["sxid"], "backends": ["sim", "cuda"], "optional": true,
   "summary": "SXid errors of NVSwitches that the driver calls non-fatal; some occur at each start",
   "standing": {"max": 0, "severity": "warn", "remedy": "See dmesg | grep SXid; if they recur under load, treat the link that the label names as faulty"}},
  {"name": "fabric_healthy", "unit": "bool", "direction": "higher", "labels": ["device", "reason"], "finding_labels": ["reason"], "backends": ["sim", "cuda"],
   "optional": true, "summary": "The driver reports full bandwidth, healthy routes and a correct configuration of a GPU's NVLink fabric",
   "standing": {"min": 1, "remedy": "See nvidia-smi -q (Fabric) and the fabric manager's log; reset all GPUs, restart the fabric manager, then reseat or replace the part"}},
  {"name": "last_xid", "unit": "text", "labels": ["device"], "informational": true, "backends": ["sim", "cuda"],
   "optional": true, "summary": "The last XID error"}
])json";

Json literal(const char* text) {
  return Json::parse(text);
}

void append(Json& test, const char* metrics) {
  for (const Json& metric : literal(metrics)) test["metrics"].push_back(metric);
}

void appendForGpus(Json& test, const char* metrics) {
  for (Json metric : literal(metrics)) {
    metric["backends"] = {"cuda"};
    test["metrics"].push_back(std::move(metric));
  }
}

std::string describe() {
  Json health = literal(kHealthTest);
  append(health, kSurroundings);
  append(health, kState);
  appendForGpus(health, kGpuState);
  appendForGpus(health, kGpuSetup);
  Json telemetry = literal(kTelemetryTest);
  append(telemetry, kState);
  appendForGpus(telemetry, kGpuState);
  for (Json metric : literal(kRdmaTelemetry)) {
    metric.update({{"unit", "count"}, {"direction", "lower"}, {"labels", {"port"}}, {"optional", true}});
    telemetry["metrics"].push_back(std::move(metric));
  }
  for (Json& metric : telemetry["metrics"])
    if (isTotal(metric["name"])) metric["total"] = true;
  return sdk::describe({{kInventoryTest, "[]"},
                        {dumpJson(health), sdk::describeParams<HealthParams>()},
                        {dumpJson(telemetry), sdk::describeParams<TelemetryParams>()}});
}

}  // namespace

const std::string& describeText() {
  static const std::string text = describe();
  return text;
}

std::set<std::string> metricNames(const std::string& test, const std::string& backend) {
  std::set<std::string> names;
  const Json described = Json::parse(describeText());
  for (const Json& entry : described["tests"]) {
    if (entry["name"] != test) continue;
    for (const Json& metric : entry["metrics"]) {
      const Json backends = metric.value("backends", entry["backends"]);
      if (std::find(backends.begin(), backends.end(), backend) != backends.end())
        names.insert(metric["name"]);
    }
  }
  return names;
}

}  // namespace muster::env

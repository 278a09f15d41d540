// SPDX-License-Identifier: Apache-2.0
// What the collective plugin offers: JSON as plugins/abi/README.md describes it, without the parameters.
#pragma once

#include "plugins/collective/params.h"

namespace muster::collective {

inline constexpr const char* kSweepTest = R"json({
  "name": "sweep",
  "summary": "Collectives over a range of sizes: bandwidth as nccl-tests counts it, latency, exact correctness, proof of the transport",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["node", "cluster"], "group": true,
  "metrics": [
    {"name": "large_message_bus_bandwidth", "unit": "B/s", "direction": "higher", "leader": true, "series": "runs",
     "labels": ["op", "dtype", "bytes", "placement", "ranks", "nodes"], "peak": "network_bandwidth.{op}",
     "summary": "bus_bandwidth of the largest size; use this metric for limits",
     "remedy": "See collective.transport; then nvidia-smi nvlink -s and -e, the fabric manager's log, and whether NVLS is on (NCCL_DEBUG=INFO); compare with memory.peer_bandwidth of each pair"},
    {"name": "bus_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "series": "runs",
     "summary": "busbw of each sample, by its slowest rank: algorithm bandwidth times the factor of nccl-tests"},
    {"name": "nic_line_rate_share", "unit": "ratio", "direction": "higher", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "optional": true, "series": "runs",
     "summary": "fabric = \"ib-forced\" within a node: bus_bandwidth of the largest size over the line rate of one rank's NIC",
     "remedy": "Compare the HCAs alone (stage loopback, plans/rdma.toml): a slow one delays all. If they pass, see collective.transport for +gdr (nvidia_peermem or DMA-BUF), ACS, and nvidia-smi topo -m for the NIC of each GPU"},
    {"name": "algorithm_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "summary": "algbw of each sample, by its slowest rank: size over time"},
    {"name": "collective_time", "unit": "s", "direction": "lower", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "summary": "time of one run in each sample, on its slowest rank"},
    {"name": "latency", "unit": "s", "direction": "lower", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "optional": true, "summary": "collective_time of sizes up to latency_to"},
    {"name": "collective_wrong_elements", "unit": "count", "direction": "lower", "labels": ["op", "dtype"],
     "summary": "incorrect elements, including NaN, in all checked results of this rank",
     "standing": {"max": 0, "source": "inputs whose results are exact in their type, see kernels/checks/collective_values.h",
                  "remedy": "A rank or link corrupts data: collective_first_fault names the rank if it is known; test its memory and links alone"}},
    {"name": "local_compute_time", "unit": "s", "direction": "lower", "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "local compute time: mean time to fill 16 MiB of inputs, without communication. A rank far above its peers delays every collective",
     "remedy": "This rank delays all others: check for other work on its node and GPU, clocks, throttling, and the CPU that drives it"},
    {"name": "collective_first_fault", "unit": "text", "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "rank, size and element of the first wrong result"},
    {"name": "transport", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "transport used: socket, shm, pcie-p2p, nvlink, mnnvl, ib, roce (optionally +gdr), or a net plugin; several are separated by commas",
     "remedy": "See collective.transport_evidence; then nvidia-smi nvlink -s, nvidia-smi topo -m, and the fabric manager's state"},
    {"name": "gpudirect_rdma", "unit": "bool", "direction": "higher", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "optional": true,
     "summary": "Between nodes, HCAs read and write GPU memory directly (GPUDirect RDMA); false: data passes through host memory or sockets",
     "remedy": "Load nvidia_peermem or use DMA-BUF of the open kernel modules, turn ACS off, and check NCCL_NET_GDR_LEVEL; nvidia-smi topo -m shows whether GPU and NIC share a PCIe switch"},
    {"name": "transport_evidence", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "counters or log that prove the transport"},
    {"name": "transport_bytes", "unit": "B", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "bytes counted on rank 0 during this case"},
    {"name": "fabric", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "fabric = \"auto\": the fabric whose settings were chosen; none: no settings",
     "remedy": "See collective.fabric_evidence; name the fabric in the plan if the NICs do not tell it"},
    {"name": "fabric_evidence", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "detected NICs and cloud that decided the fabric, and the operator's own settings that were not overridden"},
    {"name": "settings_taken", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "settings confirmed by the library, with values"},
    {"name": "unconfirmed_settings", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "settings that the library's log does not confirm: misspelled, or unused on this machine; none: all are confirmed"},
    {"name": "collective_ranks", "unit": "count", "leader": true, "labels": ["op", "dtype"], "informational": true, "summary": "ranks of the group"},
    {"name": "collective_implementation", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "library, version and transport used"}
  ]
})json";

inline std::string describe() {
  return sdk::describe({{kSweepTest, sdk::describeParams<Params>()}});
}

}  // namespace muster::collective

// SPDX-License-Identifier: Apache-2.0
// What the memory plugin offers: JSON as plugins/abi/README.md describes it, without the parameters.
#pragma once

#include "plugins/memory/params.h"

namespace muster::memory {

inline constexpr const char* kBandwidthTest = R"json({
  "name": "bandwidth",
  "summary": "Memory bandwidth as in STREAM: bytes read plus bytes written, buffers larger than the last-level cache",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "metrics": [
    {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op"], "peak": "memory_bandwidth", "series": "runs",
     "summary": "rate of each sample: bytes read plus bytes written",
     "remedy": "Check the memory clock, ECC and row remaps (nvidia-smi -q -d CLOCK,ECC,ROW_REMAPPER) and that no other process uses the GPU; then reset or replace it"},
    {"name": "bandwidth_wrong_elements", "unit": "count", "direction": "lower",
     "summary": "64-bit words that differ after a copy",
     "standing": {"max": 0, "source": "a copy is equal to its source",
                  "remedy": "The memory corrupts data: run memory.pattern and take the device out of service"}},
    {"name": "bandwidth_buffer", "unit": "B", "informational": true, "summary": "size of each buffer"},
    {"name": "bandwidth_warmup", "unit": "s", "labels": ["op"], "informational": true, "summary": "duration of the warm-up"},
    {"name": "bandwidth_steady", "unit": "bool", "labels": ["op"], "informational": true,
     "summary": "whether the warm-up reached a steady rate"},
    {"name": "bandwidth_relative_error", "unit": "ratio", "direction": "lower", "labels": ["op"], "informational": true,
     "summary": "standard error of the rate's mean"}
  ]
})json";

inline constexpr const char* kPatternTest = R"json({
  "name": "pattern",
  "summary": "Writes data patterns over memory and reads them back; names the offset and the bits of the first error",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "metrics": [
    {"name": "pattern_errors", "unit": "count", "direction": "lower",
     "summary": "bytes read back incorrectly, over all patterns and passes",
     "standing": {"max": 0, "source": "memory returns what was written",
                  "remedy": "The memory is faulty at the logged offset: check ECC counters, reseat or replace the module or GPU"}},
    {"name": "pattern_bytes", "unit": "B", "informational": true, "summary": "tested memory"},
    {"name": "pattern_sweeps", "unit": "count", "informational": true, "summary": "checked patterns times passes"},
    {"name": "pattern_read_rate", "unit": "B/s", "direction": "higher", "labels": ["pattern"], "informational": true, "optional": true,
     "series": "runs", "summary": "read and compare rate of each pattern over the whole test",
     "remedy": "Check the memory clock, ECC and row remaps (nvidia-smi -q -d CLOCK,ECC,ROW_REMAPPER) and that no other process uses the GPU; then reset or replace it"},
    {"name": "pattern_first_error", "unit": "text", "informational": true, "optional": true,
     "summary": "device, pattern, offset and bits of the first error"}
  ]
})json";

inline constexpr const char* kLatencyTest = R"json({
  "name": "latency",
  "summary": "Latency of dependent loads: a pointer chase through memory much larger than the caches",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "metrics": [
    {"name": "latency", "unit": "s", "direction": "lower", "series": "runs",
     "summary": "time of one load, including address translation",
     "remedy": "Check the memory clock, ECC and row remaps (nvidia-smi -q -d CLOCK,ECC,ROW_REMAPPER) and that no other process uses the GPU; then reset or replace it"},
    {"name": "latency_ring", "unit": "B", "informational": true, "summary": "size of the ring"},
    {"name": "latency_wrong_ends", "unit": "count", "direction": "lower",
     "summary": "timings that ended at the wrong line",
     "standing": {"max": 0, "source": "a ring is followed in its order",
                  "remedy": "The memory corrupts data: run memory.pattern and take the device out of service"}}
  ]
})json";

inline constexpr const char* kHostCopyTest = R"json({
  "name": "host_copy",
  "summary": "Copies between a device and pinned host memory, each way and both at once, one device at a time",
  "backends": ["sim", "cuda"],
  "scopes": ["node", "device"],
  "metrics": [
    {"name": "host_to_device_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "one-way rate of each sample",
     "remedy": "Check generation and width of the PCIe link under load (nvidia-smi -q), its replays and AER counts, and the BIOS; reseat the GPU"},
    {"name": "device_to_host_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "one-way rate of each sample",
     "remedy": "Check generation and width of the PCIe link under load (nvidia-smi -q), its replays and AER counts, and the BIOS; reseat the GPU"},
    {"name": "host_bidirectional_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "sum of both directions at once",
     "remedy": "Check generation and width of the PCIe link under load (nvidia-smi -q), its replays and AER counts, and the BIOS; reseat the GPU"},
    {"name": "host_copy_wrong_bytes", "unit": "count", "direction": "lower",
     "summary": "bytes that differ after a copy, over all directions",
     "standing": {"max": 0, "source": "a copy is equal to its source",
                  "remedy": "Copies between host and device are corrupted: check PCIe replays and AER counts, reseat the device, test the host's memory"}},
    {"name": "host_copy_numa_node", "unit": "text", "labels": ["numa"], "informational": true,
     "summary": "NUMA node used"}
  ]
})json";

inline constexpr const char* kPeerTest = R"json({
  "name": "peer",
  "summary": "Copies to every other device of the node, one way and both ways at once, one device at a time",
  "backends": ["sim", "cuda"],
  "scopes": ["node", "device"],
  "metrics": [
    {"name": "peer_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["peer", "link", "direction", "engine"], "series": "runs",
     "summary": "rate from this device to the peer (unidirectional), or the sum of both directions at once (bidirectional)",
     "remedy": "Check the links of both GPUs: nvidia-smi nvlink -s and -e, nvidia-smi topo -m, the fabric manager's log; without NVLink also ACS and IOMMU"},
    {"name": "nvlink_peers", "unit": "count", "direction": "higher", "informational": true,
     "summary": "devices of the node that this one reaches by NVLink",
     "remedy": "NVLinks are down or a bridge is missing: nvidia-smi nvlink -s and topo -p2p n, the fabric manager's log; reseat the bridge or the GPU"},
    {"name": "peer_access", "unit": "bool", "direction": "higher", "labels": ["peer"], "informational": true,
     "summary": "whether the devices access each other's memory directly"},
    {"name": "peer_wrong_bytes", "unit": "count", "direction": "lower", "labels": ["device", "peer"],
     "summary": "bytes that differ after a copy to or from this peer",
     "standing": {"max": 0, "source": "a copy is equal to its source",
                  "remedy": "Peer copies are corrupted: find the pair with nvidia-smi nvlink -e and dmesg; then check ACS and IOMMU settings"}}
  ]
})json";

inline std::string describe() {
  return sdk::describe({{kBandwidthTest, sdk::describeParams<BandwidthParams>()},
                        {kPatternTest, sdk::describeParams<PatternParams>()},
                        {kLatencyTest, sdk::describeParams<LatencyParams>()},
                        {kHostCopyTest, sdk::describeParams<HostCopyParams>()},
                        {kPeerTest, sdk::describeParams<PeerParams>()}});
}

}  // namespace muster::memory

// SPDX-License-Identifier: Apache-2.0
// What the memory plugin offers, as plugins/abi/README.md describes it.
#pragma once

namespace muster::memory {

inline constexpr const char* kDescribe = R"json({"tests": [
{
  "name": "bandwidth",
  "summary": "Memory bandwidth as in STREAM: bytes read plus bytes written, buffers larger than the last-level cache",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "params": [
    {"name": "ops", "type": "list", "items": "string", "default": ["read", "write", "copy", "triad"],
     "one_of": ["read", "write", "copy", "triad"], "summary": "kernels to time: copy is a = b, triad a = b + s c"},
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "0 B", "min": "0 B", "max": "16 TiB",
     "summary": "size of each of the three buffers; 0 B: four times the last-level cache, in at most half of the free memory"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "2s", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each kernel; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "1s", "min": "0s", "max": "24h",
     "summary": "minimum sampling time per kernel"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "5s", "min": "0s", "max": "24h",
     "summary": "longest sampling time if the rate has not converged"}
  ],
  "metrics": [
    {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op"], "peak": "memory_bandwidth", "series": "runs",
     "summary": "rate of each sample: bytes read plus bytes written"},
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
},
{
  "name": "pattern",
  "summary": "Writes data patterns over memory and reads them back; names the offset and the bits of the first error",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "1 GiB", "min": "8 B", "max": "16 TiB",
     "summary": "memory to test; an error if more than the free memory"},
    {"name": "fraction", "type": "quantity", "unit": "ratio", "default": "0%", "min": "0%", "max": "95%",
     "summary": "share of free memory to test; 0%: use bytes"},
    {"name": "patterns", "type": "list", "items": "string",
     "default": ["zeros", "ones", "checkerboard", "inverse_checkerboard", "walking_one", "address", "random"],
     "one_of": ["zeros", "ones", "checkerboard", "inverse_checkerboard", "walking_one", "walking_zero", "address",
                "inverse_address", "random"],
     "summary": "patterns to write; see kernels/spec/pattern.h"},
    {"name": "passes", "type": "int", "default": 1, "min": 1, "max": 1000000, "summary": "repetitions of all patterns"}
  ],
  "metrics": [
    {"name": "pattern_errors", "unit": "count", "direction": "lower",
     "summary": "bytes read back incorrectly, over all patterns and passes",
     "standing": {"max": 0, "source": "memory returns what was written",
                  "remedy": "The memory is faulty at the logged offset: check ECC counters, reseat or replace the module or GPU"}},
    {"name": "pattern_bytes", "unit": "B", "informational": true, "summary": "tested memory"},
    {"name": "pattern_sweeps", "unit": "count", "informational": true, "summary": "checked patterns times passes"},
    {"name": "pattern_read_rate", "unit": "B/s", "direction": "higher", "labels": ["pattern"], "informational": true, "optional": true,
     "series": "runs", "summary": "read and compare rate of each pattern over the whole test"},
    {"name": "pattern_first_error", "unit": "text", "informational": true, "optional": true,
     "summary": "device, pattern, offset and bits of the first error"}
  ]
},
{
  "name": "latency",
  "summary": "Latency of dependent loads: a pointer chase through memory much larger than the caches",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "0 B", "min": "0 B", "max": "16 TiB",
     "summary": "size of the ring, rounded down to a power of two of lines; 0 B: at least eight times the last-level cache"},
    {"name": "stride", "type": "quantity", "unit": "B", "default": "256 B", "min": "8 B", "max": "1 GiB",
     "summary": "distance between lines; each is visited once per round, in random order"},
    {"name": "steps", "type": "int", "default": 100000, "min": 1, "max": 1000000000, "summary": "loads per timing"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "1s", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each metric; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "1s", "min": "0s", "max": "24h",
     "summary": "minimum sampling time per metric"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "5s", "min": "0s", "max": "24h",
     "summary": "longest sampling time if the value has not converged"}
  ],
  "metrics": [
    {"name": "latency", "unit": "s", "direction": "lower", "series": "runs",
     "summary": "time of one load, including address translation"},
    {"name": "latency_ring", "unit": "B", "informational": true, "summary": "size of the ring"},
    {"name": "latency_wrong_ends", "unit": "count", "direction": "lower",
     "summary": "timings that ended at the wrong line",
     "standing": {"max": 0, "source": "a ring is followed in its order",
                  "remedy": "The memory corrupts data: run memory.pattern and take the device out of service"}}
  ]
},
{
  "name": "host_copy",
  "summary": "Copies between a device and pinned host memory, each way and both at once, one device at a time",
  "backends": ["sim", "cuda"],
  "scopes": ["node", "device"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "256 MiB", "min": "8 B", "max": "1 TiB",
     "summary": "size of each copy"},
    {"name": "engines", "type": "list", "items": "string", "default": ["copy_engine"], "one_of": ["copy_engine", "kernel"],
     "summary": "copy method: copy engines, or a kernel that reads and writes across the link"},
    {"name": "numa", "type": "list", "items": "string", "default": ["near", "far"], "one_of": ["near", "far"],
     "summary": "NUMA node of the host memory: near (the device's own) or far (the farthest, if there is another)"},
    {"name": "turn_timeout", "type": "quantity", "unit": "s", "default": "5m", "min": "1s", "max": "24h",
     "summary": "timeout for the turns of other ranks"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "500ms", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each metric; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "300ms", "min": "0s", "max": "24h",
     "summary": "minimum sampling time per metric"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "2s", "min": "0s", "max": "24h",
     "summary": "longest sampling time if the value has not converged"}
  ],
  "metrics": [
    {"name": "host_to_device_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "one-way rate of each sample"},
    {"name": "device_to_host_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "one-way rate of each sample"},
    {"name": "host_bidirectional_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "sum of both directions at once"},
    {"name": "host_copy_wrong_bytes", "unit": "count", "direction": "lower",
     "summary": "bytes that differ after a copy, over all directions",
     "standing": {"max": 0, "source": "a copy is equal to its source",
                  "remedy": "Copies between host and device are corrupted: check PCIe replays and AER counts, reseat the device, test the host's memory"}},
    {"name": "host_copy_numa_node", "unit": "text", "labels": ["numa"], "informational": true,
     "summary": "NUMA node used"}
  ]
},
{
  "name": "peer",
  "summary": "Copies to every other device of the node, one way and both ways at once, one device at a time",
  "backends": ["sim", "cuda"],
  "scopes": ["node", "device"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "256 MiB", "min": "8 B", "max": "1 TiB",
     "summary": "size of each copy"},
    {"name": "engines", "type": "list", "items": "string", "default": ["copy_engine"], "one_of": ["copy_engine", "kernel"],
     "summary": "copy method: copy engines, or a kernel that reads and writes across the link"},
    {"name": "turn_timeout", "type": "quantity", "unit": "s", "default": "5m", "min": "1s", "max": "24h",
     "summary": "timeout for the turns of other ranks"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "100ms", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each metric; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "100ms", "min": "0s", "max": "24h",
     "summary": "minimum sampling time per metric"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "1s", "min": "0s", "max": "24h",
     "summary": "longest sampling time if the value has not converged"}
  ],
  "metrics": [
    {"name": "peer_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["peer", "direction", "engine"], "series": "runs",
     "summary": "rate from this device to the peer (unidirectional), or the sum of both directions at once (bidirectional)"},
    {"name": "peer_access", "unit": "bool", "direction": "higher", "labels": ["peer"], "informational": true,
     "summary": "whether the devices access each other's memory directly"},
    {"name": "peer_wrong_bytes", "unit": "count", "direction": "lower", "labels": ["device", "peer"],
     "summary": "bytes that differ after a copy to or from this peer",
     "standing": {"max": 0, "source": "a copy is equal to its source",
                  "remedy": "Peer copies are corrupted: find the pair with nvidia-smi nvlink -e and dmesg; then check ACS and IOMMU settings"}}
  ]
}
]})json";

}  // namespace muster::memory

// SPDX-License-Identifier: Apache-2.0
// What the memory plugin offers, as plugins/abi/README.md describes it.
#pragma once

namespace muster::memory {

inline constexpr const char* kDescribe = R"json({"tests": [
{
  "name": "bandwidth",
  "summary": "Memory bandwidth as STREAM counts it: bytes read plus bytes written, buffers past the last-level cache",
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
     "summary": "time to sample each kernel at least"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "5s", "min": "0s", "max": "24h",
     "summary": "and at most, where the rate stays uncertain"}
  ],
  "metrics": [
    {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op"], "peak": "memory_bandwidth", "series": "runs",
     "summary": "rate of each sample, one-way: read and written bytes"},
    {"name": "bandwidth_wrong_elements", "unit": "count", "direction": "lower",
     "summary": "64-bit words that differ after a copy, NaN included",
     "standing": {"max": 0, "source": "a copy is equal to its source",
                  "remedy": "The memory loses or changes data: run memory.pattern and take the device out of service"}},
    {"name": "bandwidth_buffer", "unit": "B", "informational": true, "summary": "size of each buffer"},
    {"name": "bandwidth_warmup", "unit": "s", "labels": ["op"], "informational": true, "summary": "how long the warm-up took"},
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
     "summary": "memory to test; more than is free is an error"},
    {"name": "fraction", "type": "quantity", "unit": "ratio", "default": "0%", "min": "0%", "max": "95%",
     "summary": "share of the free memory to test in place of bytes; 0%: bytes counts"},
    {"name": "patterns", "type": "list", "items": "string",
     "default": ["zeros", "ones", "checkerboard", "inverse_checkerboard", "walking_one", "address", "random"],
     "one_of": ["zeros", "ones", "checkerboard", "inverse_checkerboard", "walking_one", "walking_zero", "address",
                "inverse_address", "random"],
     "summary": "what to write; see kernels/spec/pattern.h"},
    {"name": "passes", "type": "int", "default": 1, "min": 1, "max": 1000000, "summary": "how often to go through all of them"}
  ],
  "metrics": [
    {"name": "pattern_errors", "unit": "count", "direction": "lower",
     "summary": "bytes that were read back wrong, over all patterns and passes",
     "standing": {"max": 0, "source": "memory returns what was written",
                  "remedy": "The memory is faulty at the logged offset: check ECC counters, reseat or replace the module or GPU"}},
    {"name": "pattern_bytes", "unit": "B", "informational": true, "summary": "memory that was tested"},
    {"name": "pattern_sweeps", "unit": "count", "informational": true, "summary": "patterns times passes that were checked"},
    {"name": "pattern_read_rate", "unit": "B/s", "direction": "higher", "labels": ["pattern"], "informational": true, "optional": true,
     "series": "runs", "summary": "rate at which each pattern was read back and compared, over the whole test"},
    {"name": "pattern_first_error", "unit": "text", "informational": true, "optional": true,
     "summary": "device, pattern, offset, bits of the first error"}
  ]
},
{
  "name": "latency",
  "summary": "Latency of one load that depends on the one before: a pointer chase through memory far past the caches",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "0 B", "min": "0 B", "max": "16 TiB",
     "summary": "size of the ring, rounded down to a power of two of lines; 0 B: at least eight times the last-level cache"},
    {"name": "stride", "type": "quantity", "unit": "B", "default": "256 B", "min": "8 B", "max": "1 GiB",
     "summary": "distance of neighbouring lines; each is visited once a round, in random order"},
    {"name": "steps", "type": "int", "default": 100000, "min": 1, "max": 1000000000, "summary": "loads that are timed at once"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "1s", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each figure; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "1s", "min": "0s", "max": "24h",
     "summary": "time to sample each figure at least"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "5s", "min": "0s", "max": "24h",
     "summary": "and at most, where it stays uncertain"}
  ],
  "metrics": [
    {"name": "latency", "unit": "s", "direction": "lower", "series": "runs",
     "summary": "time of one load, translations of addresses included"},
    {"name": "latency_ring", "unit": "B", "informational": true, "summary": "memory that the ring goes through"},
    {"name": "latency_wrong_ends", "unit": "count", "direction": "lower",
     "summary": "timed pieces that did not end where the ring leads",
     "standing": {"max": 0, "source": "a ring is followed in its order",
                  "remedy": "The memory loses or changes data: run memory.pattern and take the device out of service"}}
  ]
},
{
  "name": "host_copy",
  "summary": "Copies between a device and pinned memory of its host, each way and both at once, one device after the other",
  "backends": ["sim", "cuda"],
  "scopes": ["node", "device"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "256 MiB", "min": "8 B", "max": "1 TiB",
     "summary": "size of each copy"},
    {"name": "engines", "type": "list", "items": "string", "default": ["copy_engine"], "one_of": ["copy_engine", "kernel"],
     "summary": "what moves the bytes: the copy engines, or a kernel that reads and writes across the link"},
    {"name": "numa", "type": "list", "items": "string", "default": ["near", "far"], "one_of": ["near", "far"],
     "summary": "NUMA node of the host memory: the device's own, the farthest one (where there is another)"},
    {"name": "turn_timeout", "type": "quantity", "unit": "s", "default": "5m", "min": "1s", "max": "24h",
     "summary": "how long a rank waits for another one's turn"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "500ms", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each figure; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "300ms", "min": "0s", "max": "24h",
     "summary": "time to sample each figure at least"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "2s", "min": "0s", "max": "24h",
     "summary": "and at most, where it stays uncertain"}
  ],
  "metrics": [
    {"name": "host_to_device_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "one-way rate of each sample"},
    {"name": "device_to_host_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "one-way rate of each sample"},
    {"name": "host_bidirectional_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["engine", "numa"], "series": "runs",
     "summary": "both directions at once: their sum"},
    {"name": "host_copy_wrong_bytes", "unit": "count", "direction": "lower",
     "summary": "bytes that differ after a copy, over all directions",
     "standing": {"max": 0, "source": "a copy is equal to its source",
                  "remedy": "Data is changed between host and device: check PCIe replays and AER counts, reseat the device, test the host's memory"}},
    {"name": "host_copy_numa_node", "unit": "text", "labels": ["numa"], "informational": true,
     "summary": "number of the NUMA node that was near, far or unknown"}
  ]
},
{
  "name": "peer",
  "summary": "Copies to each other device of the node, one way and both ways at once: a row of the peer matrix, one device after the other",
  "backends": ["sim", "cuda"],
  "scopes": ["node", "device"],
  "params": [
    {"name": "bytes", "type": "quantity", "unit": "B", "default": "256 MiB", "min": "8 B", "max": "1 TiB",
     "summary": "size of each copy"},
    {"name": "engines", "type": "list", "items": "string", "default": ["copy_engine"], "one_of": ["copy_engine", "kernel"],
     "summary": "what moves the bytes: the copy engines, or a kernel that reads and writes across the link"},
    {"name": "turn_timeout", "type": "quantity", "unit": "s", "default": "5m", "min": "1s", "max": "24h",
     "summary": "how long a rank waits for another one's turn"},
    {"name": "warmup", "type": "quantity", "unit": "s", "default": "100ms", "min": "0s", "max": "1h",
     "summary": "longest warm-up of each figure; it ends early once the rate is steady"},
    {"name": "min_time", "type": "quantity", "unit": "s", "default": "100ms", "min": "0s", "max": "24h",
     "summary": "time to sample each figure at least"},
    {"name": "max_time", "type": "quantity", "unit": "s", "default": "1s", "min": "0s", "max": "24h",
     "summary": "and at most, where it stays uncertain"}
  ],
  "metrics": [
    {"name": "peer_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["peer", "direction", "engine"], "series": "runs",
     "summary": "rate from this device to the peer (unidirectional), or the sum of both directions at once (bidirectional)"},
    {"name": "peer_access", "unit": "bool", "direction": "higher", "labels": ["peer"], "informational": true,
     "summary": "whether the two reach each other's memory without the host between them"},
    {"name": "peer_wrong_bytes", "unit": "count", "direction": "lower", "labels": ["device", "peer"],
     "summary": "bytes that differ after a copy to or from this peer",
     "standing": {"max": 0, "source": "a copy is equal to its source",
                  "remedy": "Data is changed between two devices: see nvidia-smi nvlink -e, then ACS and IOMMU settings"}}
  ]
}
]})json";

}  // namespace muster::memory

// SPDX-License-Identifier: Apache-2.0
// What the collective plugin offers, as plugins/abi/README.md describes it.
#pragma once

namespace muster::collective {

inline constexpr const char* kDescribe = R"json({"tests": [
{
  "name": "sweep",
  "summary": "Collectives over a range of sizes: bandwidth as nccl-tests counts it, latency, exact correctness, proof of the transport",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["node", "cluster"],
  "params": [
    {"name": "op", "type": "string", "default": "all_reduce", "summary": "collective operation",
     "one_of": ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter", "sendrecv"]},
    {"name": "dtype", "type": "string", "default": "f32", "summary": "element type; skipped if the device does not support it",
     "one_of": ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"]},
    {"name": "reduction", "type": "string", "default": "sum", "one_of": ["sum", "prod", "min", "max", "avg"],
     "summary": "of all_reduce, reduce_scatter and reduce"},
    {"name": "root", "type": "int", "default": 0, "min": 0, "max": 1000000, "summary": "root rank of broadcast, reduce, gather and scatter"},
    {"name": "from", "type": "quantity", "unit": "B", "default": "8 B", "min": "1 B", "max": "16 TiB", "summary": "smallest size"},
    {"name": "to", "type": "quantity", "unit": "B", "default": "128 MiB", "min": "1 B", "max": "16 TiB", "summary": "largest size"},
    {"name": "factor", "type": "float", "default": 2, "min": 1.01, "max": 1000000, "summary": "factor from one size to the next"},
    {"name": "placements", "type": "list", "items": "string", "default": ["out_of_place", "in_place"],
     "one_of": ["out_of_place", "in_place"], "summary": "buffer placement; in_place is skipped for alltoall and sendrecv"},
    {"name": "checks", "type": "int", "default": 1, "min": 1, "max": 1000000,
     "summary": "checked runs of each size and placement before timing; more runs find rarer errors"},
    {"name": "warmup", "type": "int", "default": 5, "min": 0, "max": 1000000, "summary": "untimed runs of each size before timing"},
    {"name": "iterations", "type": "int", "default": 20, "min": 1, "max": 100000, "summary": "samples of each size"},
    {"name": "sample_time", "type": "quantity", "unit": "s", "default": "500us", "min": "0s", "max": "1m",
     "summary": "minimum duration of a sample; shorter runs are repeated"},
    {"name": "latency_to", "type": "quantity", "unit": "B", "default": "1 KiB", "min": "0 B", "max": "16 TiB",
     "summary": "largest size whose time is also reported as latency"},
    {"name": "own_time_probes", "type": "int", "default": 10, "min": 0, "max": 10000,
     "summary": "number of own_time samples; 0: none"},
    {"name": "interface", "type": "string", "default": "", "summary": "network interface or address to use; empty: the backend's choice"},
    {"name": "fabric", "type": "string", "default": "none",
     "one_of": ["none", "ethernet", "ib", "ib-forced", "ib-sharp", "roce", "oci-roce", "coreweave-ib", "nebius-ib", "azure-ib", "aws-efa", "gcp-gib", "gcp-fastrak", "gb200-mnnvl"],
     "summary": "NCCL settings published for this fabric (plugins/collective/fabrics.cpp); `settings` overrides them"},
    {"name": "graph", "type": "bool", "default": false,
     "summary": "time a CUDA graph of the runs, without launch overhead; skipped if the backend has no graphs"},
    {"name": "settings", "type": "string", "default": "",
     "summary": "library settings NAME=value, separated by spaces (NCCL_ALGO=Ring NCCL_P2P_DISABLE=1)"},
    {"name": "call_timeout", "type": "quantity", "unit": "s", "default": "1m", "min": "1ms", "max": "1h",
     "summary": "timeout after which a peer counts as lost"}
  ],
  "metrics": [
    {"name": "large_message_bus_bandwidth", "unit": "B/s", "direction": "higher", "leader": true, "series": "runs",
     "labels": ["op", "dtype", "bytes", "placement", "ranks", "nodes"], "peak": "network_bandwidth.{op}",
     "summary": "bus_bandwidth of the largest size; use this metric for limits"},
    {"name": "bus_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "series": "runs",
     "summary": "busbw of each sample, by its slowest rank: algorithm bandwidth times the factor of nccl-tests"},
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
    {"name": "own_time", "unit": "s", "direction": "lower", "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "local compute time: mean time to fill 16 MiB of inputs, without communication. A rank far above its peers delays every collective"},
    {"name": "collective_first_fault", "unit": "text", "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "rank, size and element of the first wrong result"},
    {"name": "transport", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "transport used: socket, shm, pcie-p2p, nvlink, mnnvl, ib, roce (optionally +gdr), or a net plugin; several are separated by commas"},
    {"name": "transport_evidence", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "counters or log that prove the transport"},
    {"name": "transport_bytes", "unit": "B", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "bytes counted on rank 0 during this case"},
    {"name": "settings_taken", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "settings confirmed by the library, with values"},
    {"name": "unproven_settings", "unit": "count", "direction": "lower", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "settings missing in the library's log: misspelled, or unused on this machine"},
    {"name": "settings_unproven", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "names of the unproven settings"},
    {"name": "collective_ranks", "unit": "count", "leader": true, "labels": ["op", "dtype"], "informational": true, "summary": "ranks of the group"},
    {"name": "collective_implementation", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "library, version and transport used"}
  ]
}
]})json";

}  // namespace muster::collective

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
    {"name": "op", "type": "string", "default": "all_reduce", "summary": "what to run",
     "one_of": ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter", "sendrecv"]},
    {"name": "dtype", "type": "string", "default": "f32", "summary": "type of the elements; skipped where the device has it not",
     "one_of": ["f64", "f32", "tf32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "fp4"]},
    {"name": "reduction", "type": "string", "default": "sum", "one_of": ["sum", "prod", "min", "max", "avg"],
     "summary": "of all_reduce, reduce_scatter and reduce"},
    {"name": "root", "type": "int", "default": 0, "min": 0, "max": 1000000, "summary": "rank that broadcast, reduce, gather and scatter begin or end at"},
    {"name": "from", "type": "quantity", "unit": "B", "default": "8 B", "min": "1 B", "max": "16 TiB", "summary": "smallest size"},
    {"name": "to", "type": "quantity", "unit": "B", "default": "128 MiB", "min": "1 B", "max": "16 TiB", "summary": "largest size"},
    {"name": "factor", "type": "float", "default": 2, "min": 1.01, "max": 1000000, "summary": "from one size to the next"},
    {"name": "placements", "type": "list", "items": "string", "default": ["out_of_place", "in_place"],
     "one_of": ["out_of_place", "in_place"], "summary": "alltoall and sendrecv have no form in place, which is left out"},
    {"name": "checks", "type": "int", "default": 1, "min": 1, "max": 1000000,
     "summary": "checked runs of each size and placement before any is timed; more find errors that are rare"},
    {"name": "warmup", "type": "int", "default": 5, "min": 0, "max": 1000000, "summary": "runs of each size before any is timed"},
    {"name": "iterations", "type": "int", "default": 20, "min": 1, "max": 100000, "summary": "samples of each size"},
    {"name": "sample_time", "type": "quantity", "unit": "s", "default": "500us", "min": "0s", "max": "1m",
     "summary": "shorter runs are repeated within a sample until it lasts about so long"},
    {"name": "latency_to", "type": "quantity", "unit": "B", "default": "1 KiB", "min": "0 B", "max": "16 TiB",
     "summary": "up to this size the time is also reported as latency"},
    {"name": "own_time_probes", "type": "int", "default": 10, "min": 0, "max": 10000,
     "summary": "how often own_time is taken; 0: not at all"},
    {"name": "interface", "type": "string", "default": "", "summary": "network interface or address to talk through; empty: the backend's choice"},
    {"name": "fabric", "type": "string", "default": "none",
     "one_of": ["none", "ethernet", "ib", "ib-forced", "ib-sharp", "roce", "oci-roce", "coreweave-ib", "nebius-ib", "azure-ib", "aws-efa", "gcp-gib", "gcp-fastrak", "gb200-mnnvl"],
     "summary": "NCCL's environment as operators of such a fabric publish it (plugins/collective/fabrics.cpp); settings are added and win"},
    {"name": "graph", "type": "bool", "default": false,
     "summary": "times runs recorded as a CUDA graph, without the cost of their launches; skipped where the backend has no graphs"},
    {"name": "settings", "type": "string", "default": "",
     "summary": "settings of the library as NAME=value, separated by spaces (NCCL_ALGO=Ring NCCL_P2P_DISABLE=1)"},
    {"name": "call_timeout", "type": "quantity", "unit": "s", "default": "1m", "min": "1ms", "max": "1h",
     "summary": "a peer that takes longer is lost"}
  ],
  "metrics": [
    {"name": "large_message_bus_bandwidth", "unit": "B/s", "direction": "higher", "leader": true, "series": "runs",
     "labels": ["op", "dtype", "bytes", "placement", "ranks", "nodes"], "peak": "network_bandwidth.{op}",
     "summary": "bus_bandwidth of the largest size: the one to put a limit on"},
    {"name": "bus_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "series": "runs",
     "summary": "busbw of each sample, by its slowest rank: algorithm bandwidth times the factor of nccl-tests"},
    {"name": "algorithm_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "summary": "algbw of each sample, by its slowest rank: size over time"},
    {"name": "collective_time", "unit": "s", "direction": "lower", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "summary": "time of one run in each sample, on its slowest rank"},
    {"name": "latency", "unit": "s", "direction": "lower", "labels": ["op", "dtype", "bytes", "placement"], "leader": true,
     "informational": true, "optional": true, "summary": "the same, of sizes up to latency_to"},
    {"name": "collective_wrong_elements", "unit": "count", "direction": "lower", "labels": ["op", "dtype"],
     "summary": "elements of all checked results of this rank that are not exactly what they must be, NaN included",
     "standing": {"max": 0, "source": "inputs whose results are exact in their type, see kernels/checks/collective_values.h",
                  "remedy": "A rank or a link corrupts data: collective_first_fault names the rank where that can be told; test its memory and its links alone"}},
    {"name": "own_time", "unit": "s", "direction": "lower", "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "mean time of this rank's own part (filling 16 MiB of inputs), which no other rank has a share in: a rank far above its peers is the straggler they wait for in every collective"},
    {"name": "collective_first_fault", "unit": "text", "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "rank, size and element of the first wrong result"},
    {"name": "transport", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "what carried the bytes: socket, shm, pcie-p2p, nvlink, mnnvl, ib, roce (each maybe +gdr), or a net plugin; several joined by commas"},
    {"name": "transport_evidence", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "which counters or log say so"},
    {"name": "transport_bytes", "unit": "B", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "bytes that they counted in this case on rank 0's side"},
    {"name": "settings_taken", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "settings that the library says it took, with their values"},
    {"name": "unproven_settings", "unit": "count", "direction": "lower", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "settings that the library's log does not name: misspelled, or not needed on this machine"},
    {"name": "settings_unproven", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true, "optional": true,
     "summary": "their names"},
    {"name": "collective_ranks", "unit": "count", "leader": true, "labels": ["op", "dtype"], "informational": true, "summary": "ranks of the group"},
    {"name": "collective_implementation", "unit": "text", "leader": true, "labels": ["op", "dtype"], "informational": true,
     "summary": "library, version and transport that did the work"}
  ]
}
]})json";

}  // namespace muster::collective

// SPDX-License-Identifier: Apache-2.0
// What the rdma plugin offers. The texts below are JSON as plugins/abi/README.md describes it, without the
// parameters.
#include "plugins/rdma/params.h"
#include "plugins/rdma/tests.h"

namespace muster::rdma {
namespace {

constexpr const char* kPerftestTest = R"json({
  "name": "perftest",
  "summary": "Bandwidth and latency of each RDMA port alone: to itself (scope node) or to the same rail of other nodes (scope cluster)",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["node", "cluster"], "ranks": 1, "group": true,
  "metrics": [
    {"name": "write_bandwidth", "unit": "B/s", "direction": "higher", "labels": ["port", "path", "peer"], "informational": true,
     "summary": "RDMA writes, one way, average of each run"},
    {"name": "line_rate_share", "unit": "ratio", "direction": "higher", "labels": ["port", "path", "peer"], "optional": true,
     "summary": "write_bandwidth as a share of the port's line rate, if known"},
    {"name": "write_bandwidth_both_ways", "unit": "B/s", "direction": "higher", "labels": ["port", "path", "peer"],
     "informational": true, "optional": true, "summary": "RDMA writes both ways at once, sum of both"},
    {"name": "send_latency", "unit": "s", "direction": "lower", "labels": ["port", "path", "peer"],
     "summary": "half a round trip of small sends, median of each run"},
    {"name": "send_latency_p99", "unit": "s", "direction": "lower", "labels": ["port", "path", "peer"], "informational": true,
     "summary": "99th percentile of send latency"},
    {"name": "gpu", "unit": "text", "labels": ["port"], "informational": true, "optional": true,
     "summary": "GPU whose memory holds the buffers, and how near it is to the port (nvidia-smi topo)"},
    {"name": "engine", "unit": "text", "informational": true, "summary": "tool or library used"}
  ]
})json";

constexpr const char* kCountersTest = R"json({
  "name": "counters",
  "summary": "Increase of each RDMA port's error counters, under traffic or idle",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["node"], "ranks": 1,
  "metrics": [
    {"name": "missing_counters", "unit": "text", "labels": ["port"], "informational": true, "optional": true,
     "summary": "counters that this port's driver does not have"}
  ]
})json";

/// Metrics of both.
constexpr const char* kPortMetrics = R"json([
  {"name": "port_count", "unit": "count", "direction": "higher", "informational": true, "peak": "rails",
   "summary": "RDMA ports that are used",
     "remedy": "HCAs are missing: see lspci -d 15b3:, dmesg | grep mlx5 and ibstat; if the node has fewer rails by design, set network.rails"},
  {"name": "port_active", "unit": "bool", "direction": "higher", "labels": ["port"],
   "summary": "the port's link is up and active, before and after",
   "standing": {"min": 1, "source": "a port that is down carries nothing",
                "remedy": "Check the cable, the switch port and the subnet manager (ibstat, rdma link); if this port is unused, list the used ports in `hcas`"}},
  {"name": "line_rate", "unit": "B/s", "direction": "higher", "labels": ["port"], "informational": true, "optional": true,
   "peak": "rail_bandwidth",
   "summary": "its line rate, one way",
     "remedy": "The port came up at a lower rate: check cable, transceiver and switch port (ibstat, mlxlink -d DEVICE); if this port is not one of the rails, list the rails in `hcas`; if the network is slower by design, set network.rail_bandwidth"}
])json";

/// Of the counters. Every one is optional: a port has those of its driver.
constexpr const char* kCounterMetrics = R"json([
  {"name": "link_downed", "summary": "number of times the link went down",
   "standing": {"max": 0, "source": "a link that goes down under load is not healthy",
                "remedy": "Reseat or replace cable and transceiver, then look at the switch port; see dmesg and mlxlink -d DEVICE"}},
  {"name": "symbol_errors", "summary": "symbol errors after error correction",
   "standing": {"max": 0, "source": "InfiniBand allows a bit error rate of 1e-12 before and practically none after error correction",
                "remedy": "Clean or replace cable and transceiver; see mlxlink -d DEVICE --show_ber"}},
  {"name": "link_error_recoveries", "summary": "number of link retrainings",
   "standing": {"max": 0, "source": "each one stops traffic for milliseconds", "remedy": "Reseat or replace cable and transceiver"}},
  {"name": "receive_errors", "summary": "corrupted packets received",
   "standing": {"max": 0, "source": "a healthy link damages none", "remedy": "Clean or replace cable and transceiver"}},
  {"name": "link_integrity_errors", "summary": "number of times the error rate exceeded the link's limit",
   "standing": {"max": 0, "source": "a healthy link has none", "remedy": "Reseat or replace cable and transceiver"}},
  {"name": "buffer_overruns", "summary": "receive buffer overruns",
   "standing": {"max": 0, "source": "credits forbid it", "remedy": "Update the firmware of HCA and switch; check the cable"}},
  {"name": "transmit_discards", "summary": "packets dropped because the port could not send them",
   "standing": {"max": 0, "severity": "warn", "source": "a lossless fabric drops none", "remedy": "Look for congestion and links that are down"}},
  {"name": "retransmits", "summary": "retransmitted packets: out of sequence, lost, or acknowledged late",
   "standing": {"max": 0, "severity": "warn", "source": "a lossless fabric needs none",
                "remedy": "Check flow control (PFC, ECN) on RoCE, cables and switch buffers"}},
  {"name": "congestion_marks", "summary": "congestion notifications sent and handled (ECN, CNP)", "informational": true},
  {"name": "transmit_waits", "summary": "ticks spent waiting for credits", "informational": true},
  {"name": "sent_bytes", "unit": "B", "direction": "none", "summary": "bytes sent", "informational": true},
  {"name": "received_bytes", "unit": "B", "direction": "none", "summary": "bytes received", "informational": true}
])json";

Json literal(const char* text) {
  return Json::parse(text);
}

Json counterMetrics() {
  Json metrics = literal(kCounterMetrics);
  for (Json& metric : metrics) {
    if (!metric.contains("unit")) metric["unit"] = "count";
    if (!metric.contains("direction")) metric["direction"] = "lower";
    metric["labels"] = {"port"};
    metric["optional"] = true;
  }
  return metrics;
}

Json complete(Json test) {
  for (const Json& metric : literal(kPortMetrics)) test["metrics"].push_back(metric);
  return test;
}

}  // namespace

std::string describe() {
  Json counters = complete(literal(kCountersTest));
  for (const Json& metric : counterMetrics()) counters["metrics"].push_back(metric);
  return sdk::describe({{dumpJson(complete(literal(kPerftestTest))), sdk::describeParams<PerftestParams>()},
                        {dumpJson(counters), sdk::describeParams<CountersParams>()}});
}

}  // namespace muster::rdma

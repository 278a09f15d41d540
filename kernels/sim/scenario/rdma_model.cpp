// SPDX-License-Identifier: Apache-2.0
// Reads the RDMA devices of a scenario. The format is described in plans/README.md.
#include "kernels/sim/scenario/rdma_model.h"

#include <fmt/format.h>

#include "kernels/interfaces/rdma.h"
#include "kernels/sim/scenario/fault_reader.h"
#include "runner/core/text.h"

namespace muster::sim {
namespace {

constexpr Range kRate = {1, 1e13};
constexpr Range kTime = {0, 1e9};
constexpr Range kNoiseRange = {0, 0.2};
constexpr Range kDelay = {1e-9, 1};

constexpr int kMostHcas = 64;

/// The keys of one kind.
void readKind(TomlTable& table, const std::string& kind, RdmaFault& fault) {
  if (kind == "slow") {
    table.require("factor");
    table.quantity("factor", "ratio", {0.001, 1}, fault.factor);
    table.quantity("from", "s", kTime, fault.from);
    table.quantity("until", "s", kTime, fault.until);
  } else if (kind == "link_down") {
    fault.kind = RdmaFaultKind::kLinkDown;
    table.quantity("from", "s", kTime, fault.from);
    table.quantity("until", "s", kTime, fault.until);
  } else if (kind == "errors") {
    fault.kind = RdmaFaultKind::kErrors;
    table.quantity("at", "s", kTime, fault.from);
    for (const RdmaCounter& counter : kRdmaCounters) {
      int count = 0;
      if (std::string_view(counter.unit) == "count" && table.integer(counter.name, {1, 1e9}, count))
        fault.counts[counter.name] = static_cast<uint64_t>(count);
    }
    std::vector<std::string> counters;
    for (const RdmaCounter& counter : kRdmaCounters)
      if (std::string_view(counter.unit) == "count") counters.emplace_back(counter.name);
    table.describeRule(schema::hasOneOf(counters));
    if (fault.counts.empty()) table.complain("", "an errors fault needs a counter, such as `symbol_errors`");
  } else {
    fault.kind = RdmaFaultKind::kPcie;
    table.integer("lanes", {1, kHcaLanes}, fault.lanes);
    table.integer("generation", {1, kHcaGeneration}, fault.generation);
    if (fault.lanes == kHcaLanes && fault.generation == kHcaGeneration)
      table.complain("", "a pcie fault needs fewer `lanes` than 16 or a lower `generation` than 5");
  }
  if (fault.until <= fault.from) table.complain("until", "`until` must be later than `from`");
}

/// Reads one [[rdma.fault]]; each kind takes only its own keys.
RdmaFault readFault(TomlTable& table, int hcas, int nodes) {
  RdmaFault fault;
  for (const char* key : {"kind", "hca"}) table.require(key);
  table.integer("hca", {0, static_cast<double>((table.describing() ? kMostHcas : hcas) - 1)}, fault.hca);
  if (table.integer("node", {0, 1e6}, fault.node)) checkFaultNode(table, "node", fault.node, nodes);
  table.variants("kind", {"slow", "link_down", "errors", "pcie"}, [&](const std::string& kind) {
    readKind(table, kind, fault);
    table.finish();
  });
  return fault;
}

}  // namespace

void readRdma(TomlTable& root, RdmaModel& out, int nodes) {
  if (!root.has("rdma")) return;
  TomlTable table = root.table("rdma");
  for (const char* key : {"count", "line_rate", "bandwidth"}) table.require(key);
  table.integer("count", {1, kMostHcas}, out.count);
  table.text("prefix", out.prefix);
  table.choice("link_layer", {"InfiniBand", "Ethernet", "Unspecified"}, out.layer);
  table.text("driver", out.driver);
  table.text("firmware", out.firmware);
  table.quantity("line_rate", "B/s", kRate, out.lineRate);
  table.quantity("bandwidth", "B/s", kRate, out.bandwidth);
  out.loopbackBandwidth = out.bandwidth;
  table.quantity("loopback_bandwidth", "B/s", kRate, out.loopbackBandwidth);
  table.quantity("latency", "s", kDelay, out.latency);
  table.quantity("loopback_latency", "s", kDelay, out.loopbackLatency);
  table.quantity("noise", "ratio", kNoiseRange, out.noise);
  table.quantity("spread", "ratio", kNoiseRange, out.spread);
  if (!isPlainName(out.prefix + "0"))
    table.complain("prefix", "`prefix` must begin a plain name, such as mlx5_");
  for (TomlTable& fault : table.tables("fault")) out.faults.push_back(readFault(fault, out.count, nodes));
  table.finish();
}

}  // namespace muster::sim

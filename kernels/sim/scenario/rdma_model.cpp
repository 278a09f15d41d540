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

/// Reads one [[rdma.fault]]; each kind takes only its own keys.
RdmaFault readFault(TomlTable& table, int hcas, int nodes) {
  RdmaFault fault;
  std::string kind;
  for (const char* key : {"kind", "hca"}) table.require(key);
  table.integer("hca", {0, static_cast<double>(hcas - 1)}, fault.hca);
  if (table.integer("node", {0, 1e6}, fault.node)) checkFaultNode(table, "node", fault.node, nodes);
  if (!table.text("kind", kind)) return fault;
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
    if (fault.counts.empty()) table.complain("", "an errors fault needs a counter, such as `symbol_errors`");
  } else if (kind == "pcie") {
    fault.kind = RdmaFaultKind::kPcie;
    table.integer("lanes", {1, kHcaLanes}, fault.lanes);
    table.integer("generation", {1, kHcaGeneration}, fault.generation);
    if (fault.lanes == kHcaLanes && fault.generation == kHcaGeneration)
      table.complain("", "a pcie fault needs fewer `lanes` than 16 or a lower `generation` than 5");
  } else {
    const std::vector<std::string> kinds = {"slow", "link_down", "errors", "pcie"};
    table.complain("kind", fmt::format("there is no fault \"{}\" of an HCA{}; expected one of {}",
                                       printable(kind), didYouMean(kind, kinds), join(kinds, ", ")));
    return fault;
  }
  if (fault.until <= fault.from) table.complain("until", "`until` must be later than `from`");
  table.finish();
  return fault;
}

}  // namespace

void readRdma(TomlTable& root, RdmaModel& out, int nodes) {
  if (!root.has("rdma")) return;
  TomlTable table = root.table("rdma");
  for (const char* key : {"count", "line_rate", "bandwidth"}) table.require(key);
  table.integer("count", {1, 64}, out.count);
  table.text("prefix", out.prefix);
  table.text("link_layer", out.layer);
  table.text("firmware", out.firmware);
  table.quantity("line_rate", "B/s", kRate, out.lineRate);
  table.quantity("bandwidth", "B/s", kRate, out.bandwidth);
  out.loopbackBandwidth = out.bandwidth;
  table.quantity("loopback_bandwidth", "B/s", kRate, out.loopbackBandwidth);
  table.quantity("latency", "s", kDelay, out.latency);
  table.quantity("loopback_latency", "s", kDelay, out.loopbackLatency);
  table.quantity("noise", "ratio", kNoiseRange, out.noise);
  table.quantity("spread", "ratio", kNoiseRange, out.spread);
  if (out.layer != "InfiniBand" && out.layer != "Ethernet")
    table.complain("link_layer", "`link_layer` must be \"InfiniBand\" or \"Ethernet\", found \"" +
                                     printable(out.layer) + "\"");
  if (!isPlainName(out.prefix + "0"))
    table.complain("prefix", "`prefix` must begin a plain name, such as mlx5_");
  for (TomlTable& fault : table.tables("fault")) out.faults.push_back(readFault(fault, out.count, nodes));
  table.finish();
}

}  // namespace muster::sim

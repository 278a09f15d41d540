// SPDX-License-Identifier: Apache-2.0
// Reads scenarios from TOML. The format is described in plans/README.md.
#include "kernels/sim/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/sim/scenario/fault_reader.h"
#include "runner/core/text.h"
#include "runner/core/toml/toml_table.h"
#include "runner/inputs/toml_input.h"
#include "runner/system/files.h"

namespace muster::sim {
namespace {

constexpr uint64_t kMaxScenarioBytes = 1ull << 20;
constexpr double kMaxRate = 1e21;
constexpr Range kPeaks = {1, kMaxRate};
constexpr Range kShare = {0, 0.2};
constexpr double kLeastClockShare = 0.1;
constexpr Range kClock = {1e6, 1e11};

/// A scenario without one has no communicators.
void readNetwork(TomlTable& root, Fabric& out) {
  if (!root.has("network")) return;
  constexpr Range kRate = {1, 1e15};
  constexpr Range kLatency = {0, 1};
  TomlTable network = root.table("network");
  out.there = true;
  for (const char* key : {"intra_bandwidth", "rail_bandwidth"}) network.require(key);
  network.quantity("intra_bandwidth", "B/s", kRate, out.intraBandwidth);
  network.quantity("intra_latency", "s", kLatency, out.intraLatency);
  network.text("intra_transport", out.intraTransport);
  network.quantity("rail_bandwidth", "B/s", kRate, out.railBandwidth);
  network.integer("rails", {1, kMostRails}, out.rails);
  network.quantity("inter_latency", "s", kLatency, out.interLatency);
  network.text("inter_transport", out.interTransport);
  network.integer("nodes_per_leaf", {0, 1e6}, out.nodesPerLeaf);
  network.quantity("noise", "ratio", {0, 0.2}, out.noise);
  network.flag("confirms_settings", out.confirmsSettings);
  network.finish();
}

void readHead(TomlTable& root, Scenario& scenario) {
  int seed = 1;
  root.schemaVersion("scenarios");
  root.require("name");
  root.text("name", scenario.name);
  root.text("description", scenario.description);
  root.integer("seed", {0, 2147483647}, seed);
  scenario.seed = static_cast<uint64_t>(seed);
}

void readFacts(TomlTable& parent, const char* key, std::map<std::string, std::string>& out) {
  if (!parent.has(key)) return;
  TomlTable facts = parent.table(key);
  for (const std::string& name : facts.keys({{"", schema::text()}})) facts.text(name.c_str(), out[name]);
}

void readModel(TomlTable& root, Model& model) {
  root.require("devices");
  TomlTable table = root.table("devices");
  for (const char* key : {"count", "name", "memory"}) table.require(key);
  table.integer("count", {1, kMostDevices}, model.count);
  table.text("name", model.name);
  table.text("pci_id", model.pciId);
  table.quantity("memory", "B", {1, kMaxBytes}, model.memory);
  table.quantity("last_level_cache", "B", {0, kMaxBytes}, model.lastLevelCache);
  table.choice("kind", {"gpu", "cpu"}, model.kind);
  readFacts(table, "facts", model.facts);
  table.finish();
}

void readPeaks(TomlTable& root, Model& model) {
  if (!root.has("peaks")) return;
  TomlTable peaks = root.table("peaks");
  const auto keys = peaks.keys({{"^flops\\.", schema::quantity("FLOP/s", kPeaks)},
                                {"^memory_bandwidth$", schema::quantity("B/s", kPeaks)}});
  peaks.finish();
  for (const std::string& name : keys) {
    bool isFlops = name.rfind("flops.", 0) == 0;
    if (!isFlops && name != "memory_bandwidth")
      peaks.complain(name, fmt::format("a peak is \"flops.<dtype>\" or memory_bandwidth, found \"{}\"",
                                       printable(name)));
    else if (double value = 0; peaks.quantity(name.c_str(), isFlops ? "FLOP/s" : "B/s", kPeaks, value))
      model.peaks[name] = value;
  }
}

/// All dtypes, as a regular expression of keys.
std::string dtypePattern() {
  std::vector<std::string> names;
  for (int dtype = 0; dtype <= static_cast<int>(Dtype::kFp4); ++dtype)
    names.emplace_back(dtypeName(static_cast<Dtype>(dtype)));
  return "^(" + join(names, "|") + ")$";
}

void readGemm(TomlTable& figures, Figures& out) {
  TomlTable gemm = figures.table("gemm");
  const auto keys = gemm.keys({{dtypePattern(), schema::quantity("FLOP/s", kPeaks)}});
  gemm.finish();
  for (const std::string& name : keys) {
    auto dtype = dtypeFromName(name);
    if (!dtype.ok())
      gemm.complain(name, dtype.error().message);
    else if (double rate = 0; gemm.quantity(name.c_str(), "FLOP/s", kPeaks, rate))
      out.gemm[*dtype] = rate;
  }
}

void readMemory(TomlTable& figures, Figures& out) {
  TomlTable memory = figures.table("memory");
  const std::vector<std::pair<const char*, MemoryOp>> ops = {{"read", MemoryOp::kRead},
                                                             {"write", MemoryOp::kWrite},
                                                             {"copy", MemoryOp::kCopy},
                                                             {"triad", MemoryOp::kTriad}};
  for (const auto& [name, op] : ops) {
    memory.require(name);
    if (double rate = 0; memory.quantity(name, "B/s", {1, kMaxRate}, rate)) out.memory[op] = rate;
  }
  memory.finish();
}

/// Rates come in pairs, and only bridges give a device both NVLink and PCIe peers.
void readPeerRules(TomlTable& copies) {
  copies.describeRule({{"dependencies",
                        {{"peer", {"peer_bidirectional"}},
                         {"peer_bidirectional", {"peer"}},
                         {"pcie_peer", {"pcie_peer_bidirectional"}},
                         {"pcie_peer_bidirectional", {"pcie_peer"}},
                         {"bridged", {"peer", "pcie_peer"}}}}});
  for (const auto& [key, both] :
       {std::pair{"peer", "peer_bidirectional"}, {"pcie_peer", "pcie_peer_bidirectional"}})
    if (copies.has(key) != copies.has(both))
      copies.complain(key, fmt::format("`{}` and `{}` come together", key, both));
  if (copies.has("bridged") != (copies.has("peer") && copies.has("pcie_peer")))
    copies.complain("bridged",
                    "`bridged` comes with both `peer` and `pcie_peer`: it says which pairs have NVLink");
}

void readCopies(TomlTable& figures, CopyFigures& out) {
  if (!figures.has("copies")) return;
  constexpr Range kRate = {1, kMaxRate};
  constexpr Range kPart = {0.01, 1};
  TomlTable copies = figures.table("copies");
  for (const char* key : {"host_to_device", "device_to_host", "host_bidirectional"}) copies.require(key);
  copies.quantity("host_to_device", "B/s", kRate, out.hostToDevice);
  copies.quantity("device_to_host", "B/s", kRate, out.deviceToHost);
  copies.quantity("host_bidirectional", "B/s", kRate, out.hostBidirectional);
  copies.quantity("peer", "B/s", kRate, out.peer);
  copies.quantity("peer_bidirectional", "B/s", kRate, out.peerBidirectional);
  copies.quantity("pcie_peer", "B/s", kRate, out.pciePeer);
  copies.quantity("pcie_peer_bidirectional", "B/s", kRate, out.pciePeerBidirectional);
  copies.integer("bridged", {2, kMostDevices}, out.bridged);
  readPeerRules(copies);
  copies.quantity("far", "ratio", kPart, out.far);
  copies.quantity("kernel", "ratio", kPart, out.kernel);
  copies.integer("numa_nodes", {1, 64}, out.numaNodes);
  copies.finish();
}

void readFigures(TomlTable& root, Figures& out, CopyFigures& copies) {
  root.require("figures");
  TomlTable figures = root.table("figures");
  figures.quantity("noise", "ratio", kShare, out.noise);
  figures.quantity("spread", "ratio", kShare, out.spread);
  figures.quantity("overhead", "s", {0, 1}, out.overhead);
  figures.quantity("ramp", "s", {0, 60}, out.ramp);
  figures.quantity("clock", "Hz", kClock, out.clock);
  for (const char* key : {"gemm", "memory"}) figures.require(key);
  readGemm(figures, out);
  readMemory(figures, out);
  readCopies(figures, copies);
  figures.quantity("latency", "s", {1e-9, 1e-3}, copies.latency);
  figures.finish();
}

void readClimate(TomlTable& root, Climate& out) {
  if (!root.has("climate")) return;
  TomlTable climate = root.table("climate");
  constexpr Range kDegrees = {-50, 150};
  climate.quantity("idle_temperature", "degC", kDegrees, out.idleTemperature);
  climate.quantity("load_temperature", "degC", kDegrees, out.loadTemperature);
  climate.quantity("throttle_temperature", "degC", kDegrees, out.throttleTemperature);
  climate.quantity("time_constant", "s", {0.001, 3600}, out.timeConstant);
  climate.quantity("idle_power", "W", {0, 1e5}, out.idlePower);
  climate.quantity("load_power", "W", {0, 1e5}, out.loadPower);
  climate.quantity("idle_clock", "Hz", {0, 1e11}, out.idleClock);
  climate.quantity("load_clock", "Hz", kClock, out.loadClock);
  climate.finish();
}

void readNode(TomlTable& root, Json& out) {
  if (!root.has("node")) return;
  TomlTable node = root.table("node");
  for (const char* key : {"host", "software"}) {
    if (node.has(key)) out[key] = node.table(key).json();
  }
  Json nics = Json::array();
  for (const TomlTable& nic : node.tables("nics")) nics.push_back(nic.json());
  if (!nics.empty()) out["nics"] = nics;
  node.finish();
}

}  // namespace

double Climate::heatedTo(double at) const {
  return idleTemperature + (loadTemperature - idleTemperature) * (1 - std::exp(-at / timeConstant));
}

/// The temperature rises, or falls, steadily: it crosses the limit at most once.
double Climate::throttledBy(double at) const {
  const bool coolAtFirst = idleTemperature <= throttleTemperature;
  const bool coolAtLast = loadTemperature <= throttleTemperature;
  if (coolAtFirst && coolAtLast) return 0;
  if (!coolAtFirst && !coolAtLast) return at;
  const double crossing =
      timeConstant * std::log((loadTemperature - idleTemperature) / (loadTemperature - throttleTemperature));
  return coolAtFirst ? std::max(0.0, at - crossing) : std::min(at, crossing);
}

/// Heat is proportional to the clock: what is left of it keeps the device at its limit.
double Climate::clockShare(double at) const {
  if (!throttlesAt(at)) return 1;
  const double allowed = throttleTemperature - idleTemperature;
  return std::clamp(allowed / std::max(loadTemperature - idleTemperature, 1e-9), kLeastClockShare, 1.0);
}

namespace {

Scenario readScenario(TomlTable& root, int nodes) {
  Scenario scenario;
  readHead(root, scenario);
  readModel(root, scenario.model);
  readPeaks(root, scenario.model);
  readFigures(root, scenario.figures, scenario.copies);
  readClimate(root, scenario.climate);
  readNode(root, scenario.node);
  readNetwork(root, scenario.network);
  readRdma(root, scenario.rdma, nodes);
  readStorage(root, scenario.storage, nodes);
  for (TomlTable& table : root.tables("fault"))
    scenario.faults.push_back(readFault(std::move(table), scenario, nodes));
  root.finish();
  return scenario;
}

}  // namespace

namespace {

Result<Scenario> parse(const std::string& text, const std::string& path, InputText::From from, int nodes) {
  MUSTER_TRY(InputText input, InputText::of(text, path, kMaxScenarioBytes, from));
  MUSTER_TRY(const TomlDocument document, readTomlInput(input));
  Complaints complaints(document);
  TomlTable root(document, "", complaints);
  Scenario scenario = readScenario(root, nodes);
  MUSTER_CHECK_OK(complaints.status());
  return scenario;
}

}  // namespace

Result<Scenario> loadScenario(const std::string& path, int nodes) {
  MUSTER_TRY(const std::string text, readFile(path, kMaxScenarioBytes).context("reading scenario"));
  return parse(text, path, InputText::From::kDisk, nodes);
}

Result<Scenario> parseScenario(const std::string& text, const std::string& path, int nodes) {
  return parse(text, path, InputText::From::kFrozen, nodes);
}

Json scenarioSchema() {
  Json root = describeTable([](TomlTable& table) {
    readScenario(table, 0);
    table.describe("include", includeSchema());
  });
  return schemaDocument("Muster scenario", completeUnless(std::move(root), {"include"}));
}

}  // namespace muster::sim

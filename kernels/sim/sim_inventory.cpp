// SPDX-License-Identifier: Apache-2.0
// Inventory and health of a simulated node: pure functions of scenario, seed, node rank and virtual time.
#include "kernels/sim/sim_inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/checks/fabric.h"
#include "kernels/checks/xid.h"
#include "kernels/sim/chance.h"
#include "kernels/sim/sim_copies.h"
#include "kernels/sim/sim_network.h"
#include "kernels/sim/sim_rdma.h"
#include "runner/core/text.h"

namespace muster::sim {
namespace {

// All flags of a healthy fabric: none of the troubles, a correct configuration.
constexpr unsigned kHealthyFabric = 0x1aa;

uint64_t unitKey(const Scenario& scenario, int nodeRank, int place) {
  return mix(mix(mix(scatter(scenario.seed), scenario.name), static_cast<uint64_t>(nodeRank)),
             static_cast<uint64_t>(place));
}

std::string hex(uint64_t key, int digits) {
  return fmt::format("{:016x}", scatter(key)).substr(0, static_cast<size_t>(digits));
}

DeviceInfo infoOf(const Model& model, uint64_t key, int index, int place) {
  bool isGpu = model.kind == "gpu";
  DeviceInfo info;
  info.index = index;
  info.id = fmt::format("{}{}", model.kind, index);
  info.kind = model.kind;
  info.name = model.name;
  info.pciId = model.pciId;
  info.memoryBytes = static_cast<uint64_t>(model.memory);
  info.lastLevelCacheBytes = static_cast<uint64_t>(model.lastLevelCache);
  info.numaNode = place * 2 / std::max(1, model.count);
  info.peaks = model.peaks;
  info.facts = model.facts;
  if (!isGpu) return info;
  info.uuid = fmt::format("GPU-{}-{}-{}-{}-{}", hex(key, 8), hex(key + 1, 4), hex(key + 2, 4),
                          hex(key + 3, 4), hex(key + 4, 12));
  info.serial = fmt::format("{:013d}", 1320000000000 + static_cast<int64_t>(scatter(key + 5) % 9999999999));
  info.pciAddress = fmt::format("0000:{:02x}:00.0", 0x18 + place * 0x12);
  return info;
}

void add(Readings& out, const char* name, const char* unit, const std::string& device, double value,
         const std::string& text = "", const Labels& labels = {}) {
  out.values.push_back({name, unit, device, value, text, labels});
}

/// ECC counts, remaps and XIDs that faults have caused by `at`.
struct Errors {
  double correctedInDram = 0;
  double correctedInSram = 0;
  double uncorrected = 0;
  bool remapPending = false;
  bool remapFailed = false;
  struct Xids {
    int count = 0;
    std::string text;
  };
  Xids fatal, application, information;
  unsigned fabric = kHealthyFabric;
};

/// Those that ask for nothing are left out, as the driver's are.
Errors::Xids* xidsOf(Errors& e, int xid) {
  switch (xidClass(xid)) {
    case XidClass::kIgnored:
      return nullptr;
    case XidClass::kApplication:
      return &e.application;
    case XidClass::kInformation:
      return &e.information;
    default:
      return &e.fatal;
  }
}

Errors errorsOf(const FaultList& faults, double at) {
  Errors e;
  for (const Fault& f : faults.all()) {
    if (at < f.from) continue;
    if (f.kind == FaultKind::kEcc) {
      (f.memory == "sram" ? e.correctedInSram : e.correctedInDram) += f.corrected;
      e.uncorrected += f.uncorrected;
      e.remapPending |= f.remapPending;
      e.remapFailed |= f.remapFailed;
    }
    if (f.kind == FaultKind::kFabric) e.fabric = static_cast<unsigned>(f.mask);
    if (f.kind != FaultKind::kXid) continue;
    if (Errors::Xids* xids = xidsOf(e, f.xid)) {
      ++xids->count;
      xids->text = xidText(f.xid);
    }
  }
  return e;
}

void addErrors(const Errors& e, const std::string& id, Readings& out) {
  add(out, reading::kEccCorrected, "count", id, e.correctedInDram, "", {{"memory", "dram"}});
  add(out, reading::kEccCorrected, "count", id, e.correctedInSram, "", {{"memory", "sram"}});
  add(out, reading::kEccUncorrected, "count", id, e.uncorrected);
  add(out, reading::kRowRemapPending, "bool", id, e.remapPending ? 1 : 0);
  add(out, reading::kRowRemapFailed, "bool", id, e.remapFailed ? 1 : 0);
  add(out, reading::kXidFatal, "count", id, e.fatal.count, e.fatal.text);
  add(out, reading::kXidApplication, "count", id, e.application.count, e.application.text);
  add(out, reading::kXidInformation, "count", id, e.information.count, e.information.text);
  const auto troubles = FabricHealth{e.fabric, 0}.troubles();
  add(out, reading::kFabricHealthy, "bool", id, troubles.empty() ? 1 : 0, join(troubles, ", "));
  add(out, reading::kPcieReplay, "count", id, 0);
  add(out, reading::kNvlinkErrors, "count", id, 0);
  add(out, reading::kNvlinkCrcErrors, "count", id, 0);
}

}  // namespace

std::vector<int> devicePlaces(const Scenario& scenario, int nodeRank) {
  std::vector<int> places(static_cast<size_t>(scenario.model.count));
  std::iota(places.begin(), places.end(), 0);
  // Asked for every node by every rank: only where any device is missing at all, each is looked up.
  if (std::any_of(scenario.faults.begin(), scenario.faults.end(),
                  [](const Fault& fault) { return fault.kind == FaultKind::kMissing; }))
    std::erase_if(places, [&](int place) { return FaultList(scenario.faults, place, nodeRank).missing(); });
  return places;
}

std::vector<SimUnit> buildUnits(const std::shared_ptr<const Scenario>& scenario, int nodeRank,
                                uint64_t runSeed) {
  std::vector<SimUnit> units;
  for (const int place : devicePlaces(*scenario, nodeRank)) {
    FaultList faults(scenario->faults, place, nodeRank);
    // What a device is depends on its place alone; what happens in a run also on the run's seed.
    uint64_t key = unitKey(*scenario, nodeRank, place);
    SimUnit unit;
    unit.scenario = scenario;
    unit.info = infoOf(scenario->model, key, static_cast<int>(units.size()), place);
    unit.faults = std::move(faults);
    unit.key = mix(key, runSeed);
    unit.speed = 1 + scenario->figures.spread * normal(mix(key, std::string_view("speed")));
    unit.place = place;
    units.push_back(std::move(unit));
  }
  return units;
}

Result<std::vector<DeviceInfo>> SimInventory::devices() {
  std::vector<DeviceInfo> devices;
  for (const SimUnit& unit : units_) {
    // A driver that is loaded goes on listing what it has lost.
    if (!unit.faults.lost(start_)) MUSTER_CHECK_OK(unit.faults.strike(Work::kInventory, start_));
    devices.push_back(unit.info);
  }
  return devices;
}

Result<Json> SimInventory::node() {
  Json node = Json::object();
  node["host"] = Json::object();
  node["host"]["hostname"] = fmt::format("{}-node{:04d}", scenario_->name, nodeRank_);
  node["host"]["simulated"] = true;
  if (scenario_->node.contains("host")) node["host"].update(scenario_->node["host"]);
  // What real nodes tell each other when they meet, where it is not the same for all.
  std::vector<size_t> counts;
  for (int rank = 0; rank < nodeCount_; ++rank) counts.push_back(devicePlaces(*scenario_, rank).size());
  if (std::any_of(counts.begin(), counts.end(), [&](size_t count) { return count != counts.front(); }))
    node["host"]["devices_of_nodes"] = counts;
  node["software"] = scenario_->node.value("software", Json::object());
  node["nics"] = scenario_->node.value("nics", Json::array());
  for (const RdmaPort& port : simRdmaPorts(scenario_->rdma, nodeRank_, start_))
    node["nics"].push_back(toJson(port));
  return node;
}

Result<std::string> SimInventory::link(const std::string& from, const std::string& to) {
  int places[] = {-1, -1};
  for (const SimUnit& unit : units_) {
    if (unit.info.id == from) places[0] = unit.place;
    if (unit.info.id == to) places[1] = unit.place;
  }
  if (places[0] < 0 || places[1] < 0)
    return Error{ErrorCode::kNotFound, "no device " + (places[0] < 0 ? from : to) + " is on this node", ""};
  return peerLink(*scenario_, places[0], places[1]);
}

Result<Readings> SimInventory::health(double at, const std::string& load) {
  Readings out;
  for (const SimUnit& unit : units_) {
    if (unit.faults.lost(at)) {
      out.unreadable.push_back({"driver", unit.info.id, "the GPU is lost"});
      add(out, reading::kXidFatal, "count", unit.info.id, 1, xidText(kXidFallenOffTheBus));
      continue;
    }
    MUSTER_CHECK_OK(unit.faults.strike(Work::kHealth, at));
    readDevice(unit, at, load.empty() || load == "idle", out);
  }
  readNics(at, out);
  readSwitches(at, out);
  return out;
}

Result<Readings> SimInventory::surroundings(const std::string& /*folder*/) {
  return Readings{pcieReadings(simRdmaPorts(scenario_->rdma, nodeRank_, start_)), {}};
}

void SimInventory::readSwitches(double at, Readings& out) const {
  for (const bool fatal : {true, false}) {
    int count = 0;
    std::string text;
    for (const Fault& f : scenario_->faults) {
      const bool here = f.node < 0 || f.node == nodeRank_;
      if (f.kind != FaultKind::kSxid || f.fatal != fatal || !here || at < f.from) continue;
      ++count;
      text = fmt::format("SXid {}, {}", f.xid, fatal ? "Fatal" : "Non-fatal");
    }
    add(out, fatal ? reading::kSxidFatal : reading::kSxidNonfatal, "count", "", count, text);
  }
}

/// A scenario without [rdma] says nothing of its NICs' counters but how often flapping took them down.
void SimInventory::readNics(double at, Readings& out) const {
  const RdmaModel& rdma = scenario_->rdma;
  const int rails = scenario_->network.there ? scenario_->network.rails : 0;
  const int nics = rdma.count > 0 ? rdma.count : rails;
  for (int nic = 0; nic < nics; ++nic) {
    const Labels labels{{"port", rdma.prefix + std::to_string(nic) + "/1"}};
    std::map<std::string, uint64_t> counters;
    if (rdma.count > 0) counters = simRdmaCounters(rdma, nodeRank_, nic, at).values;
    counters["link_downed"] += static_cast<uint64_t>(timesDown(scenario_->faults, nodeRank_, nic, at));
    for (const auto& [name, value] : counters)
      out.values.push_back({kRdmaReadings + name, "count", "", static_cast<double>(value), "", labels});
  }
}

void SimInventory::readDevice(const SimUnit& unit, double at, bool idle, Readings& out) const {
  const Climate& c = scenario_->climate;
  const std::string& id = unit.info.id;
  // The memory lags a little behind the chip.
  double warm = idle ? 0 : 1 - std::exp(-std::max(0.0, at) / c.timeConstant);
  double jitter = normal(mix(mix(unit.key, std::string_view("climate")), std::floor(at)));
  bool isHot = !idle && (unit.faults.throttlesNow("thermal", at) ||
                         unit.faults.throttlesNow("thermal_software", at) || c.throttlesAt(at));
  double temperature = isHot  ? c.throttleTemperature
                       : idle ? c.idleTemperature + 0.5 * jitter
                              : c.heatedTo(at) + 0.5 * jitter;
  double speed = unit.faults.speed(Work::kGemm, at) * c.clockShare(at);
  double power = idle ? c.idlePower : c.idlePower + (c.loadPower - c.idlePower) * speed;
  add(out, reading::kTemperature, "degC", id, temperature);
  add(out, reading::kMemoryTemperature, "degC", id, temperature + 4 + 8 * warm);
  add(out, reading::kSlowdownMargin, "degC", id, c.throttleTemperature - temperature);
  add(out, reading::kPower, "W", id, power * (1 + 0.005 * jitter));
  add(out, reading::kClock, "Hz", id, idle ? c.idleClock : c.loadClock * speed);
  add(out, reading::kUtilization, "ratio", id, idle ? 0 : 1);
  add(out, reading::kThrottleThermal, "s", id, unit.faults.throttled("thermal", at) + c.throttledBy(at));
  add(out, reading::kThrottleSoftware, "s", id, unit.faults.throttled("thermal_software", at));
  add(out, reading::kThrottlePowerBrake, "s", id, unit.faults.throttled("power_brake", at));
  add(out, reading::kThrottlePowerCap, "s", id, unit.faults.throttled("power_cap", at));
  addErrors(errorsOf(unit.faults, at), id, out);
}

}  // namespace muster::sim

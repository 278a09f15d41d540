// SPDX-License-Identifier: Apache-2.0
// Network interfaces and RDMA devices, from sysfs.
#include "kernels/host/inventory/nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runner/core/text.h"

namespace muster {

namespace {

constexpr size_t kMostInterfaces = 128;

/// "4: ACTIVE" -> "ACTIVE"
std::string afterColon(const std::string& text) {
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

/// The number at the beginning of `text`, which `unit` follows; 0 when there is none, or none that can be.
double numberBefore(const char* unit, const std::string& text) {
  double number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool told = problem == std::errc{} && std::string_view(rest).starts_with(unit);
  return told && number > 0 && number < 1e5 ? number : 0;
}

/// "2.5 Gb/sec (1X SDR)" in B/s.
double lineRate(const std::string& text) {
  return numberBefore(" Gb/sec", text) * 1e9 / 8;
}

/// From a device's folder. "Unknown" and 0 lanes, which virtual functions have, are not told.
PcieLink readPcieLink(const Root& root, const std::string& folder) {
  constexpr int64_t kMostLanes = 32;
  const auto lanes = [&](const char* file) {
    const int64_t count = root.integerOr(folder + file, 0);
    return count > 0 && count <= kMostLanes ? static_cast<int>(count) : 0;
  };
  const auto speed = [&](const char* file) { return numberBefore(" GT/s", root.factOr(folder + file)); };
  return {lanes("current_link_width"), lanes("max_link_width"), speed("current_link_speed"),
          speed("max_link_speed")};
}

/// A line rate as people say it, "25 Gb/s"; empty when it is not known.
std::string rateText(double bytesPerSecond) {
  return bytesPerSecond > 0 ? fmt::format("{:g} Gb/s", bytesPerSecond * 8e-9) : "";
}

Nic readNic(const Root& root, const std::string& name) {
  const std::string folder = "/sys/class/net/" + name;
  Nic nic;
  nic.name = printable(name, 64);
  nic.state = root.factOr(folder + "/operstate", "unknown");
  nic.driver = root.linkName(folder + "/device/driver");
  nic.hardware = root.exists(folder + "/device");
  const std::string bus = root.linkName(folder + "/device");
  if (bus.find(':') != std::string::npos) nic.pciAddress = bus;
  // In Mb/s; -1, or an error on reading, when the link is down or the driver does not know.
  nic.bytesPerSecond =
      static_cast<double>(std::max<int64_t>(0, root.integerOr(folder + "/speed", 0))) * 1e6 / 8;
  nic.mtu = root.integerOr(folder + "/mtu", 0);
  for (const char* way : {"rx", "tx"}) {
    nic.errors += root.integerOr(folder + "/statistics/" + way + "_errors", 0);
    nic.dropped += root.integerOr(folder + "/statistics/" + way + "_dropped", 0);
  }
  nic.numaNode = static_cast<int>(root.integerOr(folder + "/device/numa_node", -1));
  return nic;
}

RdmaPort readPort(const Root& root, const std::string& classFolder, const std::string& device,
                  const std::string& port) {
  const std::string folder = classFolder + device + "/ports/" + port;
  RdmaPort found;
  found.device = printable(device, 64);
  found.port = static_cast<int>(leadingInteger(port, 0));
  found.state = afterColon(root.factOr(folder + "/state", "unknown"));
  found.physical = afterColon(root.factOr(folder + "/phys_state", "unknown"));
  found.layer = root.factOr(folder + "/link_layer");
  found.rate = root.factOr(folder + "/rate");
  found.bytesPerSecond = lineRate(found.rate);
  found.driver = root.linkName(classFolder + device + "/device/driver");
  found.guid = root.factOr(classFolder + device + "/node_guid");
  found.firmware = root.factOr(classFolder + device + "/fw_ver");
  found.numaNode = static_cast<int>(root.integerOr(classFolder + device + "/device/numa_node", -1));
  found.pcie = readPcieLink(root, classFolder + device + "/device/");
  for (const char* counter : {"symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors",
                              "local_link_integrity_errors", "excessive_buffer_overrun_errors"})
    found.errors += root.integerOr(folder + "/counters/" + counter, 0);
  return found;
}

}  // namespace

std::vector<Nic> readNics(const Root& root) {
  std::vector<Nic> nics;
  for (const std::string& name : root.list("/sys/class/net")) {
    if (name == "lo" || !root.exists("/sys/class/net/" + name + "/operstate"))
      continue;  // bonding_masters is a file
    Nic nic = readNic(root, name);
    if ((nic.hardware || nic.state == "up") && nics.size() < kMostInterfaces) nics.push_back(std::move(nic));
  }
  return nics;
}

std::vector<RdmaPort> readRdmaPorts(const Root& root, const std::string& sysfs) {
  const std::string folder = sysfs + "/class/infiniband/";
  std::vector<RdmaPort> ports;
  for (const std::string& device : root.list(folder))
    for (const std::string& port : root.list(folder + device + "/ports"))
      if (ports.size() < kMostInterfaces) ports.push_back(readPort(root, folder, device, port));
  return ports;
}

Json toJson(const Nic& nic) {
  return {{"name", nic.name},          {"kind", "network"},
          {"state", nic.state},        {"rate", rateText(nic.bytesPerSecond)},
          {"driver", nic.driver},      {"pci_address", nic.pciAddress},
          {"numa_node", nic.numaNode}, {"mtu", nic.mtu},
          {"errors", nic.errors},      {"dropped", nic.dropped}};
}

}  // namespace muster

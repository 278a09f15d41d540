// SPDX-License-Identifier: Apache-2.0
// Facts about the node around the GPUs.
#include "kernels/cuda/inventory/node_facts.h"

#include <algorithm>
#include <map>

#include "kernels/cuda/inventory/fabric_info.h"
#include "kernels/cuda/inventory/nvlink.h"
#include "kernels/cuda/inventory/nvml/pci.h"

namespace muster::cuda {
namespace {

/// A device with a place on the PCI bus.
struct Place {
  std::string name;
  std::string address;
  int numaNode = -1;
  std::vector<std::string> path;
};

/// For each GPU that told something, whether most GPUs of its model on this node told something else.
void compareWithMost(const char* reading, const std::vector<Gpu>& gpus, const std::vector<std::string>& told,
                     Readings& out) {
  std::map<std::string, std::map<std::string, int>> counts;  // model -> what it told -> how many
  for (size_t i = 0; i < gpus.size(); ++i)
    if (!told[i].empty()) ++counts[gpus[i].name][told[i]];
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (told[i].empty()) continue;
    const auto& values = counts[gpus[i].name];
    const auto most = std::max_element(values.begin(), values.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const bool differs = values.at(told[i]) < most->second;
    out.values.push_back({reading,
                          "bool",
                          gpus[i].id,
                          differs ? 1.0 : 0.0,
                          differs ? told[i] + ", where most of its peers have " + most->first : "",
                          {}});
  }
}

Place placeOf(const Root& root, const std::string& name, const std::string& address) {
  return {name, address, pciNumaNode(root, address), pciPath(root, address)};
}

}  // namespace

std::string gpuDirectRdma(const Root& root) {
  if (root.exists("/sys/module/nvidia_peermem")) return "nvidia_peermem";
  // The open modules export memory as DMA-BUF, the closed ones do not.
  const bool open =
      root.factOr("/proc/driver/nvidia/version").find("Open Kernel Module") != std::string::npos;
  return open ? "dma-buf" : "none";
}

Json pciTopology(const Root& root, const std::vector<Gpu>& gpus) {
  std::vector<Place> places;
  for (const Gpu& gpu : gpus)
    if (!gpu.pciAddress.empty()) places.push_back(placeOf(root, gpu.id, gpu.pciAddress));
  const size_t gpuCount = places.size();
  for (const char* kind : {"/sys/class/net/", "/sys/class/infiniband/"})
    for (const std::string& name : root.list(kind)) {
      const std::string address = root.linkName(kind + name + "/device");
      if (address.find(':') != std::string::npos) places.push_back(placeOf(root, name, address));
    }
  Json topology = Json::array();
  for (size_t i = 0; i < gpuCount; ++i) {
    const Place& from = places[i];
    if (from.path.empty()) continue;  // sysfs does not know it (some virtual machines)
    Json near = Json::object();
    for (const Place& to : places)
      if (&to != &from && !to.path.empty())
        near[to.name] = pciDistance(from.path, from.numaNode, to.path, to.numaNode);
    topology.push_back({{"device", from.name},
                        {"bus_address", from.address},
                        {"numa_node", from.numaNode},
                        {"near", std::move(near)}});
  }
  return topology;
}

Result<std::string> linkBetween(const Nvml& nvml, const Root& root, const Gpu& a, const Gpu& b) {
  const auto status = ask<int>(nvml->nvmlDeviceGetP2PStatus, a.handle, b.handle, NVML_P2P_CAPS_INDEX_NVLINK);
  // A GPU without NVLinks may have no answer. One with them must have it: a limit depends on it.
  const bool without = status.absent() && readNvLinks(nvml, a.handle).absent();
  if (!without && (!status.ok() || status.value == NVML_P2P_STATUS_UNKNOWN))
    return Error{ErrorCode::kIo,
                 "the driver does not say whether NVLink joins " + a.id + " and " + b.id + " (" +
                     nvml.words(status.code) + "); see nvidia-smi topo -p2p n",
                 ""};
  if (status.ok() && status.value == NVML_P2P_STATUS_OK) return std::string("nvlink");
  const Place from = placeOf(root, a.id, a.pciAddress), to = placeOf(root, b.id, b.pciAddress);
  const std::string way = pciDistance(from.path, from.numaNode, to.path, to.numaNode);
  if (way == "PIX" || way == "PXB") return std::string("pcie_switch");
  return std::string(way == "SYS" ? "pcie_system" : "pcie_host");
}

void compareVbios(const Nvml& nvml, const std::vector<Gpu>& gpus, Readings& out) {
  std::vector<std::string> told;
  told.reserve(gpus.size());
  for (const Gpu& gpu : gpus)
    told.push_back(gpu.lost.empty() ? nvml.text(nvml->nvmlDeviceGetVbiosVersion, gpu.handle).value : "");
  compareWithMost("vbios_differs", gpus, told, out);
}

void compareCliques(const std::vector<Gpu>& gpus, const std::vector<nvmlGpuFabricInfo_v3_t>& fabrics,
                    Readings& out) {
  std::vector<std::string> told;
  told.reserve(fabrics.size());
  for (const auto& fabric : fabrics) told.push_back(cliqueOf(fabric));
  compareWithMost("fabric_clique_differs", gpus, told, out);
}

}  // namespace muster::cuda

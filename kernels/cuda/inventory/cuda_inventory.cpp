// SPDX-License-Identifier: Apache-2.0
// The inventory of a machine with NVIDIA GPUs.
#include "kernels/cuda/inventory/cuda_inventory.h"

#include <algorithm>
#include <ctime>

#include "kernels/cuda/inventory/fabric_info.h"
#include "kernels/cuda/inventory/fabric_services.h"
#include "kernels/cuda/inventory/gpu_health.h"
#include "kernels/cuda/inventory/gpu_info.h"
#include "kernels/cuda/inventory/gpu_setup.h"
#include "kernels/cuda/inventory/inventory.h"
#include "kernels/cuda/inventory/node_facts.h"
#include "kernels/cuda/inventory/versions.h"
#include "kernels/host/inventory/nics.h"

namespace muster::cuda {

Result<std::unique_ptr<Inventory>> makeCudaInventory() {
  MUSTER_TRY(std::unique_ptr<CudaInventory> inventory,
             CudaInventory::open({machineSources(), kNvmlLibrary, builtForCuda()}));
  return std::unique_ptr<Inventory>(std::move(inventory));
}

Result<std::unique_ptr<CudaInventory>> CudaInventory::open(CudaSources sources) {
  MUSTER_TRY(std::shared_ptr<const Nvml> nvml, Nvml::open(sources.host.root, sources.library));
  MUSTER_TRY(std::vector<Gpu> gpus, listGpus(*nvml));
  return std::unique_ptr<CudaInventory>(
      new CudaInventory(std::move(sources), std::move(nvml), std::move(gpus)));
}

CudaInventory::CudaInventory(CudaSources sources, std::shared_ptr<const Nvml> nvml, std::vector<Gpu> gpus)
    : sources_(std::move(sources)), host_(sources_.host), nvml_(std::move(nvml)), gpus_(std::move(gpus)) {}

Result<std::vector<DeviceInfo>> CudaInventory::devices() {
  // Without libcuda.so.1 all that NVML reads is there; opening a GPU reports that it is missing.
  if (const Status driver = checkDriver(*nvml_, sources_.builtFor);
      !driver.ok() && driver.error().code != ErrorCode::kNotFound)
    return driver.error();
  const auto driver = nvml_->text((*nvml_)->nvmlSystemGetDriverVersion);
  const auto cuda = ask<int>((*nvml_)->nvmlSystemGetCudaDriverVersion_v2);
  std::vector<DeviceInfo> devices;
  for (Gpu& gpu : gpus_) {
    if (!gpu.lost.empty()) continue;
    auto info = describeGpu(*nvml_, gpu, sources_.host.root);
    if (!info.ok() && info.error().code == ErrorCode::kNotFound) {
      gpu.lost = info.error().message;
      continue;
    }
    if (!info.ok()) return std::move(info).error();
    if (driver.ok()) info->facts["driver"] = driver.value;
    if (cuda.ok()) info->facts["cuda"] = cudaVersionText(cuda.value);
    devices.push_back(std::move(info).value());
  }
  return devices;
}

Result<Json> CudaInventory::node() {
  MUSTER_TRY(Json node, host_.node());
  node["software"].update(softwareVersions(*nvml_, sources_.builtFor));
  node["software"]["gpudirect_rdma"] = gpuDirectRdma(sources_.host.root);
  node["topology"] = pciTopology(sources_.host.root, gpus_);
  Json lost = Json::array();
  for (const Gpu& gpu : gpus_)
    if (!gpu.lost.empty())
      lost.push_back({{"device", gpu.id}, {"pci_address", gpu.pciAddress}, {"reason", gpu.lost}});
  if (!lost.empty()) node["lost_devices"] = std::move(lost);
  return node;
}

Result<std::string> CudaInventory::link(const std::string& from, const std::string& to) {
  const auto find = [&](const std::string& id) {
    return std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return gpu.id == id; });
  };
  const auto a = find(from), b = find(to);
  if (a == gpus_.end() || b == gpus_.end())
    return Error{ErrorCode::kNotFound, "no GPU " + (a == gpus_.end() ? from : to) + " is on this node", ""};
  return linkBetween(*nvml_, sources_.host.root, *a, *b);
}

Result<Readings> CudaInventory::health(double at, const std::string& load) {
  MUSTER_TRY(Readings readings, host_.health(at, load));
  if (xids_ == nullptr)
    xids_ = std::make_unique<XidWatch>(nvml_, gpus_, [this] { return host_.kernelLog(); });
  xids_->look();
  if (!host_.missedLog().empty()) readings.unreadable.push_back({"kernel log", "", host_.missedLog()});
  xids_->countSwitches(readings);
  std::vector<Absence> absences;
  for (const Gpu& gpu : gpus_) readDevice(gpu, at, readings, absences);
  checkAbsences(absences, gpus_, readings);
  return readings;
}

void CudaInventory::readDevice(const Gpu& gpu, double at, Readings& out, std::vector<Absence>& absences) {
  GpuCollector collector(*nvml_, gpu);
  if (gpu.lost.empty()) {
    readGpuHealth(collector, sources_.host.root);
    throttling_.read(collector, at);
  }
  std::string lost = gpu.lost.empty() ? collector.lost() : gpu.lost;
  xids_->count(collector);
  collector.put(
      "device_lost", "bool", lost.empty() ? 0 : 1,
      lost.empty() ? "" : (gpu.pciAddress.empty() ? gpu.id : gpu.id + " at " + gpu.pciAddress) + ": " + lost);
  collector.moveTo(out, absences);
}

Result<Readings> CudaInventory::surroundings(const std::string& folder) {
  MUSTER_TRY(Readings readings, host_.surroundings(folder));
  std::vector<Absence> absences;
  for (const Gpu& gpu : gpus_) {
    if (!gpu.lost.empty()) continue;
    GpuCollector collector(*nvml_, gpu);
    readGpuSetup(collector, sources_.host.root);
    collector.moveTo(readings, absences);
  }
  checkAbsences(absences, gpus_, readings);
  compareVbios(*nvml_, gpus_, readings);
  readFabrics(readings);
  // Only a machine with RDMA devices has anything that could reach the GPUs' memory.
  if (!readRdmaPorts(sources_.host.root).empty()) {
    const std::string way = gpuDirectRdma(sources_.host.root);
    readings.values.push_back({"gpudirect_rdma", "bool", "", way == "none" ? 0.0 : 1.0, "", {{"by", way}}});
  }
  return readings;
}

void CudaInventory::readFabrics(Readings& out) {
  std::vector<nvmlGpuFabricInfo_v3_t> fabrics;
  for (const Gpu& gpu : gpus_)
    fabrics.push_back(gpu.lost.empty() ? readFabricInfo(*nvml_, gpu.handle).value : nvmlGpuFabricInfo_v3_t{});
  compareCliques(gpus_, fabrics, out);
  constexpr double kLongestWindow = 1e9;  // seconds
  const auto window = static_cast<std::time_t>(std::min(host_.logWindow(), kLongestWindow));
  const Root& root = sources_.host.root;
  readFabricManagerLog(root, std::time(nullptr) - window, out);
  if (std::any_of(fabrics.begin(), fabrics.end(), spansNodes)) readImex(root, out);
}

}  // namespace muster::cuda

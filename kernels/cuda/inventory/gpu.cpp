// SPDX-License-Identifier: Apache-2.0
// One GPU as NVML shows it, and a collector of what it answers.
#include "kernels/cuda/inventory/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace muster::cuda {

std::string pciAddressOf(const nvmlPciInfo_t& info) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
}

Result<std::vector<Gpu>> listGpus(const Nvml& nvml) {
  const auto count = ask<unsigned>(nvml->nvmlDeviceGetCount_v2);
  if (!count.ok())
    return Error{ErrorCode::kIo,
                 "the driver does not report the number of GPUs: " + nvml.words(count.code) +
                     "; see dmesg | grep NVRM",
                 kNvmlLibrary};
  std::vector<Gpu> gpus;
  for (unsigned index = 0; index < count.value; ++index) {
    Gpu gpu;
    gpu.index = static_cast<int>(index);
    gpu.id = "gpu" + std::to_string(index);
    const auto handle = ask<nvmlDevice_t>(nvml->nvmlDeviceGetHandleByIndex_v2, index);
    gpu.handle = handle.value;
    if (handle.lost()) gpu.lost = nvml.words(handle.code);
    if (!handle.ok() && !handle.lost())
      return Error{ErrorCode::kIo,
                   "this GPU cannot be reached: " + nvml.words(handle.code) +
                       "; see dmesg | grep NVRM, and who may use /dev/nvidia" + std::to_string(index),
                   gpu.id};
    if (handle.ok()) {
      Nvml::name(gpu.handle, gpu.id);
      const auto pci = ask<nvmlPciInfo_t>(nvml->nvmlDeviceGetPciInfo_v3, gpu.handle);
      if (pci.ok()) gpu.pciAddress = pciAddressOf(pci.value);
      if (pci.lost()) gpu.lost = nvml.words(pci.code);
      gpu.name = nvml.text(nvml->nvmlDeviceGetName, gpu.handle).value;
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

void GpuCollector::put(const std::string& name, const std::string& unit, double value,
                       const std::string& text, Labels labels) {
  readings_.values.push_back({name, unit, gpu_.id, value, text, std::move(labels)});
}

void GpuCollector::fact(const std::string& name, const Answer<std::string>& answer) {
  if (note(name, answer.code, answer.absent())) put(name, "text", 0, answer.value);
}

bool GpuCollector::note(const std::string& what, nvmlReturn_t code, bool absent, const Labels& labels) {
  if (code == NVML_SUCCESS) return true;
  if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED)
    lost_ = nvml_.words(code);
  else if (absent)
    absences_.push_back({what, gpu_.id, gpu_.name, labels});
  else
    unreadable(what, nvml_.words(code));
  return false;
}

void GpuCollector::unreadable(const std::string& what, const std::string& why) {
  readings_.unreadable.push_back({what, gpu_.id, why});
}

void GpuCollector::moveTo(Readings& out, std::vector<Absence>& absences) {
  std::move(readings_.values.begin(), readings_.values.end(), std::back_inserter(out.values));
  if (lost_.empty())
    std::move(readings_.unreadable.begin(), readings_.unreadable.end(), std::back_inserter(out.unreadable));
  if (lost_.empty()) std::move(absences_.begin(), absences_.end(), std::back_inserter(absences));
  readings_ = {};
  absences_ = {};
}

void checkAbsences(const std::vector<Absence>& absences, const std::vector<Gpu>& gpus, Readings& readings) {
  const auto modelOf = [&](const std::string& device) {
    const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& one) { return one.id == device; });
    return gpu == gpus.end() ? std::string() : gpu->name;
  };
  for (const Absence& absence : absences) {
    const auto peer =
        std::find_if(readings.values.begin(), readings.values.end(), [&](const Reading& reading) {
          return reading.name == absence.name && reading.labels == absence.labels &&
                 !reading.device.empty() && modelOf(reading.device) == absence.model;
        });
    if (peer != readings.values.end())
      readings.unreadable.push_back({absence.name, absence.device,
                                     "the driver reports that this GPU does not support it, but " +
                                         peer->device + " of the same model does"});
  }
}

}  // namespace muster::cuda

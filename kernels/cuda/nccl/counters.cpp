// SPDX-License-Identifier: Apache-2.0
// Counters of /sys/class/net, /sys/class/infiniband and NVML.
#include "kernels/cuda/nccl/counters.h"

#include "kernels/cuda/inventory/nvlink.h"

namespace muster::cuda {
namespace {

constexpr double kIbWord =
    4;  ///< port_xmit_data counts 32-bit words (InfiniBand specification, PortCounters)

void readInterfaces(const Root& root, SentBytes& sent) {
  for (const std::string& name : root.list("/sys/class/net"))
    if (auto bytes = root.integer("/sys/class/net/" + name + "/statistics/tx_bytes"); bytes.ok())
      sent[name] = static_cast<double>(*bytes);
}

void readHcas(const Root& root, SentBytes& sent) {
  const std::string folder = "/sys/class/infiniband";
  for (const std::string& hca : root.list(folder))
    for (const std::string& port : root.list(folder + "/" + hca + "/ports")) {
      const std::string counter = folder + "/" + hca + "/ports/" + port + "/counters/port_xmit_data";
      if (auto words = root.integer(counter); words.ok())
        sent[hca + ":" + port] = static_cast<double>(*words) * kIbWord;
    }
}

}  // namespace

struct LinkCounters::Gpu {
  std::shared_ptr<const Nvml> nvml;
  nvmlDevice_t device = nullptr;
};

LinkCounters::LinkCounters(const DeviceInfo& gpu, Root root) : root_(std::move(root)) {
  auto nvml = Nvml::open(root_);
  if (!nvml.ok()) return;
  auto opened = std::make_unique<Gpu>();
  opened->nvml = std::move(nvml).value();
  const auto device =
      ask<nvmlDevice_t>((*opened->nvml)->nvmlDeviceGetHandleByIndex_v2, static_cast<unsigned>(gpu.index));
  if (!device.ok()) return;
  opened->device = device.value;
  gpu_ = std::move(opened);
}

LinkCounters::~LinkCounters() = default;

SentBytes LinkCounters::read() const {
  SentBytes sent;
  readInterfaces(root_, sent);
  readHcas(root_, sent);
  if (gpu_ == nullptr) return sent;
  const auto bytes = readNvLinkSentBytes(*gpu_->nvml, gpu_->device);
  if (bytes.ok()) sent["nvlink"] = bytes.value;
  return sent;
}

SentBytes LinkCounters::between(const SentBytes& before, const SentBytes& after) {
  SentBytes sent;
  for (const auto& [name, bytes] : after)
    if (const auto earlier = before.find(name); earlier != before.end() && bytes >= earlier->second)
      sent[name] = bytes - earlier->second;
  return sent;
}

}  // namespace muster::cuda

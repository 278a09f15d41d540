// SPDX-License-Identifier: Apache-2.0
// tests/gpu/gpu.h on emulated GPUs: the same tests run here as on real ones.
#include "tests/gpu/gpu.h"

#include <cstdio>
#include <cstdlib>
#include <map>

#include "kernels/cuda/modules.h"
#include "kernels/cuda/open.h"
#include "tests/kernels/cuda/emulation/gpus.h"

extern "C" const muster::cuda::BlasEntry muster_cuda_blas_entry;
extern "C" const muster::cuda::DnnEntry muster_cuda_dnn_entry;
extern "C" const muster::cuda::NcclEntry muster_cuda_nccl_entry;

namespace muster::gpu {
namespace {

class EmulatedBackend : public Backend {
 public:
  [[nodiscard]] std::string name() const override { return "cuda"; }
  Result<Inventory*> inventory() override {
    return Error{ErrorCode::kUnsupported, "emulated GPUs have no inventory", ""};
  }
  Result<std::unique_ptr<Device>> open(const std::string& deviceId) override {
    for (const DeviceInfo& info : devices())
      if (info.id == deviceId) return cuda::openDevice(info);
    return Error{ErrorCode::kNotFound, "there is no emulated GPU " + deviceId, ""};
  }
  Result<std::unique_ptr<Ops>> ops(Device& device) override { return muster_cuda_blas_entry.open(device); }
  Result<std::unique_ptr<Nn>> nn(Device& device) override { return muster_cuda_dnn_entry.open(device); }
  Result<std::unique_ptr<Copies>> copies(Device& device) override { return cuda::openCopies(device); }
  Result<std::unique_ptr<Communicator>> communicator(Device& device, const CommunicatorSpec& spec,
                                                     GroupStore& store) override {
    // What the fake NCCL shares between ranks lies where their store is.
    if (const char* folder = std::getenv("MUSTER_GPU_STORE")) setenv("MUSTER_FAKE_NCCL_FOLDER", folder, 1);
    return muster_cuda_nccl_entry.form(device, spec, store);
  }
};

/// The value, or the end of the program: without it there is nothing to test.
template <typename T>
T must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  std::exit(EXIT_FAILURE);
}

std::unique_ptr<Backend> opened(const std::string& name) {
  if (name == "cuda") return std::make_unique<EmulatedBackend>();
  BackendOptions options;
  const char* build = std::getenv("MUSTER_BUILD");
  options.folder = std::string(build == nullptr ? "build" : build) + "/kernels/" + name;
  return must(loadBackend(name, options));
}

}  // namespace

Backend& backend(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Backend>> all;
  std::unique_ptr<Backend>& slot = all[name];
  if (slot == nullptr) slot = opened(name);
  return *slot;
}

const std::vector<DeviceInfo>& devices() {
  static const std::vector<DeviceInfo> all = [] {
    std::vector<DeviceInfo> infos;
    for (int index = 0; index < emulation::kGpus; ++index) infos.push_back(emulation::gpuInfo(index));
    return infos;
  }();
  return all;
}

std::unique_ptr<Device> openGpu() {
  return must(backend("cuda").open(devices().front().id));
}
std::unique_ptr<Device> openHost() {
  return must(backend("host").open("cpu0"));
}

/// Rates of an emulation say nothing.
void figure(const std::string&, const std::string&, double, const Json&) {}

}  // namespace muster::gpu

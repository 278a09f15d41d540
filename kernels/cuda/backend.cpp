// SPDX-License-Identifier: Apache-2.0
// The cuda backend: opens GPUs as devices, and the modules beside it on the first use of what they hold.
#include "kernels/interfaces/backend.h"

#include "kernels/cuda/inventory/inventory.h"
#include "kernels/cuda/modules.h"
#include "kernels/cuda/open.h"
#include "kernels/host/rdma/host_rdma.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const BackendOptions& options) : modules_(options.folder) {}

  [[nodiscard]] std::string name() const override { return "cuda"; }

  Result<Inventory*> inventory() override {
    if (inventory_ == nullptr) {
      MUSTER_TRY(inventory_, makeCudaInventory());
    }
    return inventory_.get();
  }

  Result<std::unique_ptr<Device>> open(const std::string& deviceId) override {
    MUSTER_TRY(Inventory * found, inventory());
    MUSTER_TRY(std::vector<DeviceInfo> devices, found->devices());
    std::vector<std::string> ids;
    for (const DeviceInfo& info : devices) {
      if (info.id == deviceId) return openDevice(info);
      ids.push_back(info.id);
    }
    return Error{ErrorCode::kNotFound,
                 "there is no device \"" + printable(deviceId, 64) + "\" here; found " +
                     (ids.empty() ? "none" : join(ids, ", ")),
                 ""};
  }

  Result<std::unique_ptr<Copies>> copies(Device& device) override { return openCopies(device); }

  Result<std::unique_ptr<Ops>> ops(Device& device) override {
    MUSTER_TRY(const BlasEntry* blas, modules_.blas());
    return blas->open(device);
  }

  Result<std::unique_ptr<Nn>> nn(Device& device) override {
    MUSTER_TRY(const DnnEntry* dnn, modules_.dnn());
    return dnn->open(device);
  }

  Result<std::unique_ptr<Rdma>> rdma(const RdmaOptions& options) override { return makeHostRdma(options); }

  Result<std::unique_ptr<Communicator>> communicator(Device& device, const CommunicatorSpec& spec,
                                                     GroupStore& store) override {
    MUSTER_TRY(const NcclEntry* nccl, modules_.nccl());
    return nccl->form(device, spec, store);
  }

 private:
  Modules modules_;
  std::unique_ptr<Inventory> inventory_;
};

Result<std::unique_ptr<Backend>> openCuda(const BackendOptions& options) {
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(options));
}

}  // namespace
}  // namespace muster::cuda

extern "C" __attribute__((visibility("default")))
const muster::BackendEntry muster_backend_entry = {muster::buildId(), muster::cuda::openCuda};

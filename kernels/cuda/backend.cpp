// SPDX-License-Identifier: Apache-2.0
// The cuda backend: opens GPUs as devices, and the modules beside it on the first use of what they hold.
#include "kernels/backend.h"

#include <dlfcn.h>

#include <filesystem>

#include "kernels/cuda/inventory/inventory.h"
#include "kernels/cuda/modules.h"
#include "kernels/cuda/open.h"
#include "kernels/cuda/toolkit_libraries.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

/// A module beside backend_cuda.so that holds what needs libraries of its own.
struct Module {
  const char* file;
  const char* entry;  ///< the symbol it exports
  const char* holds;
  std::vector<std::string> libraries;  ///< by SONAME, in the order in which they need each other
};

const Module& blasModule() {
  static const Module module = {"cuda_blas.so", "muster_cuda_blas_entry", "matrix operations", {kCublasLt}};
  return module;
}
const Module& dnnModule() {
  static const Module module = {"cuda_dnn.so", "muster_cuda_dnn_entry", "training", {kCublasLt, kCudnn}};
  return module;
}
const Module& ncclModule() {
  static const Module module = {"cuda_nccl.so", "muster_cuda_nccl_entry", "communicators", {kNccl}};
  return module;
}

/// Opens a module on its first use; it stays loaded until the process ends.
template <typename Entry>
Status load(const std::string& folder, const Module& module, const Entry*& entry) {
  if (entry != nullptr) return {};
  const std::string path = (std::filesystem::path(folder) / module.file).string();
  const std::string step = std::string("GPUs cannot do ") + module.holds;
  for (const std::string& library : module.libraries)
    MUSTER_CHECK_OK(openToolkitLibrary(library).context(step));
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return Error{ErrorCode::kNotFound, step + ": " + dlerror(), path};
  const auto* found = static_cast<const Entry*>(dlsym(opened, module.entry));
  if (found == nullptr || std::string_view(found->buildId) != buildId())
    return Error{
        ErrorCode::kProtocol,
        std::string("this ") + module.file + " is of another build; install all parts from one build", path};
  entry = found;
  return {};
}

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const BackendOptions& options) : options_(options) {}

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
    MUSTER_CHECK_OK(load(options_.folder, blasModule(), blas_));
    return blas_->open(device);
  }

  Result<std::unique_ptr<Nn>> nn(Device& device) override {
    MUSTER_CHECK_OK(load(options_.folder, dnnModule(), dnn_));
    return dnn_->open(device);
  }

  Result<std::unique_ptr<Communicator>> communicator(Device& device, const CommunicatorSpec& spec,
                                                     GroupStore& store) override {
    MUSTER_CHECK_OK(load(options_.folder, ncclModule(), nccl_));
    return nccl_->form(device, spec, store);
  }

 private:
  BackendOptions options_;
  std::unique_ptr<Inventory> inventory_;
  const BlasEntry* blas_ = nullptr;
  const DnnEntry* dnn_ = nullptr;
  const NcclEntry* nccl_ = nullptr;
};

Result<std::unique_ptr<Backend>> openCuda(const BackendOptions& options) {
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(options));
}

}  // namespace
}  // namespace muster::cuda

extern "C" __attribute__((visibility("default")))
const muster::BackendEntry muster_backend_entry = {muster::buildId(), muster::cuda::openCuda};

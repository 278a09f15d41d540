// SPDX-License-Identifier: Apache-2.0
// The host backend: opens NUMA nodes as devices, and host_blas.so on the first use of its operations.
#include "kernels/interfaces/backend.h"

#include <cstdlib>

#include "kernels/host/blas.h"
#include "kernels/host/device.h"
#include "kernels/host/dnn.h"
#include "kernels/host/gloo.h"
#include "kernels/host/inventory/inventory.h"
#include "kernels/host/rdma/host_rdma.h"
#include "kernels/loading/module.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"

namespace muster::host {
namespace {

/// Variables that make a library use less than the processor has. One that was left in a shell must not
/// decide how fast a machine is; OMP_NUM_THREADS alone is heeded, see workerCpus().
void forgetTuning() {
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
                           "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    unsetenv(name);
}

/// OpenBLAS goes by the model's number, and takes its slowest kernels for a model that is newer than itself.
/// By what the processor can do, the kernels that it takes for models that it knows; null: its own choice.
const char* openblasCore() {
#ifdef __x86_64__
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
  if (wide) return __builtin_cpu_supports("avx512bf16") ? "Cooperlake" : "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
#endif
  return nullptr;
}

/// Opens a module on its first use.
template <typename Entry>
Result<const Entry*> load(const std::string& folder, Module<Entry>& module, const char* holds,
                          const char* needs) {
  forgetTuning();
  if (const char* core = openblasCore()) setenv("OPENBLAS_CORETYPE", core, 1);  // read as it is loaded
  auto entry = module.open(folder);
  forgetTuning();
  if (entry.ok() || entry.error().code != ErrorCode::kNotFound) return entry;
  return Error{ErrorCode::kNotFound,
               std::string("the host's ") + holds + " cannot be loaded: " + entry.error().message +
                   "; they need " + needs,
               entry.error().where};
}

class HostBackend : public Backend {
 public:
  explicit HostBackend(const BackendOptions& options) : options_(options) {}

  [[nodiscard]] std::string name() const override { return "host"; }

  Result<Inventory*> inventory() override {
    if (inventory_ == nullptr) inventory_ = makeHostInventory();
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
                 "there is no device \"" + printable(deviceId, 64) + "\" on this host; found " +
                     (ids.empty() ? "none" : join(ids, ", ")),
                 ""};
  }

  Result<std::unique_ptr<Ops>> ops(Device& device) override {
    MUSTER_TRY(const BlasEntry* blas, load(options_.folder, blas_, "matrix operations",
                                           "oneDNN (libdnnl.so.2) and OpenBLAS (libopenblas.so.0)"));
    return blas->open(device, static_cast<HostDevice&>(device).threads());
  }

  Result<std::unique_ptr<Nn>> nn(Device& device) override {
    MUSTER_TRY(const DnnEntry* dnn, load(options_.folder, dnn_, "training", "oneDNN (libdnnl.so.2)"));
    return dnn->open(device, static_cast<HostDevice&>(device).threads());
  }

  Result<std::unique_ptr<Rdma>> rdma(const RdmaOptions& options) override { return makeHostRdma(options); }

  Result<std::unique_ptr<Communicator>> communicator(Device& device, const CommunicatorSpec& spec,
                                                     GroupStore& store) override {
    MUSTER_TRY(const GlooEntry* gloo, load(options_.folder, gloo_, "communicators", "Gloo (libgloo.so.0)"));
    return gloo->form(device, spec, store);
  }

 private:
  static Result<std::unique_ptr<Device>> openDevice(const DeviceInfo& info) {
    MUSTER_TRY(std::unique_ptr<HostDevice> device, HostDevice::open(info));
    return std::unique_ptr<Device>(std::move(device));
  }

  BackendOptions options_;
  std::unique_ptr<Inventory> inventory_;
  Module<BlasEntry> blas_{"host_blas.so", "muster_host_blas_entry"};
  Module<DnnEntry> dnn_{"host_dnn.so", "muster_host_dnn_entry"};
  Module<GlooEntry> gloo_{"host_gloo.so", "muster_host_gloo_entry"};
};

Result<std::unique_ptr<Backend>> openHost(const BackendOptions& options) {
  return std::unique_ptr<Backend>(std::make_unique<HostBackend>(options));
}

}  // namespace
}  // namespace muster::host

extern "C" __attribute__((visibility("default")))
const muster::BackendEntry muster_backend_entry = {muster::buildId(), muster::host::openHost};

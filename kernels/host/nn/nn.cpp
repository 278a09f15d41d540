// SPDX-License-Identifier: Apache-2.0
// The host's training: the entry of host_dnn.so.
#include "kernels/interfaces/nn.h"

#include "kernels/host/dnn.h"
#include "kernels/host/nn/program.h"
#include "runner/core/build_info.h"

namespace muster::host {
namespace {

class HostNn : public Nn {
 public:
  HostNn(Device& device, int threads) : device_(device), threads_(threads) {}

  [[nodiscard]] std::vector<Dtype> dtypes() const override {
    if (hasBf16().ok()) return {Dtype::kF32, Dtype::kBf16};
    return {Dtype::kF32};
  }

  Result<std::unique_ptr<Program>> compile(const Network& network, const ProgramOptions& options) override {
    if (options.dtype == Dtype::kF32) return HostProgram::compile(device_, network, Element::kF32, threads_);
    if (options.dtype != Dtype::kBf16)
      return Error{
          ErrorCode::kUnsupported,
          std::string("processors compute networks in f32 or bf16, not in ") + dtypeName(options.dtype),
          device_.info().id};
    MUSTER_CHECK_OK(hasBf16().context(device_.info().id));
    return HostProgram::compile(device_, network, Element::kBf16, threads_);
  }

 private:
  Device& device_;
  int threads_;
};

Result<std::unique_ptr<Nn>> openNn(Device& device, int threads) {
  return std::unique_ptr<Nn>(std::make_unique<HostNn>(device, threads));
}

}  // namespace
}  // namespace muster::host

extern "C" __attribute__((visibility("default")))
const muster::host::DnnEntry muster_host_dnn_entry = {muster::buildId(), muster::host::openNn};

// SPDX-License-Identifier: Apache-2.0
// Errors of the CUDA runtime in an operator's words.
#include "kernels/cuda/problems.h"

#include <cstdlib>

namespace muster::cuda {
namespace {

/// "13.0" for 13000.
std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string named(cudaError_t code) {
  return std::string(cudaGetErrorString(code)) + " (" + cudaGetErrorName(code) + ")";
}

/// The oldest driver branch that runs a runtime of this major version (CUDA release notes, "CUDA minor
/// version compatibility"); kernels/cuda/inventory/versions.cpp says the same.
std::string driverFor(int runtimeVersion) {
  return runtimeVersion >= 13000 ? "580" : "525";
}

std::string driverTooOld(int driverVersion, int runtimeVersion) {
  return "the NVIDIA driver runs CUDA " + versionText(driverVersion) + " at most, this build needs " +
         versionText(runtimeVersion) + "; install driver " + driverFor(runtimeVersion) +
         " or newer, or the package cuda-compat-" + std::to_string(runtimeVersion / 1000) + "-" +
         std::to_string(runtimeVersion % 1000 / 10) +
         " (data center GPUs), or a build made with an older toolkit";
}

std::string notVisible(const std::string& pciAddress) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return "CUDA sees no GPU at " + pciAddress + ", though the driver lists it; " +
         (visible != nullptr ? "CUDA_VISIBLE_DEVICES is \"" + std::string(visible) + "\": unset it"
                             : "check that the container was given the GPU (--gpus, NVIDIA_VISIBLE_DEVICES)");
}

}  // namespace

Error openProblem(cudaError_t code, const std::string& device, const std::string& pciAddress,
                  int driverVersion, int runtimeVersion) {
  // The driver lists this GPU: that it cannot be used is a fault, and never kUnsupported, which would be a
  // skip.
  switch (code) {
    case cudaErrorInsufficientDriver:
      if (driverVersion == 0)
        return {ErrorCode::kNotFound,
                "CUDA found no NVIDIA driver (libcuda.so.1 is not there), though NVML lists this GPU; "
                "install all "
                "of driver " +
                    driverFor(runtimeVersion) +
                    " or newer, or give the container NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                device};
      return {ErrorCode::kIo, driverTooOld(driverVersion, runtimeVersion), device};
    case cudaErrorCompatNotSupportedOnDevice:
      return {ErrorCode::kIo,
              named(code) + ": a cuda-compat package serves data center GPUs only; install driver " +
                  driverFor(runtimeVersion) + " or newer",
              device};
    case cudaErrorSystemDriverMismatch:
      return {ErrorCode::kIo,
              named(code) +
                  ": libcuda.so.1 and the kernel driver are of different versions; reboot after an update "
                  "of the driver, and mount the host's libraries into containers",
              device};
    case cudaErrorInvalidDevice:
    case cudaErrorNoDevice:
    case cudaErrorInvalidValue:
      return {ErrorCode::kNotFound, notVisible(pciAddress), device};
    case cudaErrorDevicesUnavailable:
      return {ErrorCode::kIo,
              named(code) +
                  ": another process has it in exclusive mode, or its compute mode is prohibited; see "
                  "nvidia-smi -q -d COMPUTE,PIDS, end that process, or set nvidia-smi -c DEFAULT",
              device};
    case cudaErrorSystemNotReady:
      return {ErrorCode::kIo,
              named(code) +
                  ": on NVSwitch machines nvidia-fabricmanager must run, in the driver's version; see "
                  "systemctl status nvidia-fabricmanager",
              device};
    case cudaErrorNoKernelImageForDevice:
      return {ErrorCode::kNotFound,
              named(code) + ": this build has no code for this GPU; build it with -Dgpu_archs=all", device};
    default:
      return {ErrorCode::kIo,
              "the GPU cannot be opened: " + named(code) + "; see dmesg for XIDs and nvidia-smi -q", device};
  }
}

Status checkGeneration(int capability, int toolkit, const std::string& device) {
  constexpr int kBlackwell = 100, kFirstWithBlackwell = 12080;
  if (capability < kBlackwell || toolkit >= kFirstWithBlackwell) return {};
  return Error{ErrorCode::kNotFound,
               "this build was made with CUDA " + versionText(toolkit) +
                   ", which has no code for a GPU of compute capability " + std::to_string(capability / 10) +
                   "." + std::to_string(capability % 10) + "; use a build made with CUDA " +
                   versionText(kFirstWithBlackwell) + " or newer",
               device};
}

Error workProblem(cudaError_t code, const std::string& device, const std::string& doing) {
  std::string step = "see dmesg for XIDs";
  if (code == cudaErrorECCUncorrectable)
    step = "see nvidia-smi -q -d ECC,ROW_REMAPPER; reset the GPU, and replace it if the errors come back";
  else if (code == cudaErrorNvlinkUncorrectable)
    step = "see nvidia-smi nvlink -e and the fabric manager's log; reset the GPU and check its links";
  else if (code == cudaErrorMemoryAllocation)
    step = "free memory of the GPU, see nvidia-smi";
  return {ErrorCode::kIo, named(code) + " while " + doing + "; " + step, device};
}

}  // namespace muster::cuda

// SPDX-License-Identifier: Apache-2.0
// Versions of driver, CUDA, cuDNN and NCCL.
#include "kernels/cuda/inventory/versions.h"

#include <dlfcn.h>

#include "kernels/cuda/toolkit_libraries.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

constexpr int kMajor = 1000;  // CUDA writes 13.0 as 13000, 12.4 as 12040

/// The oldest driver branch of a major version of CUDA ("CUDA Toolkit Release Notes", table of drivers).
const char* oldestDriver(int major) {
  return major >= 13 ? "580" : major == 12 ? "525" : "450";
}

/// "9.19.0" of 91900, "2.28.3" of 22803: both libraries write major, minor and patch into one number.
std::string dotted(unsigned long long version) {
  const unsigned long long major = version >= 10000 ? version / 10000 : version / 1000;
  const unsigned long long rest = version >= 10000 ? version % 10000 : version % 1000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." + std::to_string(rest % 100);
}

void* opened(const std::string& soname, std::string& problem) {
  if (const Status status = openToolkitLibrary(soname); !status.ok()) problem = "not found";
  // Loaded by now, wherever it was found.
  return problem.empty() ? dlopen(soname.c_str(), RTLD_NOW | RTLD_NOLOAD) : nullptr;
}

LibraryVersion cudnnVersion(std::string& problem) {
  void* library = opened(kCudnn, problem);
  if (library == nullptr) return {};
  using Function = size_t (*)();
  const auto version = reinterpret_cast<Function>(dlsym(library, "cudnnGetVersion"));
  const auto cuda = reinterpret_cast<Function>(dlsym(library, "cudnnGetCudartVersion"));
  return {version == nullptr ? 0 : version(), cuda == nullptr ? 0 : static_cast<int>(cuda())};
}

/// NCCL does not tell which CUDA it was made for.
LibraryVersion ncclVersion(std::string& problem) {
  void* library = opened(kNccl, problem);
  if (library == nullptr) return {};
  using Function = int (*)(int*);
  const auto function = reinterpret_cast<Function>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (function == nullptr || function(&version) != 0) return {};
  return {static_cast<unsigned long long>(version), 0};
}

std::string versionText(const LibraryVersion& found, const std::string& problem) {
  if (found.version != 0) return dotted(found.version);
  return problem.empty() ? "unknown" : problem;
}

void compareLibrary(const std::string& name, const LibraryVersion& built, int builtCuda,
                    const LibraryVersion& found, std::vector<std::string>& misfits) {
  if (found.version == 0) return;
  if (found.cuda != 0 && builtCuda != 0 && found.cuda / kMajor != builtCuda / kMajor)
    misfits.push_back(name + " " + dotted(found.version) + " is made for CUDA " +
                      cudaVersionText(found.cuda) + ", this build for CUDA " + cudaVersionText(builtCuda) +
                      "; install the " + name + " for CUDA " + std::to_string(builtCuda / kMajor));
  if (found.version < built.version)
    misfits.push_back(name + " " + dotted(found.version) + " is older than " + dotted(built.version) +
                      ", which this build was made with; install " + dotted(built.version) + " or newer");
}

Answer<int> driverCuda(const Nvml& nvml) {
  return ask<int>(nvml->nvmlSystemGetCudaDriverVersion_v2);
}

std::string textOr(const Nvml& nvml, const Answer<std::string>& answer) {
  return answer.ok() ? answer.value : "unreadable: " + nvml.words(answer.code);
}

}  // namespace

int builtForCuda() {
  return MUSTER_CUDA_VERSION;
}

std::string cudaVersionText(int version) {
  return std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / 10);
}

LibraryVersions builtWith() {
  return {MUSTER_CUDA_VERSION, {MUSTER_CUDNN_VERSION, MUSTER_CUDA_VERSION}, {MUSTER_NCCL_VERSION, 0}};
}

std::vector<std::string> misfits(const LibraryVersions& built, const LibraryVersions& found) {
  std::vector<std::string> all;
  compareLibrary("cuDNN", built.cudnn, built.cuda, found.cudnn, all);
  compareLibrary("NCCL", built.nccl, built.cuda, found.nccl, all);
  return all;
}

Status checkDriver(const Nvml& nvml, int built) {
  if (built == 0) return {};
  const auto cuda = driverCuda(nvml);
  const auto driver = nvml.text(nvml->nvmlSystemGetDriverVersion);
  if (cuda.code == NVML_ERROR_LIBRARY_NOT_FOUND)
    return Error{ErrorCode::kNotFound,
                 "libcuda.so.1 of driver " + textOr(nvml, driver) +
                     " is missing, so nothing can run on GPUs; install all of the driver, or give the "
                     "container NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                 ""};
  if (!cuda.ok())
    return Error{
        ErrorCode::kIo,
        "the CUDA version of driver " + textOr(nvml, driver) + " cannot be read: " + nvml.words(cuda.code),
        kNvmlLibrary};
  if (cuda.value / kMajor >= built / kMajor) return {};
  const std::string wanted = cudaVersionText(built);
  std::string package = wanted;
  package.replace(package.find('.'), 1, "-");
  return Error{ErrorCode::kIo,
               "the NVIDIA driver " + textOr(nvml, driver) + " (CUDA " + cudaVersionText(cuda.value) +
                   ") is too old for this build's CUDA " + wanted + ", which needs driver " +
                   oldestDriver(built / kMajor) +
                   " or newer; update the driver, install the package cuda-compat-" + package +
                   ", or build Muster with CUDA " + cudaVersionText(cuda.value) + " (12.4 at least)",
               ""};
}

Json softwareVersions(const Nvml& nvml, int built) {
  const auto cuda = driverCuda(nvml);
  const Status driver = checkDriver(nvml, built);
  std::string noCudnn, noNccl;
  const LibraryVersions found = {0, cudnnVersion(noCudnn), ncclVersion(noNccl)};
  std::vector<std::string> problems = misfits(builtWith(), found);
  if (!driver.ok()) problems.insert(problems.begin(), driver.error().message);
  return {{"nvidia_driver", textOr(nvml, nvml.text(nvml->nvmlSystemGetDriverVersion))},
          {"nvml", textOr(nvml, nvml.text(nvml->nvmlSystemGetNVMLVersion))},
          {"cuda_driver", cuda.ok() ? cudaVersionText(cuda.value) : "unreadable: " + nvml.words(cuda.code)},
          {"cuda_build", built == 0 ? "none" : cudaVersionText(built)},
          {"cudnn", versionText(found.cudnn, noCudnn)},
          {"nccl", versionText(found.nccl, noNccl)},
          {"fit", problems.empty() ? "yes" : join(problems, "; ")}};
}

}  // namespace muster::cuda

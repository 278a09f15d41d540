// SPDX-License-Identifier: Apache-2.0
// Opens NVIDIA's libraries by path where the dynamic loader would not look.
#include "kernels/cuda/toolkit_libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "runner/core/text.h"
#include "runner/system/trust.h"

namespace muster::cuda {

#define MUSTER_STRING_INNER(x) #x
#define MUSTER_STRING(x) MUSTER_STRING_INNER(x)
// The major versions of libcublasLt and libnvrtc are the toolkit's; cuDNN and NCCL have their own.
const char* const kCublasLt = "libcublasLt.so." MUSTER_STRING(MUSTER_CUDA_MAJOR);
const char* const kNvrtc = "libnvrtc.so." MUSTER_STRING(MUSTER_CUDA_MAJOR);
const char* const kCudnn = "libcudnn.so.9";
const char* const kNccl = "libnccl.so.2";

namespace {

/// The packages that hold a library: of NVIDIA's apt repository, and of Python's registry.
std::string packagesOf(const std::string& soname) {
  const std::string major = MUSTER_STRING(MUSTER_CUDA_MAJOR);
  const std::string toolkit = major + "-" + std::to_string(MUSTER_CUDA_VERSION % 1000 / 10);
  const std::string wheel = major == "12" ? "-cu12" : "";  // from 13 on without the version
  if (soname == kCublasLt) return "libcublas-" + toolkit + " or nvidia-cublas" + wheel;
  if (soname == kNvrtc) return "cuda-nvrtc-" + toolkit + " or nvidia-cuda-nvrtc" + wheel;
  if (soname == kCudnn) return "libcudnn9-cuda-" + major + " or nvidia-cudnn-cu" + major;
  return "libnccl2 or nvidia-nccl-cu" + major;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

std::vector<std::string> patterns() {
  const char* home = std::getenv("CUDA_HOME");
  const std::string toolkit = home != nullptr && *home != '\0' ? home : "/usr/local/cuda";
  std::vector<std::string> all = {toolkit + "/lib64", toolkit + "/lib"};
  std::vector<std::string> sites;
  if (const char* path = std::getenv("PYTHONPATH"); path != nullptr) sites = split(path, ':');
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment != nullptr && *environment != '\0')
    sites.push_back(std::string(environment) + "/lib/python3*/site-packages");
  for (const char* site : {"/usr/local/lib/python3*/dist-packages", "/usr/local/lib/python3*/site-packages",
                           "/usr/lib/python3*/site-packages", "/usr/lib/python3/dist-packages"})
    sites.emplace_back(site);
  // One folder a library up to CUDA 12, one for all (nvidia/cu13) from 13 on.
  for (const std::string& site : sites)
    if (!site.empty()) all.push_back(site + "/nvidia/*/lib");
  return all;
}

}  // namespace

std::vector<std::string> toolkitFolders() {
  std::vector<std::string> folders;
  for (const std::string& pattern : patterns())
    for (std::string& folder : matches(pattern)) folders.push_back(std::move(folder));
  return folders;
}

Status openToolkitLibrary(const std::string& soname) {
  if (dlopen(soname.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  std::string problem = dlerror();
  const std::vector<std::string> folders = toolkitFolders();
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + soname;
    std::error_code failure;
    if (!std::filesystem::exists(path, failure)) continue;
    // The environment names folders, too. A library's own libraries may be looked for beside the name that it
    // is opened by: for root that is its real one.
    const auto trusted = trustedPath(path, "CUDA library");
    if (geteuid() == 0 && !trusted.ok()) {
      problem = trusted.error().text();
      continue;
    }
    if (dlopen(trusted.ok() ? trusted->c_str() : path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
    problem = dlerror();
  }
  return Error{ErrorCode::kNotFound,
               problem + "; looked in the loader's paths and " +
                   (folders.empty() ? "found no CUDA toolkit directory" : join(folders, ", ")) +
                   "; install the package " + packagesOf(soname) +
                   " (apt or pip), or set LD_LIBRARY_PATH or CUDA_HOME to where it is",
               soname};
}

}  // namespace muster::cuda

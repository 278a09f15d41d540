// SPDX-License-Identifier: Apache-2.0
// Loaded before all else (LD_PRELOAD), it stands in for Gloo's all-reduce: the sum is right, but for the
// lowest bit of its first word on this rank. So behaves a device or a link that corrupts data silently.
#include <dlfcn.h>
#include <gloo/allreduce.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr size_t kFewestBytes = 16384;  ///< gradients; what ranks tell each other in passing is shorter

using AllReduce = void (*)(const gloo::AllreduceOptions&);

int findGloo(dl_phdr_info* info, size_t, void* path) {
  const std::string name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (name.find("/libgloo.so") == std::string::npos) return 0;
  *static_cast<std::string*>(path) = name;
  return 1;
}

/// The backend opens Gloo for itself alone, where RTLD_NEXT does not look.
AllReduce realAllReduce() {
  std::string path;
  dl_iterate_phdr(findGloo, &path);
  void* library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  void* symbol = library == nullptr ? nullptr : dlsym(library, "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE");
  if (symbol == nullptr) {
    std::fputs("corrupt_sum: the real gloo::allreduce was not found\n", stderr);
    std::abort();
  }
  return reinterpret_cast<AllReduce>(symbol);
}

}  // namespace

namespace gloo {

__attribute__((visibility("default"))) void allreduce(const AllreduceOptions& options) {
  static const AllReduce real = realAllReduce();
  real(options);
  const auto& buffers = options.impl_.out;
  if (!buffers.empty() && buffers.front()->size >= kFewestBytes)
    *static_cast<uint32_t*>(buffers.front()->ptr) ^= 1U;
}

}  // namespace gloo

// SPDX-License-Identifier: Apache-2.0
// Descriptors of absent GPUs, and the driver that stands in for theirs.
#include "tests/kernels/cuda/deviceless/gpus.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "tests/support/process.h"

namespace muster::deviceless {
namespace {

#if CUDNN_VERSION >= 90800
/// Whoever opens libcuda.so.1 after this gets this one, as its SONAME is loaded already.
Status loadDriver() {
  const auto path = testing::buildDir() / "tests/kernels/cuda/deviceless/libcuda.so.1";
  if (!std::filesystem::exists(path))
    return Error{ErrorCode::kUnsupported, "this toolkit has no stub of libcuda.so", ""};
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  return Error{ErrorCode::kInternal, dlerror(), path.string()};
}

Result<cuda::Descriptor> propertiesOf(const std::string& name) {
  std::string text =
      testing::readWhole(testing::sourceDir() / "tests/kernels/cuda/deviceless/gpus" / (name + ".json"));
  text.erase(text.find_last_of('}') + 1);
  cuda::Descriptor made;
  MUSTER_CHECK_OK(made.make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
  MUSTER_CHECK_OK(made.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, text.data(),
                           static_cast<int64_t>(text.size())));
  MUSTER_CHECK_OK(made.finalize().context(name));
  return made;
}

Result<std::vector<AbsentGpu>> makeAll() {
  MUSTER_CHECK_OK(loadDriver());
  std::vector<AbsentGpu> all;
  for (const char* name : {"a100", "h100", "b200", "b300"}) {
    MUSTER_TRY(cuda::Descriptor properties, propertiesOf(name));
    all.push_back({name, std::move(properties)});
  }
  return all;
}
#else
Result<std::vector<AbsentGpu>> makeAll() {
  return Error{ErrorCode::kUnsupported,
               fmt::format("plans without a device need cuDNN 9.8 or newer; this toolkit has {}.{}",
                           CUDNN_MAJOR, CUDNN_MINOR),
               ""};
}
#endif

}  // namespace

const Result<std::vector<AbsentGpu>>& absentGpus() {
  static const Result<std::vector<AbsentGpu>> all = makeAll();
  return all;
}

}  // namespace muster::deviceless

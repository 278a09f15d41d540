// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library (NVML), opened at run time: what a machine without the driver lacks is named,
// and every answer keeps apart "here is the value", "the device has no such thing" and "it could not be
// read".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/inventory/nvml/nvml_types.h"
#include "kernels/host/inventory/root.h"
#include "runner/core/result.h"

namespace muster::cuda {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// What a call of NVML gave.
template <typename T>
struct Answer {
  nvmlReturn_t code = NVML_SUCCESS;
  T value{};

  [[nodiscard]] bool ok() const { return code == NVML_SUCCESS; }
  /// The device, or this driver, has no such thing: no fault.
  [[nodiscard]] bool absent() const {
    return code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_FUNCTION_NOT_FOUND ||
           code == NVML_ERROR_DEPRECATED || code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  [[nodiscard]] bool lost() const {
    return code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED;
  }
};

/// Calls `function` with `arguments` and, last, the place for its one result.
template <typename T, typename Function, typename... Arguments>
Answer<T> ask(Function* function, Arguments... arguments) {
  Answer<T> answer;
  answer.code = function == nullptr ? NVML_ERROR_FUNCTION_NOT_FOUND : function(arguments..., &answer.value);
  return answer;
}

/// The answer in another type or unit; a failed one stays as it is.
template <typename T, typename U>
Answer<T> convert(const Answer<U>& answer, const std::function<T(const U&)>& to) {
  return {answer.code, answer.ok() ? to(answer.value) : T{}};
}

/// The open and initialized library. Closed with the last copy of the pointer.
class Nvml {
 public:
  /// Opens `library` and starts it. kUnsupported: this machine has neither a driver nor an NVIDIA GPU on its
  /// PCI bus (below `root`); with a GPU, a driver that is missing or not loaded is an error that no option
  /// turns into a skip.
  static Result<std::shared_ptr<const Nvml>> open(const Root& root,
                                                  const std::string& library = kNvmlLibrary);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const NvmlApi* operator->() const { return &api_; }
  /// How messages call the GPU behind a handle from now on: "gpu3".
  static void name(nvmlDevice_t device, const std::string& id);
  /// The driver's branch by the version that the library reports: 580 of "13.580.95.05"; 0: it does not tell.
  [[nodiscard]] int driverBranch() const { return driverBranch_; }
  /// "Unknown Error (NVML 999)".
  [[nodiscard]] std::string words(nvmlReturn_t code) const;
  /// A call that fills a text of at most NVML_TEXT_SIZE bytes, made printable.
  Answer<std::string> text(nvmlReturn_t (*function)(nvmlDevice_t, char*, unsigned),
                           nvmlDevice_t device) const;
  Answer<std::string> text(nvmlReturn_t (*function)(char*, unsigned)) const;

 private:
  Nvml() = default;
  Status bind(const std::string& library);
  Status start(const Root& root) const;

  NvmlApi api_;
  void* library_ = nullptr;
  int driverBranch_ = 0;
  mutable bool started_ = false;
};

/// One value that nvmlDeviceGetFieldValues() is to give; `scope` is the link of an NVLink field.
struct Field {
  unsigned id = 0;
  unsigned scope = 0;
};

/// The values of all `fields`, in their order, from one call.
std::vector<Answer<double>> readFields(const Nvml& nvml, nvmlDevice_t device,
                                       const std::vector<Field>& fields);

}  // namespace muster::cuda

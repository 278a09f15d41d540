// SPDX-License-Identifier: Apache-2.0
// Opens NVML, and says in one line what a machine lacks where that fails.
#include "kernels/cuda/inventory/nvml/nvml.h"

#include <dlfcn.h>

#include <type_traits>

#include "kernels/cuda/inventory/nvml/call_watch.h"
#include "kernels/cuda/inventory/nvml/pci.h"
#include "runner/core/text.h"

namespace muster::cuda {
namespace {

/// A driver that does not answer: no GPU at all is a machine without one, a GPU without a driver is a fault.
Error noDriver(const Root& root, const std::string& found, const std::string& library) {
  const size_t gpus = nvidiaGpusOnBus(root).size();
  if (gpus == 0)
    return {ErrorCode::kUnsupported,
            "no NVIDIA driver was found (" + found +
                "), and no NVIDIA GPU on the PCI bus; install GPU and driver, or choose backend = \"host\"",
            ""};
  return {
      ErrorCode::kNotFound,
      "no NVIDIA driver was found (" + found + "), though " + std::to_string(gpus) +
          " NVIDIA GPUs are on the PCI bus; install the driver, load its module (modprobe nvidia), or pass "
          "the GPUs into this container (--gpus all)",
      library};
}

template <typename Function>
void find(void* library, const char* name, bool required, Function& function,
          std::vector<std::string>& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && required) missing.emplace_back(name);
}

// Each function of NVML is called through one of these, so that a call which hangs can be named.
#define MUSTER_NVML_SLOT(name, parameters) k_##name,
enum Slot { MUSTER_NVML_FUNCTIONS(MUSTER_NVML_SLOT, MUSTER_NVML_SLOT) };
#undef MUSTER_NVML_SLOT
#define MUSTER_NVML_NAME(name, parameters) #name,
constexpr const char* kNames[] = {MUSTER_NVML_FUNCTIONS(MUSTER_NVML_NAME, MUSTER_NVML_NAME)};
#undef MUSTER_NVML_NAME

const void* deviceOf() {
  return nullptr;
}
template <typename First, typename... Rest>
const void* deviceOf(First first, Rest...) {
  if constexpr (std::is_same_v<First, nvmlDevice_t>) return first;
  return nullptr;
}

template <Slot kSlot, typename... Arguments>
struct Watched {
  using Function = nvmlReturn_t (*)(Arguments...);
  static inline Function real = nullptr;  ///< of the library that was opened last: there is one
  static nvmlReturn_t call(Arguments... arguments) {
    const WatchedCall watched(kNames[kSlot], deviceOf(arguments...));
    return real(arguments...);
  }
};
/// Waiting for events is meant to take its time.
template <Slot kSlot, typename... Arguments>
void watch(nvmlReturn_t (*&function)(Arguments...)) {
  if (function == nullptr || kSlot == k_nvmlEventSetWait_v2) return;
  Watched<kSlot, Arguments...>::real = function;
  function = Watched<kSlot, Arguments...>::call;
}

Answer<double> valueOf(const nvmlFieldValue_t& field) {
  // Of a single field, this says that the driver is older than the field.
  if (field.nvmlReturn == NVML_ERROR_INVALID_ARGUMENT) return {NVML_ERROR_FUNCTION_NOT_FOUND, 0};
  if (field.nvmlReturn != NVML_SUCCESS) return {field.nvmlReturn, 0};
  switch (field.valueType) {
    case NVML_VALUE_TYPE_DOUBLE:
      return {NVML_SUCCESS, field.value.dVal};
    case NVML_VALUE_TYPE_UNSIGNED_INT:
      return {NVML_SUCCESS, static_cast<double>(field.value.uiVal)};
    case NVML_VALUE_TYPE_UNSIGNED_LONG:
      return {NVML_SUCCESS, static_cast<double>(field.value.ulVal)};
    case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
      return {NVML_SUCCESS, static_cast<double>(field.value.ullVal)};
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
      return {NVML_SUCCESS, static_cast<double>(field.value.sllVal)};
    case NVML_VALUE_TYPE_SIGNED_INT:
      return {NVML_SUCCESS, static_cast<double>(field.value.siVal)};
    case NVML_VALUE_TYPE_UNSIGNED_SHORT:
      return {NVML_SUCCESS, static_cast<double>(field.value.usVal)};
    default:
      return {NVML_ERROR_UNKNOWN, 0};
  }
}

Answer<std::string> textOf(nvmlReturn_t code, const char* text) {
  return {code, code == NVML_SUCCESS ? printable(text, NVML_TEXT_SIZE) : ""};
}

/// The second number of "13.580.95.05": the first is that of CUDA.
int branchOf(const std::string& version) {
  const size_t dot = version.find('.');
  return dot == std::string::npos ? 0 : static_cast<int>(leadingInteger(version.substr(dot + 1), 0));
}

}  // namespace

Result<std::shared_ptr<const Nvml>> Nvml::open(const Root& root, const std::string& library) {
  std::shared_ptr<Nvml> nvml(new Nvml);
  nvml->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml->library_ == nullptr) return noDriver(root, dlerror(), library);
  MUSTER_CHECK_OK(nvml->bind(library));
  MUSTER_CHECK_OK(nvml->start(root));
  nvml->driverBranch_ = branchOf(nvml->text(nvml->api_.nvmlSystemGetNVMLVersion).value);
  return std::shared_ptr<const Nvml>(std::move(nvml));
}

Nvml::~Nvml() {
  if (started_) (void)api_.nvmlShutdown();
  if (library_ != nullptr) dlclose(library_);
}

Status Nvml::bind(const std::string& library) {
  std::vector<std::string> missing;
#define MUSTER_NVML_REQUIRED(name, parameters) find(library_, #name, true, api_.name, missing);
#define MUSTER_NVML_OPTIONAL(name, parameters) find(library_, #name, false, api_.name, missing);
  MUSTER_NVML_FUNCTIONS(MUSTER_NVML_REQUIRED, MUSTER_NVML_OPTIONAL)
#undef MUSTER_NVML_REQUIRED
#undef MUSTER_NVML_OPTIONAL
  find(library_, "nvmlErrorString", true, api_.nvmlErrorString, missing);
  if (!missing.empty())
    return Error{ErrorCode::kNotFound,
                 "this library lacks " + join(missing, ", ") +
                     ": it is not NVML, or its driver is older than this build supports; install a newer "
                     "driver",
                 library};
#define MUSTER_NVML_WATCH(name, parameters) watch<k_##name>(api_.name);
  MUSTER_NVML_FUNCTIONS(MUSTER_NVML_WATCH, MUSTER_NVML_WATCH)
#undef MUSTER_NVML_WATCH
  return {};
}

Status Nvml::start(const Root& root) const {
  const nvmlReturn_t code = api_.nvmlInit_v2();
  started_ = code == NVML_SUCCESS;
  if (started_) return {};
  if (code == NVML_ERROR_DRIVER_NOT_LOADED) return noDriver(root, words(code), kNvmlLibrary);
  std::string next = "see dmesg | grep NVRM";
  if (code == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    next = "the driver was updated while its old module is loaded: reboot, or load the module again";
  if (code == NVML_ERROR_NO_PERMISSION) next = "give this user access to /dev/nvidia*";
  return Error{ErrorCode::kIo, "the NVIDIA driver cannot be reached: " + words(code) + "; " + next,
               kNvmlLibrary};
}

void Nvml::name(nvmlDevice_t device, const std::string& id) {
  WatchedCall::name(device, id);
}

std::string Nvml::words(nvmlReturn_t code) const {
  const char* text = api_.nvmlErrorString(code);
  return printable(text == nullptr ? "unknown return code" : text, 200) + " (NVML " + std::to_string(code) +
         ")";
}

Answer<std::string> Nvml::text(nvmlReturn_t (*function)(nvmlDevice_t, char*, unsigned),
                               nvmlDevice_t device) const {
  char buffer[NVML_TEXT_SIZE + 1] = {};
  return textOf(function(device, buffer, NVML_TEXT_SIZE), buffer);
}

Answer<std::string> Nvml::text(nvmlReturn_t (*function)(char*, unsigned)) const {
  char buffer[NVML_TEXT_SIZE + 1] = {};
  return textOf(function(buffer, NVML_TEXT_SIZE), buffer);
}

std::vector<Answer<double>> readFields(const Nvml& nvml, nvmlDevice_t device,
                                       const std::vector<Field>& fields) {
  std::vector<nvmlFieldValue_t> values(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    values[i].fieldId = fields[i].id;
    values[i].scopeId = fields[i].scope;
    values[i].nvmlReturn = NVML_ERROR_UNKNOWN;
  }
  const nvmlReturn_t code =
      nvml->nvmlDeviceGetFieldValues(device, static_cast<int>(values.size()), values.data());
  std::vector<Answer<double>> answers;
  for (const nvmlFieldValue_t& value : values)
    answers.push_back(code == NVML_SUCCESS ? valueOf(value) : Answer<double>{code, 0});
  return answers;
}

}  // namespace muster::cuda

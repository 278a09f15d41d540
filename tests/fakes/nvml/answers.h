// SPDX-License-Identifier: Apache-2.0
// How the functions of the fake NVML answer: as the scenario says, or not at all.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/cuda/inventory/nvml/nvml_types.h"
#include "tests/fakes/nvml/headers.h"
#include "tests/fakes/nvml/scenario.h"

// Each definition of the fake has the type that our declarations give it.
#define SAME_TYPE(name, parameters) \
  extern "C" __attribute__((visibility("default"))) nvmlReturn_t name parameters;
MUSTER_NVML_FUNCTIONS(SAME_TYPE, SAME_TYPE)
#undef SAME_TYPE

inline const Scenario& scenario() {
  return Scenario::loaded();
}

/// The header that the library was made with.
inline const HeaderFacts& header() {
  return headerFacts(scenario().fact("header", "13.0.87"));
}

/// Handles are addresses of this table's elements.
inline std::array<char, 64> handles;

inline nvmlDevice_t handleOf(unsigned index) {
  return reinterpret_cast<nvmlDevice_t>(&handles[index]);
}

inline int indexOf(nvmlDevice_t device) {
  return static_cast<int>(reinterpret_cast<char*>(device) - handles.data());
}

/// Does what the scenario wants of this call: a return code, or never to return.
inline nvmlReturn_t behave(const char* function, int gpu = -1) {
  const std::string wanted = scenario().behaviour(function, gpu);
  if (wanted.empty()) return NVML_SUCCESS;
  if (wanted == "hang")
    while (true) pause();
  if (wanted == "crash") {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  return std::atoi(wanted.c_str());
}

#define BEHAVE(gpu) \
  if (const nvmlReturn_t code = behave(__func__, gpu); code != NVML_SUCCESS) return code

inline nvmlReturn_t give(const std::string& text, char* buffer, unsigned length) {
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(buffer, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

/// A number of the scenario; "none" says that the device has no such thing.
template <typename T>
nvmlReturn_t giveNumber(nvmlDevice_t device, const char* key, double otherwise, T* value) {
  if (scenario().text(indexOf(device), key) == "none") return NVML_ERROR_NOT_SUPPORTED;
  *value = static_cast<T>(scenario().number(indexOf(device), key, otherwise));
  return NVML_SUCCESS;
}

inline nvmlReturn_t giveText(nvmlDevice_t device, const char* key, const std::string& otherwise, char* buffer,
                             unsigned length) {
  const std::string text = scenario().text(indexOf(device), key, otherwise);
  return text == "none" ? NVML_ERROR_NOT_SUPPORTED : give(text, buffer, length);
}

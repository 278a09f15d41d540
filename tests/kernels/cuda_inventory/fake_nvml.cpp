// SPDX-License-Identifier: Apache-2.0
// See fake_nvml.h.
#include "tests/kernels/cuda_inventory/fake_nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/fakes/nvml/scenario.h"

namespace muster::testing {

FakeNode::FakeNode(const std::string& scenario) {
  const auto file = dir_.write("scenario.txt", "count 8\n" + scenario);
  setenv(kScenarioVariable, file.c_str(), 1);
  setenv(kWorkVariable, (dir_.path() / "work").c_str(), 1);
}

FakeNode::~FakeNode() {
  unsetenv(kScenarioVariable);
  unsetenv(kWorkVariable);
}

Result<std::unique_ptr<cuda::CudaInventory>> FakeNode::tryToOpen(int builtFor) const {
  HostSources host = machineSources();
  host.root = root();
  host.kernelLog = [this]() -> Result<KernelLog> {
    if (kernelLogForbidden) return Error{ErrorCode::kIo, "Operation not permitted", "kernel log"};
    return KernelLog{kernelLog};
  };
  host.uptime = [this] { return uptime; };
  return cuda::CudaInventory::open({std::move(host), fakeNvmlLibrary(), builtFor});
}

std::unique_ptr<cuda::CudaInventory> FakeNode::open(int builtFor) {
  auto inventory = tryToOpen(builtFor);
  if (inventory.ok()) return std::move(inventory).value();
  ADD_FAILURE() << inventory.error().text();
  std::abort();
}

std::string fakeNvmlLibrary() {
  return (buildDir() / "tests/fakes/nvml/libnvidia-ml.so.1").string();
}

std::string tornNvmlLibrary() {
  return (buildDir() / "tests/fakes/nvml/fake-nvml-torn.so").string();
}

const Reading* readingOf(const Readings& readings, const std::string& name, const std::string& device,
                         const Labels& labels) {
  for (const Reading& reading : readings.values)
    if (reading.name == name && reading.device == device && (labels.empty() || reading.labels == labels))
      return &reading;
  return nullptr;
}

double valueOf(const Readings& readings, const std::string& name, const std::string& device,
               const Labels& labels) {
  const Reading* reading = readingOf(readings, name, device, labels);
  if (reading == nullptr) ADD_FAILURE() << "no reading " << name << " of " << device;
  return reading == nullptr ? -1 : reading->value;
}

}  // namespace muster::testing

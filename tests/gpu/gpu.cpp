// SPDX-License-Identifier: Apache-2.0
// The main program of tests that need a GPU: without one it ends with 77 and one line that says why.
#include "tests/gpu/gpu.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace muster::gpu {
namespace {

constexpr int kSkipped = 77;

std::string folder() {
  const char* dist = std::getenv("MUSTER_DIST");
  return std::string(dist == nullptr ? "build/dist" : dist) + "/lib/muster/backends";
}

std::vector<DeviceInfo> found;

std::unique_ptr<Device> openFirst(Backend& from, const std::string& id) {
  auto device = from.open(id);
  if (device.ok()) return std::move(*device);
  std::fprintf(stderr, "%s\n", device.error().text().c_str());
  std::exit(EXIT_FAILURE);
}

/// Why no GPU can be used; empty when one can.
std::string lookForGpus() {
  BackendOptions options;
  options.folder = folder();
  auto cuda = loadBackend("cuda", options);
  if (!cuda.ok()) return cuda.error().text();
  auto inventory = (*cuda)->inventory();
  if (!inventory.ok()) return inventory.error().text();
  auto devices = (*inventory)->devices();
  if (!devices.ok()) return devices.error().text();
  found = std::move(*devices);
  return found.empty() ? "the NVIDIA driver sees no GPU" : "";
}

}  // namespace

Backend& backend(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Backend>> opened;
  std::unique_ptr<Backend>& slot = opened[name];
  if (slot != nullptr) return *slot;
  BackendOptions options;
  options.folder = folder();
  auto loaded = loadBackend(name, options);
  if (!loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.error().text().c_str());
    std::exit(EXIT_FAILURE);
  }
  slot = std::move(*loaded);
  return *slot;
}

const std::vector<DeviceInfo>& devices() {
  return found;
}

std::unique_ptr<Device> openGpu() {
  return openFirst(backend("cuda"), found.front().id);
}

std::unique_ptr<Device> openHost() {
  return openFirst(backend("host"), "cpu0");
}

void figure(const std::string& name, const std::string& unit, double value, const Json& labels) {
  const Json line = {{"figure", name}, {"unit", unit}, {"value", value}, {"labels", labels}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace muster::gpu

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const std::string problem = muster::gpu::lookForGpus();
  if (!problem.empty()) {
    std::fprintf(stderr, "skipped: %s\n", problem.c_str());
    return muster::gpu::kSkipped;
  }
  return RUN_ALL_TESTS();
}

// SPDX-License-Identifier: Apache-2.0
// The fake libnvidia-ml.so.1 with a scenario of a test's own, and a made-up /proc and /sys below it.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/inventory/cuda_inventory.h"
#include "tests/support/process.h"

namespace muster::testing {

/// A node with as many GPUs as its scenario says. The scenario's lines are those of
/// tests/fakes/nvml/scenario.h.
class FakeNode {
 public:
  explicit FakeNode(const std::string& scenario = "");
  ~FakeNode();
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

  /// The inventory; the test fails when it cannot be opened.
  std::unique_ptr<cuda::CudaInventory> open(int builtFor = 0);
  [[nodiscard]] Result<std::unique_ptr<cuda::CudaInventory>> tryToOpen(int builtFor = 0) const;
  /// From now on the scenario's lines with "working" hold.
  void beginWork() const { (void)dir_.write("work", ""); }
  /// Writes a file of the made-up /proc or /sys.
  void file(const std::string& path, const std::string& content) const { (void)dir_.write(path, content); }
  [[nodiscard]] Root root() const { return Root(dir_.path().string()); }
  [[nodiscard]] const std::filesystem::path& path() const { return dir_.path(); }

  std::string kernelLog;
  bool kernelLogForbidden = false;
  double uptime = 60;  ///< seconds since boot, as the log's lines count them

 private:
  TempDir dir_;
};

/// The fake library, and one that has its name and next to none of its symbols.
std::string fakeNvmlLibrary();
std::string tornNvmlLibrary();

/// The reading of a device with this name (and labels, where given), or nullptr.
const Reading* readingOf(const Readings& readings, const std::string& name, const std::string& device,
                         const Labels& labels = {});
/// Its value; the test fails when there is none.
double valueOf(const Readings& readings, const std::string& name, const std::string& device,
               const Labels& labels = {});

}  // namespace muster::testing

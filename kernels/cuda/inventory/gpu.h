// SPDX-License-Identifier: Apache-2.0
// One GPU as NVML shows it, and a collector of what it answers.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/inventory/nvml/nvml.h"
#include "kernels/interfaces/inventory.h"

namespace muster::cuda {

/// A GPU by its NVML index, which its id keeps also when another GPU is lost.
struct Gpu {
  int index = 0;
  std::string id;  ///< "gpu3"
  nvmlDevice_t handle = nullptr;
  std::string pciAddress;  ///< "0000:4e:00.0" as sysfs writes it; empty when a lost GPU did not tell
  std::string name;        ///< its model; empty when it did not tell
  std::string lost;        ///< why it answers no more; empty: it does
};

/// Every GPU that the driver shows, lost ones too. A GPU that cannot be reached for another reason is an
/// error.
Result<std::vector<Gpu>> listGpus(const Nvml& nvml);

/// "0000:4e:00.0" of NVML's PCI numbers.
std::string pciAddressOf(const nvmlPciInfo_t& info);

/// A reading that a GPU said it has no source for.
struct Absence {
  std::string name;
  std::string device;
  std::string model;
  Labels labels;
};

/// "The device has no such thing" is believed of a model, not of one GPU: where another one of the same model
/// has the reading, its absence becomes an unreadable source.
void checkAbsences(const std::vector<Absence>& absences, const std::vector<Gpu>& gpus, Readings& readings);

/// Collects the readings of one GPU. An answer that says "not supported" leaves no reading: the device has no
/// such thing. Any other failure is an unreadable source in NVML's words, but for a lost GPU, which is one
/// finding and not dozens.
class GpuCollector {
 public:
  GpuCollector(const Nvml& nvml, const Gpu& gpu) : nvml_(nvml), gpu_(gpu) {}

  /// `name` of namespace reading or of the env plugin's describe; the value is multiplied by `scale`.
  template <typename T>
  void number(const std::string& name, const std::string& unit, const Answer<T>& answer, double scale = 1,
              Labels labels = {}) {
    if (note(name, answer.code, answer.absent(), labels))
      put(name, unit, static_cast<double>(answer.value) * scale, "", std::move(labels));
  }
  void put(const std::string& name, const std::string& unit, double value, const std::string& text = "",
           Labels labels = {});
  void fact(const std::string& name, const Answer<std::string>& answer);
  /// Notes an answer's failure; true when there is a value to use.
  bool note(const std::string& what, nvmlReturn_t code, bool absent, const Labels& labels = {});
  void unreadable(const std::string& what, const std::string& why);

  [[nodiscard]] const Gpu& gpu() const { return gpu_; }
  [[nodiscard]] const Nvml& nvml() const { return nvml_; }
  [[nodiscard]] nvmlDevice_t device() const { return gpu_.handle; }
  /// Why the GPU answers no more, if that showed on the way; else empty.
  [[nodiscard]] const std::string& lost() const { return lost_; }
  /// Adds what was collected to `out` and `absences`.
  void moveTo(Readings& out, std::vector<Absence>& absences);

 private:
  const Nvml& nvml_;
  const Gpu& gpu_;
  std::string lost_;
  Readings readings_;
  std::vector<Absence> absences_;
};

}  // namespace muster::cuda

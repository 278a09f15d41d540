// SPDX-License-Identifier: Apache-2.0
// Temperatures and the memory controllers' error counters, from sysfs.
#include "kernels/host/inventory/sensors.h"

#include <algorithm>
#include <array>
#include <optional>

namespace muster {

namespace {

constexpr std::array kCpuChips = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
constexpr size_t kMostSensors = 64;

/// temp*_input of one hwmon chip, in millidegrees; the hottest counts.
std::optional<CpuTemperature> hottestOfChip(const Root& root, const std::string& folder,
                                            const std::string& chip) {
  std::optional<CpuTemperature> hottest;
  for (const std::string& file : root.list(folder)) {
    if (!file.starts_with("temp") || !file.ends_with("_input")) continue;
    const auto millidegrees = root.integer(folder + "/" + file);
    if (!millidegrees.ok()) continue;  // a sensor that is asleep answers with an error
    const double celsius = static_cast<double>(*millidegrees) * 1e-3;
    if (hottest && hottest->celsius >= celsius) continue;
    const std::string label = root.factOr(folder + "/" + file.substr(0, file.size() - 6) + "_label", file);
    hottest = CpuTemperature{chip + "/" + label, celsius};
  }
  return hottest;
}

/// "mc0 <label of the DIMM with most errors>"
std::string nameController(const Root& root, const std::string& name) {
  const std::string folder = "/sys/devices/system/edac/mc/" + name;
  int64_t most = 0;
  std::string worst;
  for (const std::string& dimm : root.list(folder)) {
    if (!dimm.starts_with("dimm") && !dimm.starts_with("rank")) continue;
    const int64_t errors = root.integerOr(folder + "/" + dimm + "/dimm_ue_count", 0) +
                           root.integerOr(folder + "/" + dimm + "/dimm_ce_count", 0);
    if (errors <= most) continue;
    most = errors;
    worst = " " + root.factOr(folder + "/" + dimm + "/dimm_label", dimm);
  }
  return name + worst;
}

}  // namespace

std::vector<CpuTemperature> readCpuTemperatures(const Root& root) {
  std::vector<CpuTemperature> found;
  for (const std::string& name : root.list("/sys/class/hwmon")) {
    const std::string folder = "/sys/class/hwmon/" + name;
    const std::string chip = root.factOr(folder + "/name");
    if (std::find(kCpuChips.begin(), kCpuChips.end(), chip) == kCpuChips.end()) continue;
    auto hottest = hottestOfChip(root, folder, chip);
    if (hottest && found.size() < kMostSensors) found.push_back(*std::move(hottest));
  }
  if (!found.empty()) return found;
  for (const std::string& zone : root.list("/sys/class/thermal")) {
    const std::string folder = "/sys/class/thermal/" + zone;
    const std::string type = root.factOr(folder + "/type");
    if (type.find("pkg_temp") == std::string::npos && type.find("cpu") == std::string::npos) continue;
    const auto millidegrees = root.integer(folder + "/temp");
    if (millidegrees.ok() && found.size() < kMostSensors)
      found.push_back({type, static_cast<double>(*millidegrees) * 1e-3});
  }
  return found;
}

Result<std::vector<MemoryErrors>> readMemoryErrors(const Root& root) {
  std::vector<MemoryErrors> found;
  for (const std::string& name : root.list("/sys/devices/system/edac/mc")) {
    const std::string folder = "/sys/devices/system/edac/mc/" + name;
    if (!name.starts_with("mc") || !root.exists(folder + "/ue_count")) continue;
    MUSTER_TRY(const int64_t uncorrected, root.integer(folder + "/ue_count"));
    MUSTER_TRY(const int64_t corrected, root.integer(folder + "/ce_count"));
    found.push_back({nameController(root, name), corrected, uncorrected});
  }
  return found;
}

}  // namespace muster
